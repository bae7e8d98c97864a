"""Responses as bytes: a header that says which request is answered, and the body behind it."""

from __future__ import annotations

import functools
import struct

from state.protocol_errors import ProtocolError
from streaming.wire.apis import KAFKA_PYTHON, Api, ApiKey, api_in_version
from streaming.wire.schema_codec import Body, MessageSchema

_CORRELATION_ID = struct.Struct(">i")
_NO_TAGS = b"\0"
_ERROR_CODE = struct.Struct(">h")

_header_schema = functools.cache(lambda: MessageSchema("ResponseHeader", KAFKA_PYTHON))


def encode_response(api_key: int, version: int, correlation_id: int, body: Body) -> bytes:
    """Encode header and body, without the size prefix.

    Raises UnsupportedApi, UnsupportedVersion, ValueError when the body does not fit the schema.
    """
    api = api_in_version(api_key, version, correlation_id)
    header = encode_response_header(api_key, version, correlation_id)
    return header + api.response.encode(version, body)


def encode_response_header(api_key: int, version: int, correlation_id: int) -> bytes:
    """Encode a header alone, to go in front of a body that was encoded column-wise."""
    api = api_in_version(api_key, version, correlation_id)
    plain = _CORRELATION_ID.pack(correlation_id)
    return plain + _NO_TAGS if _header_version(api, version) else plain


def response_body(api_key: int, version: int, frame: bytes) -> bytes:
    """Return a response without its header; raises UnsupportedApi, UnsupportedVersion,
    MalformedFrame.
    """
    header_version = _header_version(api_in_version(api_key, version, -1), version)
    _, start = _header_schema().decode_prefix(header_version, frame)
    return frame[start:]


def decode_response(api_key: int, version: int, frame: bytes) -> tuple[int, Body]:
    """Decode one response frame into (correlation id, body).

    An ApiVersions response with UNSUPPORTED_VERSION is read as version 0, which is how brokers
    answer a version they do not know (KIP-511). Raises UnsupportedApi, UnsupportedVersion,
    MalformedFrame.
    """
    api = api_in_version(api_key, version, -1)
    fields, start = _header_schema().decode_prefix(_header_version(api, version), frame)
    if api.key is ApiKey.API_VERSIONS and len(frame) >= start + _ERROR_CODE.size:
        (error_code,) = _ERROR_CODE.unpack_from(frame, start)
        version = 0 if error_code == ProtocolError.UNSUPPORTED_VERSION else version
    return fields["correlation_id"], api.response.decode(version, frame, start)


def _header_version(api: Api, version: int) -> int:
    if api.key is ApiKey.API_VERSIONS:
        return 0  # readable for clients that do not know the version yet (KIP-511)
    return 1 if api.response.is_flexible(version) else 0
