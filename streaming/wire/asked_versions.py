"""What a broker says it serves, asked on a connection before anything else."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from streaming.wire.apis import ApiKey
from streaming.wire.errors import WireError
from streaming.wire.exchange import CLIENT_ID, Exchange
from streaming.wire.requests import encode_request
from streaming.wire.responses import decode_response


class Unsupported(WireError):
    """A broker does not serve an API; the message says which."""


@dataclass(frozen=True, slots=True)
class ServedVersions:
    """The highest version of each API that a broker knows."""

    highest: Mapping[int, int] = field(default_factory=dict)

    def at_most(self, api: ApiKey, version: int) -> int:
        """Return the version to ask an API in; raises Unsupported."""
        known = self.highest.get(api)
        if known is None:
            raise Unsupported(f"the broker does not support {api.name}")
        return min(known, version)


async def asked_versions(connection: Exchange) -> ServedVersions:
    """Return what the broker serves; raises OSError, WireError."""
    request = encode_request(ApiKey.API_VERSIONS, 0, 0, CLIENT_ID, {})
    _, answer = decode_response(ApiKey.API_VERSIONS, 0, await connection.ask(request))
    return ServedVersions({one["api_key"]: one["max_version"] for one in answer["api_keys"]})
