"""Record batches (magic 2): made, read, and told apart by their headers.

kafka-python reads records, with whatever a broker has compressed them, and builds markers. Base
offset and leader epoch stand in front of what the checksum covers, so a batch is made once and
stamped when it is appended.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from crc32c import crc32c
from kafka.record.default_records import DefaultRecordBatch, DefaultRecordBatchBuilder

from streaming.wire.primitives import signed_varint

_HEAD = struct.Struct(">qiib")  # base offset, length of what follows, leader epoch, magic
_OFFSET_AND_LENGTH_BYTES = 12
_LEADER_EPOCH = struct.Struct(">i")
_LEADER_EPOCH_AT = 12
_BASE_OFFSET = struct.Struct(">q")
_LAST_OFFSET_DELTA = struct.Struct(">i")
_LAST_OFFSET_DELTA_AT = 23
LEAST_BATCH_BYTES = 61
_LEAST_MESSAGE_BYTES = 26
"""Of magic 0, in which a broker before 0.11 wrote, or one that is made to by
log.message.format.version.
"""
_MAGIC = 2
_UNLIMITED_BYTES = 2**31 - 1
_RECORD_OVERHEAD_BYTES = 32
"""What a record has besides key and value, at most: numbers of varying length, and attributes."""
_NO_PRODUCER = (-1, -1)
_NO_SEQUENCE = -1
_NULL = -1
_NO_LEADER_EPOCH = -1
_CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
_TRANSACTIONAL = 0x10
_CHECKSUM = struct.Struct(">I")
_CHECKSUM_AT = 17
_COVERED = struct.Struct(">hiqqqhii")  # attributes, last offset, times, producer, sequence, count

_CONTROL_KEY = struct.Struct(">hh")  # version, type: 0 abort, 1 commit, others of KRaft's logs
_MARKERS = {0: False, 1: True}
"""Whether they commit, by type."""
_END_TXN_MARKER = struct.Struct(">hi")  # version, coordinator epoch

LARGEST_BATCH_BYTES = 10 * 1024 * 1024
"""No batch is to be larger. A broker that follows stops for good at what is larger than its segment
(UnifiedLog.append), which in this topic is 100 MiB by default (offsets.topic.segment.bytes). As
leader it would take no batch above max.message.bytes either: 1 MiB by default, but the brokers'
own value is not known here, and this is ten times that.
"""


class UnreadableBatch(Exception):
    """A batch that cannot be read; the message says at which offset, and why."""


class BatchRecord(NamedTuple):
    """A record to be appended; value is None for a tombstone."""

    timestamp_ms: int
    key: bytes
    value: bytes | None


@dataclass(frozen=True, slots=True)
class BatchSpan:
    """Where a batch stands in bytes, and which offsets and leader epoch it has.

    magic: its format. Below 2 it is one message, or several under the offset of the last.
    """

    start: int
    end: int
    base_offset: int
    last_offset: int
    leader_epoch: int
    magic: int


class _ControlBatch(DefaultRecordBatchBuilder):  # type: ignore[misc] # kafka-python is untyped
    """A batch that holds a transaction's marker, or what KRaft notes in its own logs."""

    def _get_attributes(self, include_compression_type: bool = True) -> int:
        return int(super()._get_attributes(include_compression_type) | self.CONTROL_MASK)


def encode_batch(records: Sequence[BatchRecord], producer: tuple[int, int] | None = None) -> bytes:
    """Return a batch at offset 0; with a producer (id, epoch) it is part of its transaction.

    kafka-python's builder does the same with three calls for each number in a record.
    """
    first_ms = records[0].timestamp_ms
    last_ms = max(record.timestamp_ms for record in records)
    parts: list[bytes] = []
    for offset, (time_ms, key, value) in enumerate(records):
        parts += encoded_record(time_ms - first_ms, offset, key, value)
    return sealed(b"".join(parts), len(records), first_ms, last_ms, producer)


def bytes_at_most(records: Iterable[BatchRecord]) -> int:
    """Return how large the batch of these records is at most."""
    sizes = (len(key) + len(value or b"") for _, key, value in records)
    return LEAST_BATCH_BYTES + sum(size + _RECORD_OVERHEAD_BYTES for size in sizes)


def sealed(
    body: bytes, count: int, first_ms: int, last_ms: int, producer: tuple[int, int] | None = None
) -> bytes:
    """Return the batch at offset 0 that so many records, encoded, make up; times in ms."""
    producer_id, epoch = producer or _NO_PRODUCER
    covered = _COVERED.pack(
        0 if producer is None else _TRANSACTIONAL,
        count - 1,
        first_ms,
        last_ms,
        producer_id,
        epoch,
        _NO_SEQUENCE if producer is None else 0,
        count,
    )
    checksum = crc32c(body, crc32c(covered))
    length = LEAST_BATCH_BYTES - _OFFSET_AND_LENGTH_BYTES + len(body)
    return b"".join([_HEAD.pack(0, length, 0, _MAGIC), _CHECKSUM.pack(checksum), covered, body])


def encoded_record(
    time_delta_ms: int, offset: int, key: bytes | None, value: bytes | None
) -> tuple[bytes, bytes]:
    """Return a record's length and the record: attributes, times, key, value, no headers."""
    record = b"".join(
        (
            b"\0",
            signed_varint(time_delta_ms),
            signed_varint(offset),
            signed_varint(_NULL if key is None else len(key)),
            key or b"",
            signed_varint(_NULL if value is None else len(value)),
            value or b"",
            b"\0",
        )
    )
    return signed_varint(len(record)), record


