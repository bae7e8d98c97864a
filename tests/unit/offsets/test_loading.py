"""What a partition's records say of its groups; transactions and their markers among them."""

from __future__ import annotations

import struct
from typing import Any

import pytest

from state.groups.load import LoadedPartition
from streaming.offsets.batches import (
    BatchRecord,
    UnreadableBatch,
    encode_batch,
    encode_marker,
    spans,
    stamped,
)
from streaming.offsets.loading import fold_records
from streaming.offsets.records import encode_record

PRODUCER = (9, 1)
LENGTH_AT, ATTRIBUTES_AT, COUNT_AT, RECORDS_AT = 8, 21, 57, 61
"""In a batch: its length from there on, its attributes, how many records, and the first of them."""
GZIP = 1
"""A codec, as attributes name it."""


def offset(at: int | None, group: str = "g") -> BatchRecord:
    value = {"offset": at, "leader_epoch": -1, "metadata": "", "commit_ms": 5, "expire_ms": None}
    record = {"topic": "t", "partition": 0, "value": None if at is None else value}
    return BatchRecord(5, *encode_record(group, {"type": "offset", **record}))


def group(generation: int | None, name: str = "g") -> BatchRecord:
    value = {
        "protocol_type": "consumer",
        "generation": generation,
        "protocol": None,
        "leader": None,
        "state_since_ms": 5,
        "members": [],
    }
    record = {"type": "group_metadata", "value": None if generation is None else value}
    return BatchRecord(5, *encode_record(name, record))


def loaded(*batches: bytes, end: int = 1_000) -> dict[str, dict[str, Any]]:
    """What is observed of each group, of batches at offsets 10, 20 and so on."""
    partition = LoadedPartition()
    data = b"".join(stamped(one, 10 * at, 3) for at, one in enumerate(batches, start=1))
    assert fold_records(partition, data, end) == 0
    return {body["group"]: body for body in partition.observed(2, 7)}


def committed(body: dict[str, Any]) -> dict[tuple[str, int], int]:
    return {(row[0], row[1]): row[2] for row in body["offsets"]}


def test_the_last_record_of_each_key_counts() -> None:
    found = loaded(
        encode_batch([group(1), offset(3), offset(3, "h")]),
        encode_batch([offset(4), group(2), offset(None, "h")]),
    )
    assert found.keys() == {"g"}
    assert (found["g"]["partition"], found["g"]["epoch"]) == (2, 7)
    assert found["g"]["metadata"]["generation"] == 2
    assert committed(found["g"]) == {("t", 0): 4}


def test_a_group_that_ended_leaves_its_offsets() -> None:
    found = loaded(encode_batch([group(1), offset(3)]), encode_batch([group(None)]))
    assert found["g"]["metadata"] is None
    assert committed(found["g"]) == {("t", 0): 3}


def test_offsets_of_a_transaction_count_with_its_marker() -> None:
    data = encode_batch([offset(7)], PRODUCER)
    pending = loaded(encode_batch([offset(3)]), data)
    assert committed(pending["g"]) == {("t", 0): 3}
    assert [producer for producer, _ in pending["g"]["pending"]] == [PRODUCER[0]]
    for was_committed, expected in ((True, 7), (False, 3)):
        marker = encode_marker(PRODUCER, 0, committed=was_committed, timestamp_ms=6)
        ended = loaded(encode_batch([offset(3)]), data, marker)
        assert committed(ended["g"]) == {("t", 0): expected}
        assert ended["g"]["pending"] == []


def test_batches_behind_the_end_belong_to_nobody() -> None:
    found = loaded(encode_batch([offset(3)]), encode_batch([offset(4)]), end=20)
    assert committed(found["g"]) == {("t", 0): 3}


def test_producers_are_in_the_order_in_which_they_were_heard_of_last() -> None:
    partition = LoadedPartition()
    for at, (producer, epoch) in enumerate([(1, 0), (2, 0), (1, 7)]):
        marker = encode_marker((producer, epoch), 3, committed=False, timestamp_ms=1)
        fold_records(partition, stamped(marker, at, 1), at + 1)
    assert [(one, known.producer) for one, known in partition.epochs.items()] == [(2, 0), (1, 7)]


def test_a_record_that_cannot_be_read_costs_only_itself() -> None:
    partition = LoadedPartition()
    broken = BatchRecord(5, offset(1).key, b"\x00\x63")
    strange = BatchRecord(5, b"\x00\x63", b"x")
    batch = encode_batch([broken, strange, offset(4)])
    assert fold_records(partition, batch, 100) == 1
    (body,) = partition.observed(0, 0)
    assert committed(body) == {("t", 0): 4}


def test_a_batch_that_cannot_be_read_ends_the_load_unless_it_belongs_to_nobody() -> None:
    good = stamped(encode_batch([offset(4)]), 10, 3)
    broken = bytearray(stamped(encode_batch([offset(5)]), 20, 3))
    broken[ATTRIBUTES_AT + 1] = GZIP
    partition = LoadedPartition()
    assert fold_records(partition, good + broken, 20) == 0
    with pytest.raises(UnreadableBatch, match="offset 20, gzip"):
        fold_records(partition, good + broken, 21)


def test_the_newest_epochs_of_a_producer_are_loaded() -> None:
    data = encode_batch([offset(7)], (9, 1))
    marker = encode_marker((9, 2), 4, committed=False, timestamp_ms=6)
    again = encode_batch([offset(8)], (9, 3))
    for batches, expected in (([data], (1, -1)), ([data, marker], (2, 4))):
        assert epochs(*batches) == {9: expected}
    assert epochs(data, marker, again, encode_batch([offset(9)])) == {9: (3, 4)}


def epochs(*batches: bytes) -> dict[int, tuple[int, int]]:
    partition = LoadedPartition()
    fold_records(partition, b"".join(batches), 1_000)
    return {producer: (*of,) for producer, of in partition.epochs.items()}


def test_a_marker_of_which_compaction_left_the_batch_alone_ends_nothing() -> None:
    """The last batch of a producer is kept without its record, for its epoch
    (LogCleaner.cleanInto).
    """
    marker = bytearray(encode_marker(PRODUCER, 4, committed=True, timestamp_ms=6))
    (span,) = spans(bytes(marker))
    emptied = marker[:RECORDS_AT]
    struct.pack_into(">i", emptied, LENGTH_AT, RECORDS_AT - LENGTH_AT - 4)
    struct.pack_into(">i", emptied, COUNT_AT, 0)
    assert span.last_offset == span.base_offset
    found = loaded(encode_batch([offset(3)]), bytes(emptied), encode_batch([offset(4)]))
    assert committed(found["g"]) == {("t", 0): 4}
    assert epochs(bytes(emptied)) == {PRODUCER[0]: (PRODUCER[1], -1)}
