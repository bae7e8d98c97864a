"""Records of __consumer_offsets, against bytes laid out by hand and against each other."""

from __future__ import annotations

from base64 import b64decode, b64encode
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kafka.record.default_records import DefaultRecordBatchBuilder

from streaming.offsets.batches import (
    BatchRecord,
    encode_batch,
    encode_marker,
    read_batches,
    spans,
    stamped,
)
from streaming.offsets.records import (
    GroupRecord,
    OffsetRecord,
    UnreadableRecord,
    decode_record,
    encode_record,
    offset_records,
)
from streaming.wire.schema_codec import MessageSchema

OFFSET = {"offset": 7, "leader_epoch": 3, "metadata": "m", "commit_ms": 9, "expire_ms": None}
MEMBER = {
    "member": "c-1",
    "instance": None,
    "client": "c",
    "host": "/127.0.0.1",
    "rebalance_timeout_ms": 300_000,
    "session_timeout_ms": 45_000,
    "subscription": "AAEC",
    "assignment": "",
}
GROUP = {
    "protocol_type": "consumer",
    "generation": 4,
    "protocol": "range",
    "leader": "c-1",
    "state_since_ms": 123,
    "members": [MEMBER],
}


def test_an_offset_is_laid_out_as_kafka_does() -> None:
    record = {"type": "offset", "topic": "t", "partition": 2, "value": OFFSET}
    key, value = encode_record("g", record)
    assert key == bytes.fromhex("0001 0001 67 0001 74 00000002")
    assert value == bytes.fromhex("0003 0000000000000007 00000003 0001 6d 0000000000000009")
    assert decode_record(key, value) == OffsetRecord("g", "t", 2, OFFSET)


def test_an_offset_that_expires_has_no_leader_epoch() -> None:
    expiring = OFFSET | {"expire_ms": 11}
    record = {"type": "offset", "topic": "t", "partition": 2, "value": expiring}
    key, value = encode_record("g", record)
    assert value == bytes.fromhex("0001 0000000000000007 0001 6d 0000000000000009 000000000000000b")
    assert decode_record(key, value) == OffsetRecord("g", "t", 2, expiring | {"leader_epoch": -1})


def test_a_group_is_laid_out_as_kafka_does() -> None:
    key, value = encode_record("g", {"type": "group_metadata", "value": GROUP})
    assert key == bytes.fromhex("0002 0001 67")
    assert value is not None
    assert value.startswith(bytes.fromhex("0002 0008") + b"consumer" + bytes.fromhex("00000004"))
    read = MEMBER | {"metadata": MEMBER["subscription"]}
    del read["subscription"]
    assert decode_record(key, value) == GroupRecord("g", GROUP | {"members": [read]})


TEXT = st.text(max_size=40)
NULLABLE = st.none() | TEXT
INT32 = st.integers(-(2**31), 2**31 - 1)
BASE64 = st.binary(max_size=200).map(lambda data: b64encode(data).decode())
MEMBERS = st.fixed_dictionaries(
    {
        "member": TEXT,
        "instance": NULLABLE,
        "client": TEXT,
        "host": TEXT,
        "rebalance_timeout_ms": INT32,
        "session_timeout_ms": INT32,
        "subscription": BASE64,
        "assignment": BASE64,
    }
)


@given(
    st.fixed_dictionaries(
        {
            "protocol_type": TEXT,
            "generation": INT32,
            "protocol": NULLABLE,
            "leader": NULLABLE,
            "state_since_ms": st.none() | st.integers(0, 2**62),
            "members": st.lists(MEMBERS, max_size=3),
        }
    )
)
def test_a_group_is_written_as_by_its_schema(group: dict[str, Any]) -> None:
    """The schema is Kafka's GroupMetadataValue; brokers before 2.3 read version 2."""
    members = [
        {
            "member_id": one["member"],
            "group_instance_id": one["instance"],
            "client_id": one["client"],
            "client_host": one["host"],
            "rebalance_timeout": one["rebalance_timeout_ms"],
            "session_timeout": one["session_timeout_ms"],
            "subscription": b64decode(one["subscription"]),
            "assignment": b64decode(one["assignment"]),
        }
        for one in group["members"]
    ]
    since_ms = group["state_since_ms"]
    body = {
        **{name: group[name] for name in ("protocol_type", "generation", "protocol", "leader")},
        "current_state_timestamp": -1 if since_ms is None else since_ms,
        "members": members,
    }
    _, value = encode_record("g", {"type": "group_metadata", "value": group})
    schema = MessageSchema("GroupMetadataValue", "streaming.wire.schemas")
    version = 2 if all(one["instance"] is None for one in group["members"]) else 3
    assert value == version.to_bytes(2) + schema.encode(version, body)


