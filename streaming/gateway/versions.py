"""ApiVersions: what this node serves, in which versions."""

from __future__ import annotations

import re
from collections.abc import Collection

from state.protocol_errors import ProtocolError
from streaming.gateway.calls import Call
from streaming.gateway.protocol_errors import GatewayError
from streaming.wire.messages import APIS, ApiKey, encode_response
from streaming.wire.schema_codec import Body

_SOFTWARE_SINCE = 3
_SOFTWARE = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")


class Versions:
    """Answers ApiVersions with the served keys."""

    def __init__(self, served: Collection[int]) -> None:
        """Take the API keys that have a handler."""
        self._api_keys = [_range(key) for key in sorted(served)]

    async def handle(self, call: Call) -> Body:
        """Answer with all ranges; INVALID_REQUEST when the client's software name or version is
        malformed (KIP-511).
        """
        software = (call.body["client_software_name"], call.body["client_software_version"])
        if call.version >= _SOFTWARE_SINCE and not all(map(_SOFTWARE.fullmatch, software)):
            return {"error_code": ProtocolError.INVALID_REQUEST, "api_keys": []}
        return {"error_code": ProtocolError.NONE, "api_keys": self._api_keys}


def unsupported_version_response(correlation_id: int) -> bytes:
    """Return the answer to an ApiVersions version we do not know: a version 0 response that names
    the versions of ApiVersions itself, so that the client can ask again (KIP-511).
    """
    body: Body = {
        "error_code": GatewayError.UNSUPPORTED_VERSION,
        "api_keys": [_range(ApiKey.API_VERSIONS)],
    }
    return encode_response(ApiKey.API_VERSIONS, 0, correlation_id, body)


def _range(api_key: int) -> Body:
    api = APIS[api_key]
    return {
        "api_key": int(api_key),
        "min_version": api.min_version,
        "max_version": api.max_version,
    }
