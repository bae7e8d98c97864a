"""The record batch of a commit, made by putting numbers between bytes that are known.

Commits of the same partitions by the same group differ in offsets, leader epochs and their time. An
offset and its leader epoch stand in a record as they do in the request, one behind the other.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

from streaming.offsets.batches import LEAST_BATCH_BYTES, bytes_at_most, encoded_record, sealed
from streaming.offsets.records import offset_records

_TIME = struct.Struct(">q")
_VERSION_BYTES = 2
_NUMBERS_BYTES = 12
_AFTER_VALUE_BYTES = 1  # the number of headers: none
_WITHOUT_TEXTS = next(offset_records("", 0, [("", 0, 0, 0, "", 0, None, 0)]))
_RECORD_BYTES = bytes_at_most([_WITHOUT_TEXTS]) - LEAST_BATCH_BYTES


def commit_bytes_at_most(
    group: str, partitions: Sequence[tuple[str, int]], metadata: Sequence[str]
) -> int:
    """Return how large the batch of a commit is at most, without making it: each record names the
    group again, so a small request may ask for a very large one.
    """
    topics = sum(len(topic.encode()) for topic, _ in partitions)
    texts = sum(len(text.encode()) for text in metadata)
    each = _RECORD_BYTES + len(group.encode())
    return LEAST_BATCH_BYTES + len(partitions) * each + topics + texts


class CommitBatch:
    """The batch of a group's commits of the same partitions."""

    __slots__ = ("_count", "_parts")

    def __init__(
        self, group: str, partitions: Sequence[tuple[str, int]], metadata: Sequence[str]
    ) -> None:
        """Take whose commits they are; metadata: of each partition."""
        rows = (
            (topic, number, 0, 0, text, 0, None, 0)
            for (topic, number), text in zip(partitions, metadata, strict=True)
        )
        self._count = len(partitions)
        self._parts: list[bytes] = []
        before = b""
        for place, record in enumerate(offset_records(group, 0, rows)):
            assert record.value is not None
            length, body = encoded_record(0, place, record.key, record.value)
            end = len(body) - _AFTER_VALUE_BYTES
            numbers_at = end - len(record.value) + _VERSION_BYTES
            time_at = end - _TIME.size
            self._parts += (before + length + body[:numbers_at], b"")
            self._parts += (body[numbers_at + _NUMBERS_BYTES : time_at], b"")
            before = body[end:]
        self._parts.append(before)

    def encode(self, numbers: Sequence[bytes], time_ms: int) -> bytes:
        """Return the batch at offset 0; numbers: offset and leader epoch of each partition, 12
        bytes big-endian. time_ms: of the commit.
        """
        parts = self._parts.copy()
        parts[1::4] = numbers
        parts[3::4] = [_TIME.pack(time_ms)] * self._count
        return sealed(b"".join(parts), self._count, time_ms, time_ms)
