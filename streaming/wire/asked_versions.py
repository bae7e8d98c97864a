"""What a broker says it serves, asked on a connection before anything else."""

from __future__ import annotations

from streaming.wire.apis import ApiKey
from streaming.wire.exchange import CLIENT_ID, Exchange
from streaming.wire.requests import encode_request
from streaming.wire.responses import decode_response


async def highest_versions(connection: Exchange) -> dict[int, int]:
    """Return the highest version of each API that the broker knows.

    Raises OSError, WireError.
    """
    request = encode_request(ApiKey.API_VERSIONS, 0, 0, CLIENT_ID, {})
    _, answer = decode_response(ApiKey.API_VERSIONS, 0, await connection.ask(request))
    return {entry["api_key"]: entry["max_version"] for entry in answer["api_keys"]}
