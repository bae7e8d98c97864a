"""Records of a metadata log as a KRaft controller writes them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from uuid import UUID

from streaming.metadata_log.records import Record, RecordType, record_schema
from streaming.offsets.batches import BatchRecord, encode_batch, encode_control, stamped
from streaming.wire.primitives import unsigned_varint
from streaming.wire.schema_codec import Body

T, U = UUID(int=5), UUID(int=6)
T_ID = "AAAAAAAAAAAAAAAAAAAABQ"
FOOTER = 4
"""The type of the control record that ends a snapshot (SnapshotFooterRecord)."""


def encoded(kind: RecordType, body: Body, version: int | None = None) -> bytes:
    """A record's value, in the newest version unless another is given."""
    schema = record_schema(kind)
    if schema is None:
        return bytes([1, kind, 0, 0])
    number = schema.max_version if version is None else version
    head = b"".join(map(unsigned_varint, (1, kind, number)))
    return head + schema.encode(number, body)


def batch(offset: int, values: Sequence[bytes]) -> bytes:
    return stamped(encode_batch([BatchRecord(0, b"", value) for value in values]), offset, 1)


def control_batch(offset: int, kind: int) -> bytes:
    """A batch as KRaft puts one of its own into a log, with the shortest value there is."""
    return stamped(encode_control(kind, b"\0\0\0", 0), offset, 1)


def topic(name: str, id_: UUID = T) -> Record:
    return Record(RecordType.TOPIC, {"name": name, "topic_id": id_})


def partition(number: int = 0, id_: UUID = T, **more: object) -> Record:
    body: Body = {
        "partition_id": number,
        "topic_id": id_,
        "leader": 1,
        "leader_epoch": 0,
        "isr": [2, 1],
        "replicas": [2, 1],
        "adding_replicas": [],
        "removing_replicas": [],
    }
    return Record(RecordType.PARTITION, body | more)


def change(number: int = 0, id_: UUID = T, **changed: object) -> Record:
    body: Body = {
        "partition_id": number,
        "topic_id": id_,
        "leader": -2,
        "isr": None,
        "replicas": None,
        "adding_replicas": None,
        "removing_replicas": None,
    }
    return Record(RecordType.PARTITION_CHANGE, body | changed)


def values(records: Iterable[Record]) -> list[bytes]:
    return [encoded(*record) for record in records]


def write(folder: Path, offset: int, *batches: bytes, snapshot: bool = False) -> Path:
    """A segment that begins at an offset, or a snapshot of what is below it."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / (f"{offset:020}-0000000001.checkpoint" if snapshot else f"{offset:020}.log")
    path.write_bytes(b"".join(batches))
    return path
