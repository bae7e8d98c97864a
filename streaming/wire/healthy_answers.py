"""Tells whether a LeaderAndIsr answer reports any error, without opening its lists.

A broker answers for each partition it was told of, nearly always that all is well, and opening
these lists takes as long as all else that a large change costs the job's broker thread.
"""

from __future__ import annotations

from streaming.wire.apis import APIS, ApiKey

_NO_ERROR = b"\x00\x00"
_TOPICS_SINCE = 5
_HEADER_BYTES = 5  # correlation id, no tags
_TOPIC_ID_BYTES = 16
_ENTRY_BYTES = 7  # partition int32, error int16, no tags


def tells_no_error(version: int, frame: bytes) -> bool:
    """Return whether a LeaderAndIsr answer is without any error, versions 5-7.

    False: it has one, or is not laid out as expected (another version, tagged fields, cut off), so
    that it has to be decoded.
    """
    if not _TOPICS_SINCE <= version <= APIS[ApiKey.LEADER_AND_ISR].max_version:
        return False
    try:
        return _is_healthy(frame)
    except IndexError:
        return False


def _is_healthy(frame: bytes) -> bool:
    at = _HEADER_BYTES + len(_NO_ERROR)
    if frame[_HEADER_BYTES - 1] or frame[_HEADER_BYTES:at] != _NO_ERROR:
        return False
    topics, at = _array_length(frame, at)
    for _ in range(topics):
        partitions, at = _array_length(frame, at + _TOPIC_ID_BYTES)
        end = at + partitions * _ENTRY_BYTES
        errors_and_tags = (frame[at + skipped : end : _ENTRY_BYTES] for skipped in (4, 5, 6))
        if partitions < 0 or frame[end] or any(map(any, errors_and_tags)):
            return False
        at = end + 1
    return topics >= 0 and frame[at:] == b"\x00"


def _array_length(frame: bytes, at: int) -> tuple[int, int]:
    """Return (a compact array's length, -1 for null; where its elements start)."""
    value, shift = 0, 0
    while frame[at] & 0x80:
        value |= (frame[at] & 0x7F) << shift
        shift += 7
        at += 1
    return (value | frame[at] << shift) - 1, at + 1
