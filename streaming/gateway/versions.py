"""ApiVersions: what this node serves, in which versions."""

from __future__ import annotations

import re
from collections.abc import Mapping

from state.protocol_errors import ProtocolError
from streaming.gateway.calls import Call
from streaming.gateway.passing.brokers import Brokers
from streaming.gateway.passing.versions import Range, common_ranges, our_range
from streaming.wire.apis import ApiKey
from streaming.wire.responses import encode_response
from streaming.wire.schema_codec import Body

_SOFTWARE_SINCE = 3
_SOFTWARE = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")


class Versions:
    """Answers ApiVersions with what is served here, and with what is passed on to brokers."""

    def __init__(
        self, served: Mapping[int, Range], passed: Mapping[int, Range], brokers: Brokers
    ) -> None:
        """Take the versions of what is answered here, and of what is passed on."""
        self._served = served
        self._passed = passed
        self._brokers = brokers

    async def handle(self, call: Call) -> Body:
        """Answer with all ranges; INVALID_REQUEST when the client's software name or version is
        malformed (KIP-511).
        """
        software = (call.body["client_software_name"], call.body["client_software_version"])
        if call.version >= _SOFTWARE_SINCE and not all(map(_SOFTWARE.fullmatch, software)):
            return {"error_code": ProtocolError.INVALID_REQUEST, "api_keys": []}
        theirs = await self._brokers.common_versions(call.listener.name)
        # A client keeps to this answer while it is connected. One that comes before the brokers
        # are known gets all; a version that a broker lacks closes the connection, as there.
        passed = common_ranges([self._passed, theirs]) if theirs else self._passed
        ranges = {**self._served, **passed}
        return {
            "error_code": ProtocolError.NONE,
            "api_keys": [_range(key, ranges[key]) for key in sorted(ranges)],
        }


def unsupported_version_response(correlation_id: int) -> bytes:
    """Return the answer to an ApiVersions version we do not know: a version 0 response that names
    the versions of ApiVersions itself, so that the client can ask again (KIP-511).
    """
    body: Body = {
        "error_code": ProtocolError.UNSUPPORTED_VERSION,
        "api_keys": [_range(ApiKey.API_VERSIONS, our_range(ApiKey.API_VERSIONS))],
    }
    return encode_response(ApiKey.API_VERSIONS, 0, correlation_id, body)


def _range(api_key: int, versions: Range) -> Body:
    low, high = versions
    return {"api_key": int(api_key), "min_version": low, "max_version": high}