def encode_marker(
    producer: tuple[int, int], coordinator_epoch: int, *, committed: bool, timestamp_ms: int
) -> bytes:
    """Return the batch that ends a producer's transaction (EndTransactionMarker)."""
    value = _END_TXN_MARKER.pack(0, coordinator_epoch)
    return encode_control(int(committed), value, timestamp_ms, producer)


def encode_control(
    kind: int, value: bytes, timestamp_ms: int, producer: tuple[int, int] | None = None
) -> bytes:
    """Return the batch at offset 0 of one control record, by its type (ControlRecordType); with a
    producer it is part of its transaction.
    """
    transactional = producer is not None
    builder = _ControlBatch(
        _MAGIC, 0, transactional, *(producer or _NO_PRODUCER), _NO_SEQUENCE, _UNLIMITED_BYTES
    )
    builder.append(0, timestamp_ms, _CONTROL_KEY.pack(0, kind), value, [])
    return bytes(builder.build())


def stamped(batch: bytes, base_offset: int, leader_epoch: int) -> bytes:
    """Return the batch at an offset, of a leader epoch."""
    stamped_batch = bytearray(batch)
    _BASE_OFFSET.pack_into(stamped_batch, 0, base_offset)
    _LEADER_EPOCH.pack_into(stamped_batch, _LEADER_EPOCH_AT, leader_epoch)
    return bytes(stamped_batch)


def spans(data: bytes) -> Iterator[BatchSpan]:
    """Yield the whole batches in bytes as a broker sends them: the last one may be cut off.

    Raises UnreadableBatch for a length that no batch has.
    """
    start = 0
    while len(data) - start >= _HEAD.size:
        base_offset, length, leader_epoch, magic = _HEAD.unpack_from(data, start)
        of_records = magic >= _MAGIC
        least = LEAST_BATCH_BYTES if of_records else _LEAST_MESSAGE_BYTES
        end = start + _OFFSET_AND_LENGTH_BYTES + length
        if end - start < least:
            raise UnreadableBatch(f"offset {base_offset}: {end - start} bytes, at least {least}")
        if end > len(data):
            return
        last_offset = base_offset
        if of_records:
            (delta,) = _LAST_OFFSET_DELTA.unpack_from(data, start + _LAST_OFFSET_DELTA_AT)
            last_offset += delta
        else:
            leader_epoch = _NO_LEADER_EPOCH
        yield BatchSpan(start, end, base_offset, last_offset, leader_epoch, magic)
        start = end


def is_intact(batch: bytes) -> bool:
    """Return whether a batch has the checksum that it says."""
    (checksum,) = _CHECKSUM.unpack_from(batch, _CHECKSUM_AT)
    return bool(crc32c(batch[_CHECKSUM_AT + _CHECKSUM.size :]) == checksum)


class Marker(NamedTuple):
    """What ends a transaction."""

    committed: bool
    coordinator_epoch: int


@dataclass(frozen=True, slots=True)
class ReadBatch:
    """A batch with its records read.

    producer_id: -1 outside transactions. marker: None for a batch that is none, and for one whose
    record compaction has removed.
    """

    base_offset: int
    last_offset: int
    leader_epoch: int
    producer_id: int
    producer_epoch: int
    transactional: bool
    marker: Marker | None
    records: list[BatchRecord]


def read_batches(data: bytes, end: int | None = None) -> Iterator[ReadBatch]:
    """Yield the whole batches with their records, whatever they are compressed with; only those
    that begin before an offset, if one is given.

    Raises UnreadableBatch.
    """
    for span in spans(data):
        if end is not None and span.base_offset >= end:
            return
        where = f"batch at offset {span.base_offset}"
        if span.magic != _MAGIC:
            raise UnreadableBatch(f"{where}: magic {span.magic}, only {_MAGIC} can be read")
        batch = DefaultRecordBatch(memoryview(data)[span.start : span.end])
        try:
            read = _read(span, batch)
        except Exception as error:  # each library of a codec has errors of its own
            raise UnreadableBatch(f"{where}, {_codec(batch)}: {error!r}") from error
        yield read


def _codec(batch: DefaultRecordBatch) -> str:
    number = batch.compression_type
    return _CODECS[number] if number < len(_CODECS) else f"compression {number}"


def _read(span: BatchSpan, batch: DefaultRecordBatch) -> ReadBatch:
    records = [BatchRecord(one.timestamp, one.key, one.value) for one in batch]
    control = batch.is_control_batch
    return ReadBatch(
        span.base_offset,
        span.last_offset,
        span.leader_epoch,
        batch.producer_id,
        batch.producer_epoch,
        batch.is_transactional,
        _read_marker(records[0]) if control and records else None,
        [] if control else records,
    )


def _read_marker(record: BatchRecord) -> Marker | None:
    _, kind = _CONTROL_KEY.unpack_from(record.key)
    if kind not in _MARKERS:
        return None
    _, coordinator_epoch = _END_TXN_MARKER.unpack_from(record.value or b"")
    return Marker(_MARKERS[kind], coordinator_epoch)
