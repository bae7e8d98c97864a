"""Writes a metadata log that has only a snapshot, as a KRaft controller would leave it
(RecordsSnapshotWriter, Snapshots).

A controller whose folder has it begins with what is in it, and appends behind it.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from struct import Struct

from checkpoints.durable import read_file, write_whole
from streaming.errors import HelmstreamError
from streaming.metadata_log.reading import METADATA_PARTITION, UnreadableMetadataLog
from streaming.metadata_log.records import Record, RecordType, decode_record, encode_record
from streaming.offsets.batches import (
    UnreadableBatch,
    encode_control,
    encoded_record,
    read_batches,
    sealed,
    spans,
    stamped,
)
from streaming.wire.errors import MalformedFrame

_EPOCH = 1
_RECORDS_OF_BATCH = 1000
"""A configuration or an assignment has some kilobytes at most, and a batch may have 8 MiB."""
_FORMATTED = f"{0:020}-{0:010}.checkpoint"
"""Where kafka-storage writes voters that may change, and since 4.4 all else."""
_BOOTSTRAP = "bootstrap.checkpoint"
"""Where it writes all else before 4.4, beside METADATA_PARTITION."""
_HEADER, _FOOTER = 3, 4
"""Types of control records that begin and end a snapshot (ControlRecordType)."""
_HEADER_VALUE = Struct(">hqB")  # version, time of the last record, no tagged fields
_FOOTER_VALUE = Struct(">hB")  # version, no tagged fields
_LEFT_OUT = "eligible.leader.replicas.version"
"""With it a broker that registers for the first time counts as one that has lost what it had not
flushed: all would leave their ISRs (ClusterControlManager, handleBrokerUncleanShutdown).
"""
_OF_3_9 = Record(RecordType.FEATURE_LEVEL, {"name": "metadata.version", "feature_level": 21})
"""The last metadata.version to which a cluster of ZooKeeper migrates (MetadataVersion)."""


class CannotWriteSnapshot(HelmstreamError):
    """A folder cannot take a snapshot; the message says why."""

    exit_code = 2


@dataclass(frozen=True, slots=True)
class _Beginning:
    """With what a snapshot begins: a batch of control records, and values of records."""

    head: bytes
    values: list[bytes]


def write_snapshot(folder: Path, records: Iterable[Record], time_ms: int) -> Path:
    """Write what records say into METADATA_PARTITION below a folder, and return the file.

    What kafka-storage has written there is taken over: voters, users, levels of features but of
    eligible leader replicas (KIP-966). Where it has written nothing metadata.version is that of
    Kafka 3.9. time_ms: since the epoch, when it was so. Raises CannotWriteSnapshot where there is a
    metadata log already, UnreadableMetadataLog, ValueError for a record that cannot be encoded, and
    OSError.
    """
    below = folder / METADATA_PARTITION
    if more := sorted(path.name for path in below.glob("*") if path.name != _FORMATTED):
        raise CannotWriteSnapshot(
            f"{below} has a metadata log already ({more[0]}): give the folder of a controller that"
            " is formatted and has never run, or a new one"
        )
    written, end = bytearray(), 0
    for batch in _batches(_beginning(folder, time_ms), records, time_ms):
        written += stamped(batch, end, _EPOCH)
        end += 1 + next(spans(batch)).last_offset
    path = below / f"{end:020}-{_EPOCH:010}.checkpoint"
    below.mkdir(parents=True, exist_ok=True)
    write_whole(path, bytes(written))
    return path


def _batches(beginning: _Beginning, records: Iterable[Record], time_ms: int) -> Iterator[bytes]:
    """Yield batches, each at offset 0."""
    yield beginning.head
    left = itertools.chain(beginning.values, map(encode_record, records))
    while values := list(itertools.islice(left, _RECORDS_OF_BATCH)):
        encoded = itertools.chain.from_iterable(
            encoded_record(0, at, None, value) for at, value in enumerate(values)
        )
        yield sealed(b"".join(encoded), len(values), time_ms, time_ms)
    yield encode_control(_FOOTER, _FOOTER_VALUE.pack(0, 0), time_ms)


def _beginning(folder: Path, time_ms: int) -> _Beginning:
    """Return what a snapshot begins with; raises UnreadableMetadataLog."""
    head = encode_control(_HEADER, _HEADER_VALUE.pack(0, time_ms, 0), time_ms)
    values: list[bytes] = []
    for path in (folder / METADATA_PARTITION / _FORMATTED, folder / _BOOTSTRAP):
        if not path.exists():
            continue
        data = read_file(path)
        try:
            batches = list(read_batches(data))
        except UnreadableBatch as error:
            raise UnreadableMetadataLog(f"{path}: {error}") from error
        found = (record.value or b"" for batch in batches for record in batch.records)
        values += [value for value in found if not _is_left_out(value)]
        if path.name == _FORMATTED:
            head = data[: next(spans(data)).end]
    return _Beginning(head, values or [encode_record(_OF_3_9)])


def _is_left_out(value: bytes) -> bool:
    """A record that is not known here is none of those that are left out."""
    try:
        record = decode_record(value)
    except MalformedFrame:
        return False
    return record.kind is RecordType.FEATURE_LEVEL and record.body["name"] == _LEFT_OUT
