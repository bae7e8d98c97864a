"""What a partition's records say of its groups; transactions and their markers among them."""

from __future__ import annotations

import asyncio
from typing import Any

from state.groups.load import LoadedPartition
from state.protocol_errors import ProtocolError
from streaming.gateway.calls import BoundListener, Call
from streaming.gateway.groups.transactions import Producing, Transactions
from streaming.gateway.protocol_errors import GatewayError
from streaming.offsets.batches import NewRecord, encode_batch, encode_marker, stamped
from streaming.offsets.loading import fold_records
from streaming.offsets.posing import GROUP_TOPIC
from streaming.offsets.records import encode_record
from streaming.offsets.txn_markers import TxnMarkers
from streaming.wire.messages import ApiKey, RequestHeader
from tests.unit.offsets.support import Led

PRODUCER = (9, 1)


def offset(at: int | None, group: str = "g") -> NewRecord:
    value = {"offset": at, "leader_epoch": -1, "metadata": "", "commit_ms": 5, "expire_ms": None}
    record = {"topic": "t", "partition": 0, "value": None if at is None else value}
    return NewRecord(5, *encode_record(group, {"type": "offset", **record}))


def group(generation: int | None, name: str = "g") -> NewRecord:
    value = {
        "protocol_type": "consumer",
        "generation": generation,
        "protocol": None,
        "leader": None,
        "state_since_ms": 5,
        "members": [],
    }
    record = {"type": "group_metadata", "value": None if generation is None else value}
    return NewRecord(5, *encode_record(name, record))


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


def test_a_record_that_cannot_be_read_costs_only_itself() -> None:
    partition = LoadedPartition()
    broken = NewRecord(5, offset(1).key, b"\x00\x63")
    strange = NewRecord(5, b"\x00\x63", b"x")
    batch = encode_batch([broken, strange, offset(4)])
    assert fold_records(partition, batch, 100) == 1
    (body,) = partition.observed(0, 0)
    assert committed(body) == {("t", 0): 4}


def markers(*partitions: int, topic: str = GROUP_TOPIC) -> Call:
    marker = {
        "producer_id": PRODUCER[0],
        "producer_epoch": PRODUCER[1],
        "transaction_result": True,
        "coordinator_epoch": 4,
        "topics": [{"name": topic, "partition_indexes": list(partitions)}],
    }
    header = RequestHeader(ApiKey.WRITE_TXN_MARKERS, 1, 1, "broker")
    listener = BoundListener("INTERNAL", "127.0.0.1", 0)
    return Call(header, {"markers": [marker]}, listener, b"")


async def verified(producing: Producing) -> int:
    return 0


def test_markers_are_answered_when_all_have_them_and_told_of() -> None:
    async def play() -> None:
        led, told = Led(), []

        async def completed(producer: int, committed: bool, partitions: list[int]) -> None:
            told.append((producer, committed, partitions))

        writing = TxnMarkers(led.leader, Transactions(verified).settled, completed, lambda: 6)
        led.begin()
        asking = asyncio.create_task(writing.handle(markers(0, 7)))
        while led.leader.logs[0].end < 1:
            await asyncio.sleep(0)
        assert told == []
        for broker in (1, 2, 3):
            led.fetch(broker, 1)
        (answer,) = (await asking)["markers"]
        errors = {
            one["partition_index"]: one["error_code"] for one in answer["topics"][0]["partitions"]
        }
        assert errors == {0: ProtocolError.NONE, 7: GatewayError.NOT_LEADER_OR_FOLLOWER}
        assert told == [(PRODUCER[0], True, [0])]
        (answer,) = (await writing.handle(markers(0, topic="t")))["markers"]
        (partition,) = answer["topics"][0]["partitions"]
        assert partition["error_code"] == GatewayError.NOT_LEADER_OR_FOLLOWER

    asyncio.run(play())