@pytest.mark.parametrize("kind", ["offset", "group_metadata"])
def test_without_a_value_it_is_a_tombstone(kind: str) -> None:
    record = {"type": kind, "topic": "t", "partition": 0, "value": None}
    key, value = encode_record("g", record)
    assert value is None
    decoded = decode_record(key, value)
    assert decoded is not None
    assert decoded.value is None


def test_what_no_coordinator_of_these_versions_writes() -> None:
    assert decode_record(bytes.fromhex("0003 0001 67"), b"") is None, "of KIP-848's coordinator"
    key, _ = encode_record("g", {"type": "group_metadata", "value": None})
    with pytest.raises(UnreadableRecord, match="version 9"):
        decode_record(key, bytes.fromhex("0009"))
    with pytest.raises(UnreadableRecord):
        decode_record(key[:-1], None)
    with pytest.raises(UnreadableRecord, match="malformed"):
        decode_record(key, bytes.fromhex("0003 0008 636f6e"))
    with pytest.raises(UnreadableRecord, match="without a key"):
        decode_record(None, None)


TEXT = st.text(max_size=20)
VALUES = st.fixed_dictionaries(
    {
        "offset": st.integers(0, 2**63 - 1),
        "leader_epoch": st.integers(-1, 2**31 - 1),
        "metadata": TEXT,
        "commit_ms": st.integers(0, 2**62),
        "expire_ms": st.none(),
    }
)


@given(group=TEXT, topic=TEXT, partition=st.integers(0, 2**31 - 1), value=VALUES)
def test_offsets_survive(group: str, topic: str, partition: int, value: dict) -> None:
    record = {"type": "offset", "topic": topic, "partition": partition, "value": value}
    assert decode_record(*encode_record(group, record)) == OffsetRecord(
        group, topic, partition, value
    )


@given(TEXT, st.lists(st.tuples(TEXT, st.integers(0, 2**31 - 1), VALUES), max_size=4))
def test_rows_of_a_decision_are_the_same_records(
    group: str, offsets: list[tuple[str, int, dict]]
) -> None:
    rows = [[topic, one, *(value[name] for name in OFFSET), 0] for topic, one, value in offsets]
    records = [
        encode_record(group, {"type": "offset", "topic": topic, "partition": one, "value": value})
        for topic, one, value in offsets
    ]
    found = offset_records(group, 7, rows)
    assert list(found) == [BatchRecord(7, *record) for record in records]


def test_a_batch_is_stamped_without_touching_its_checksum() -> None:
    records = [BatchRecord(5, b"k", b"v"), BatchRecord(6, b"l", None)]
    batch = stamped(encode_batch(records), 100, 7)
    (span,) = spans(batch)
    assert (span.base_offset, span.last_offset, span.leader_epoch) == (100, 101, 7)
    (read,) = read_batches(batch)
    assert read.records == records
    assert (read.last_offset, read.leader_epoch, read.transactional) == (101, 7, False)
    assert list(spans(batch + batch[:-1])) == [span], "a batch that is cut off is not there"


def test_batches_of_a_transaction_and_its_marker() -> None:
    (data,) = read_batches(encode_batch([BatchRecord(5, b"k", b"v")], producer=(9, 1)))
    assert (data.producer_id, data.producer_epoch, data.transactional) == (9, 1, True)
    assert data.marker is None
    for committed in (True, False):
        marker = encode_marker((9, 1), 3, committed=committed, timestamp_ms=6)
        (read,) = read_batches(marker)
        assert (read.producer_id, read.producer_epoch, read.transactional) == (9, 1, True)
        assert (read.marker, read.records) == ((committed, 3), [])


RECORDS = st.lists(
    st.builds(
        BatchRecord,
        st.integers(0, 2**40),
        st.binary(max_size=200),
        st.none() | st.binary(max_size=200),
    ),
    min_size=1,
    max_size=200,
)


@given(RECORDS, st.none() | st.tuples(st.integers(0, 2**63 - 1), st.integers(0, 2**15 - 1)))
def test_batches_are_those_of_kafka_pythons_builder(
    records: list[BatchRecord], producer: tuple[int, int] | None
) -> None:
    identity = (*(producer or (-1, -1)), -1 if producer is None else 0)
    builder = DefaultRecordBatchBuilder(2, 0, producer is not None, *identity, 2**31 - 1)
    for offset, record in enumerate(records):
        builder.append(offset, *record, [])
    assert encode_batch(records, producer) == bytes(builder.build())
