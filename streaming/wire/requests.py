"""Requests as bytes: a header that says who asks what, and the body behind it."""

from __future__ import annotations

import functools
import struct
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

from streaming.wire.apis import APIS, GATEWAY_APIS, KAFKA_PYTHON, Api, ApiKey, api_in_version
from streaming.wire.errors import MalformedFrame, UnsupportedApi, WireError
from streaming.wire.joining import decode_join_group, decode_sync_group
from streaming.wire.offset_commits import decode_offset_commit
from streaming.wire.reading import after_tags, message, nullable_text, required
from streaming.wire.schema_codec import Body, MessageSchema

_PREFIX = struct.Struct(">hhi")

DECODED_WITHOUT_SCHEMA: Mapping[ApiKey, Callable[[int, bytes, int], Body]] = {
    ApiKey.JOIN_GROUP: decode_join_group,
    ApiKey.OFFSET_COMMIT: decode_offset_commit,
    ApiKey.SYNC_GROUP: decode_sync_group,
}
"""Requests that are not read by their schema: the fields of their bodies are others."""

_classic_text = nullable_text(flexible=False)
_header_schema = functools.cache(
    lambda: MessageSchema("RequestHeader", KAFKA_PYTHON, compact_lengths=False)
)


@dataclass(frozen=True, slots=True)
class RequestHeader:
    """Who asks what; client_id is None when the client sent none."""

    api_key: ApiKey
    api_version: int
    correlation_id: int
    client_id: str | None


@dataclass(frozen=True, slots=True)
class Request:
    """A decoded request."""

    header: RequestHeader
    body: Body


def decode_request(frame: bytes, served: Collection[int] = GATEWAY_APIS) -> Request:
    """Decode one frame (without its size prefix).

    Bytes behind the message are passed over, as brokers do: librdkafka asks for the metadata of all
    topics with three bytes too many.

    Raises UnsupportedApi for keys outside `served`, UnsupportedVersion, MalformedFrame.
    """
    header, start = _decode_header(frame, served)
    by_hand = DECODED_WITHOUT_SCHEMA.get(header.api_key)
    if by_hand is not None:
        return Request(header, by_hand(header.api_version, frame, start))
    return _by_schema(header, start, frame)


def decode_by_schema(frame: bytes) -> Request:
    """Decode one frame of any API by its schema; raises as `decode_request`."""
    return _by_schema(*_decode_header(frame, APIS), frame)


def first_text(frame: bytes) -> str:
    """Return the string that a request's body begins with; raises as `decode_request`."""
    header, start = _decode_header(frame, APIS)
    api, version = APIS[header.api_key], header.api_version
    read = nullable_text(flexible=api.request.is_flexible(version))
    return message(api.name, lambda _, data, at: required(read, data, at), version, frame, start)


def client_id_of(frame: bytes) -> str | None:
    """Return what a request's client calls itself; raises as `decode_request`."""
    return _decode_header(frame, APIS)[0].client_id


def _by_schema(header: RequestHeader, start: int, frame: bytes) -> Request:
    schema = APIS[header.api_key].request
    return Request(header, schema.decode_prefix(header.api_version, frame, start)[0])


def request_in_words(frame: bytes) -> str:
    """Return who asks what, for a log: nothing of the request's content, which may be secret."""
    try:
        header, _ = _decode_header(frame, APIS)
    except WireError as error:
        return f"{error}, {len(frame)} bytes"
    name, client = APIS[header.api_key].name, header.client_id
    return f"{name} version {header.api_version} of client {client!r:.100}, {len(frame)} bytes"


def _decode_header(frame: bytes, served: Collection[int]) -> tuple[RequestHeader, int]:
    if len(frame) < _PREFIX.size:
        raise MalformedFrame(f"request header cut off at byte {len(frame)}")
    api_key, version, correlation_id = _PREFIX.unpack_from(frame)
    if api_key not in served:
        raise UnsupportedApi(api_key, version, correlation_id)
    api = api_in_version(api_key, version, correlation_id)
    header_version = _header_version(api, version)
    client_id, start = message("RequestHeader", _client_id, header_version, frame, _PREFIX.size)
    return RequestHeader(api.key, version, correlation_id, client_id), start


def _client_id(version: int, data: bytes, at: int) -> tuple[tuple[str | None, int], int]:
    """Read the client id, a classic string in all versions; return where the body begins too."""
    client_id = None
    if version > 0:
        client_id, at = _classic_text(data, at)
    at = after_tags(data, at, flexible=version > 1)
    return (client_id, at), at


def encode_request(
    api_key: int, version: int, correlation_id: int, client_id: str | None, body: Body
) -> bytes:
    """Encode header and body, without the size prefix.

    Raises UnsupportedApi, UnsupportedVersion, ValueError when the body does not fit the schema.
    """
    api = api_in_version(api_key, version, correlation_id)
    return encode_request_header(api_key, version, correlation_id, client_id) + api.request.encode(
        version, body
    )


def encode_request_header(
    api_key: int, version: int, correlation_id: int, client_id: str | None
) -> bytes:
    """Encode a header alone, to go in front of a body that was encoded column-wise."""
    api = api_in_version(api_key, version, correlation_id)
    fields: Body = {
        "request_api_key": api_key,
        "request_api_version": version,
        "correlation_id": correlation_id,
        "client_id": client_id,
    }
    return _header_schema().encode(_header_version(api, version), fields)


def _header_version(api: Api, version: int) -> int:
    if api.key is ApiKey.CONTROLLED_SHUTDOWN and version == 0:
        return 0  # the only request whose header has no client id
    return 2 if api.request.is_flexible(version) else 1
