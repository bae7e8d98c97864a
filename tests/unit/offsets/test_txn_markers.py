"""Markers: when they are answered and told of, and which come too late."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from state.groups.load import Epochs
from state.protocol_errors import ProtocolError
from streaming.gateway.calls import BoundListener, Call
from streaming.gateway.groups.transactions import Producing, Transactions
from streaming.internal_topics import GROUP_TOPIC
from streaming.offsets import txn_markers
from streaming.offsets.txn_markers import TxnMarkers
from streaming.security.principals import STRANGER
from streaming.wire.apis import GROUP_APIS, ApiKey
from streaming.wire.requests import RequestHeader, decode_request
from streaming.wire.responses import encode_response
from tests.fixtures.waiting import WAIT_S, wait_on_loop
from tests.unit.offsets.support import Led

PRODUCER_ID = 9
EPOCHS = Epochs(1, 4)


def marker_of(topics: list[dict[str, Any]], epochs: Epochs = EPOCHS) -> dict[str, Any]:
    return {
        "producer_id": PRODUCER_ID,
        "producer_epoch": epochs.producer,
        "transaction_result": True,
        "coordinator_epoch": epochs.coordinator,
        "topics": topics,
    }


def markers(*partitions: int, topic: str = GROUP_TOPIC, epochs: Epochs = EPOCHS) -> Call:
    marker = marker_of([{"name": topic, "partition_indexes": list(partitions)}], epochs)
    header = RequestHeader(ApiKey.WRITE_TXN_MARKERS, 1, 1, "broker")
    listener = BoundListener("INTERNAL", "127.0.0.1", 0)
    return Call(header, {"markers": [marker]}, listener, b"", STRANGER)


async def verified(producing: Producing) -> int:
    return 0


class Writing:
    """Markers on their way into partition 0, which all brokers have to have."""

    def __init__(self) -> None:
        self.led = Led()
        self.told: list[tuple[int, bool, list[int]]] = []
        settled = Transactions(verified).settled
        self.markers = TxnMarkers(self.led.leader, settled, self._completed, lambda: 6)

    async def _completed(self, producer: int, committed: bool, partitions: list[int]) -> None:
        self.told.append((producer, committed, partitions))

    @property
    def end(self) -> int:
        return self.led.leader.logs[0].end

    def follow(self) -> None:
        for broker in (1, 2, 3):
            self.led.fetch(broker, self.end)

    async def until_appended(self, end: int) -> None:
        await wait_on_loop("what is appended", lambda: self.end >= end, poll_s=0)

    async def write(self, call: Call) -> dict[int, int]:
        """Return the error code of each partition of the only topic."""
        (answer,) = (await self.markers.handle(call))["markers"]
        (topic,) = answer["topics"]
        return {one["partition_index"]: one["error_code"] for one in topic["partitions"]}

    async def written(self, epochs: Epochs) -> int:
        """Return what a marker of these epochs is answered with."""
        asking = asyncio.create_task(self.write(markers(0, epochs=epochs)))
        async with asyncio.timeout(WAIT_S):
            while not asking.done():
                await asyncio.sleep(0)
                self.follow()
        return (await asking)[0]


def play(scenario: Callable[[Writing], Awaitable[Any]]) -> None:
    async def run() -> None:
        writing = Writing()
        writing.led.begin()
        await scenario(writing)

    asyncio.run(run())


def test_markers_are_answered_when_all_have_them_and_told_of() -> None:
    async def scenario(writing: Writing) -> None:
        writing.led.leader.logs[0].producers.load({})
        asking = asyncio.create_task(writing.write(markers(0, 7)))
        await writing.until_appended(1)
        assert writing.told == []
        writing.follow()
        assert await asking == {0: ProtocolError.NONE, 7: ProtocolError.NOT_LEADER_OR_FOLLOWER}
        assert writing.told == [(PRODUCER_ID, True, [0])]
        elsewhere = await writing.write(markers(0, topic="t"))
        assert elsewhere == {0: ProtocolError.NOT_LEADER_OR_FOLLOWER}

    play(scenario)


def test_brokers_before_protocol_2_8_send_version_0() -> None:
    """MetadataVersion.writeTxnMarkersRequestVersion."""
    header = "001b 0000 00000005 0001 62"
    fields = "0000000000000009 0001 01 00000001 0002 6774 00000001 00000003 00000004"
    request = decode_request(bytes.fromhex(f"{header} 00000001 {fields}"), GROUP_APIS)
    topics = [{"name": "gt", "partition_indexes": [3]}]
    assert request.header == RequestHeader(ApiKey.WRITE_TXN_MARKERS, 0, 5, "b")
    (marker,) = request.body["markers"]
    assert marker | marker_of(topics) == marker
    told = [{"name": "gt", "partitions": [{"partition_index": 3, "error_code": 0}]}]
    body = {"markers": [{"producer_id": PRODUCER_ID, "topics": told}]}
    answer = encode_response(ApiKey.WRITE_TXN_MARKERS, 0, 5, body)
    expected = "00000005 00000001 0000000000000009 00000001 0002 6774 00000001 00000003 0000"
    assert answer == bytes.fromhex(expected)


def test_a_marker_waits_until_its_partition_is_loaded() -> None:
    """Machines hear of the transaction's offsets first."""

    async def scenario(writing: Writing) -> None:
        asking = asyncio.create_task(writing.write(markers(0)))
        for _ in range(10):
            await asyncio.sleep(0)
        assert writing.end == 0
        writing.led.leader.logs[0].producers.load({PRODUCER_ID: EPOCHS})
        await writing.until_appended(1)
        writing.follow()
        assert await asking == {0: ProtocolError.NONE}

    play(scenario)


