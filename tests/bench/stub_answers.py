"""What a stub broker answers: valid bytes for the version asked, with as little work as possible.

LeaderAndIsr is answered as a healthy broker does, with every partition that was named, since
decoding that is part of a controller's work. Source: the schemas of Kafka 3.9's requests.
"""

from __future__ import annotations

import struct

from streaming.wire.apis import ApiKey
from streaming.wire.primitives import unsigned_varint
from streaming.wire.responses import encode_response, encode_response_header

VERSIONS = {
    ApiKey.LEADER_AND_ISR: (5, 7),
    ApiKey.STOP_REPLICA: (0, 4),
    ApiKey.UPDATE_METADATA: (0, 8),
    ApiKey.API_VERSIONS: (0, 4),
}
"""What stub brokers advertise; LeaderAndIsr since it answers by topic id (Kafka 2.8)."""

_HEADER = struct.Struct(">hhih")
_FLEXIBLE_SINCE = {ApiKey.LEADER_AND_ISR: 4, ApiKey.STOP_REPLICA: 2, ApiKey.UPDATE_METADATA: 6}
_STATE_HEAD_BYTES = 16  # partition, controller epoch, leader, leader epoch
_NO_ERROR = b"\x00\x00"
_NO_TAGS = b"\x00"


def read_header(frame: memoryview) -> tuple[ApiKey, int, int, int]:
    """Return (api, version, correlation id, where the body starts)."""
    key, version, correlation_id, client_id_bytes = _HEADER.unpack_from(frame)
    api = ApiKey(key)
    start = _HEADER.size + max(client_id_bytes, 0)
    if version >= _FLEXIBLE_SINCE.get(api, 1 << 15):
        start += 1
        assert frame[start - 1] == 0, "a request header with tagged fields"
    return api, version, correlation_id, start


def answer(api: ApiKey, version: int, correlation_id: int, frame: memoryview, start: int) -> bytes:
    """Return the response to a request, header included, without the size prefix."""
    if api is ApiKey.API_VERSIONS:
        keys = [
            {"api_key": int(key), "min_version": first, "max_version": last}
            for key, (first, last) in VERSIONS.items()
        ]
        body = {"error_code": 0, "api_keys": keys}
        return encode_response(api, version, correlation_id, body)
    if api is ApiKey.LEADER_AND_ISR:
        head = encode_response_header(api, version, correlation_id)
        return head + _leader_and_isr(version, bytes(frame), start)
    errors = {"partition_errors": []} if api is ApiKey.STOP_REPLICA else {}
    return encode_response(api, version, correlation_id, {"error_code": 0, **errors})


def _leader_and_isr(version: int, frame: bytes, at: int) -> bytes:
    # controller id, [is KRaft], controller epoch, broker epoch, type
    at += 17 + (version >= 7)
    parts = [_NO_ERROR, b""]
    topics, at = _varint(frame, at)
    parts[1] = unsigned_varint(topics)
    for _ in range(topics - 1):
        name_bytes, at = _varint(frame, at)
        at += name_bytes - 1
        parts.append(frame[at : at + 16])
        count, at = _varint(frame, at + 16)
        parts.append(unsigned_varint(count))
        for _ in range(count - 1):
            parts.append(frame[at : at + 4] + _NO_ERROR + _NO_TAGS)
            at = _after_state(version, frame, at)
        parts.append(_NO_TAGS)
        at += 1
    parts.append(_NO_TAGS)
    return b"".join(parts)


def _after_state(version: int, frame: bytes, at: int) -> int:
    """Return where a partition state ends; its lists have fewer than 127 brokers."""
    at += _STATE_HEAD_BYTES
    at += 4 * frame[at] - 3 + 4  # ISR, partition epoch
    at += 4 * frame[at] - 3  # replicas
    at += 4 * frame[at] - 3  # adding
    at += 4 * frame[at] - 3  # removing
    return at + 2 + (version >= 6)  # is new, [recovery state], tags


def _varint(frame: bytes, at: int) -> tuple[int, int]:
    value, shift = 0, 0
    while True:
        byte = frame[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