def test_a_marker_that_brokers_do_not_fetch_is_to_be_sent_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """TransactionMarkerRequestCompletionHandler sends it again after REQUEST_TIMED_OUT."""
    monkeypatch.setattr(txn_markers, "_APPENDED_WITHIN_S", 0.05)

    async def scenario(writing: Writing) -> None:
        writing.led.leader.logs[0].producers.load({})
        async with asyncio.timeout(WAIT_S):
            assert await writing.write(markers(0)) == {0: ProtocolError.REQUEST_TIMED_OUT}
        assert writing.told == []
        assert await writing.written(EPOCHS) == 0
        assert (writing.end, len(writing.told)) == (2, 1)

    play(scenario)


def test_as_many_producers_are_known_as_were_heard_of_last() -> None:
    async def scenario(writing: Writing) -> None:
        producers = writing.led.leader.logs[0].producers
        producers.load({one: EPOCHS for one in range(10_000)})
        producers.committed(0, 5)
        producers.ended(10_000, EPOCHS)
        late = ProtocolError.INVALID_PRODUCER_EPOCH
        assert [producers.commit_error(one, 0) for one in (0, 1, 2, 10_000)] == [
            late,
            0,
            late,
            late,
        ]

    play(scenario)


def test_a_marker_that_comes_too_late_ends_nothing() -> None:
    """ProducerAppendInfo.appendEndTxnMarker."""

    async def scenario(writing: Writing) -> None:
        writing.led.leader.logs[0].producers.load({PRODUCER_ID: EPOCHS})
        late = {
            Epochs(0, 4): ProtocolError.INVALID_PRODUCER_EPOCH,
            Epochs(0, 3): ProtocolError.INVALID_PRODUCER_EPOCH,
            Epochs(1, 3): ProtocolError.TRANSACTION_COORDINATOR_FENCED,
            Epochs(2, 3): ProtocolError.TRANSACTION_COORDINATOR_FENCED,
        }
        for epochs, error in late.items():
            assert await writing.written(epochs) == error
        assert (writing.end, writing.told) == (0, [])
        assert await writing.written(EPOCHS) == 0
        assert await writing.written(Epochs(1, 5)) == 0
        assert await writing.written(EPOCHS) == ProtocolError.TRANSACTION_COORDINATOR_FENCED
        assert (writing.end, len(writing.told)) == (2, 2)

    play(scenario)


def test_what_a_newer_producer_commits_keeps_older_ones_out() -> None:
    async def scenario(writing: Writing) -> None:
        producers = writing.led.leader.logs[0].producers
        producers.load({PRODUCER_ID: EPOCHS})
        producers.committed(PRODUCER_ID, 2)
        assert producers.commit_error(PRODUCER_ID, 1) == ProtocolError.INVALID_PRODUCER_EPOCH
        assert producers.commit_error(PRODUCER_ID, 2) == producers.commit_error(8, 0) == 0
        assert await writing.written(Epochs(1, 9)) == ProtocolError.INVALID_PRODUCER_EPOCH
        assert await writing.written(Epochs(2, 3)) == ProtocolError.TRANSACTION_COORDINATOR_FENCED
        assert await writing.written(Epochs(2, 4)) == 0

    play(scenario)
