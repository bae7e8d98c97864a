"""What is read from a broker that follows us: records before our log, and where epochs ended."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest

from streaming.offsets.follower import EpochEnd
from streaming.offsets.history import History
from streaming.offsets.history_connection import HistoryUnreadable
from streaming.wire.apis import ApiKey
from streaming.wire.exchange import ANSWER_MAX_BYTES
from tests.unit.offsets.answering_follower import Follower, history_of, offsets, registered_at
from tests.unit.offsets.support import Led


@asynccontextmanager
async def reading(follower: Follower) -> AsyncIterator[tuple[History, Led]]:
    """Partition 0 is led from offset 100 on; all brokers in sync are this one."""
    server = await asyncio.start_server(follower.serve, "127.0.0.1", 0)
    led = Led()
    moved = [registered_at(server, broker) for broker in (1, 2, 3)]
    led.cluster.happen("broker_registrations_changed", "", {"registered": moved})
    led.look()
    led.begin(100)
    try:
        async with history_of(led) as history:
            yield history, led
    finally:
        server.close()
        await asyncio.gather(*filter(None, follower.connections))


def run(follower: Follower, scenario: Callable[[History, Led], Awaitable[None]]) -> None:
    async def play() -> None:
        async with reading(follower) as (history, led):
            await scenario(history, led)

    asyncio.run(play())


def test_a_partition_is_read_from_its_beginning_to_its_end() -> None:
    async def scenario(history: History, _: Led) -> None:
        assert [offsets(data) async for data in history.whole(0, 100)] == [[0, 50, 98]]

    run(Follower(0, 50, 98), scenario)


def test_a_history_is_read_whole_when_the_cleaner_took_its_last_records() -> None:
    async def scenario(history: History, _: Led) -> None:
        assert [offsets(data) async for data in history.whole(0, 100)] == [[0, 50]]

    run(Follower(0, 50), scenario)


def test_what_is_not_safe_yet_is_waited_for() -> None:
    follower = Follower(0, 50)
    follower.high_watermark = 52

    async def scenario(history: History, _: Led) -> None:
        pieces = history.whole(0, 100)
        assert offsets(await anext(pieces)) == [0, 50]
        rest = asyncio.ensure_future(anext(pieces, None))
        asked = follower.asked
        while follower.asked < asked + 2:
            await asyncio.sleep(0.01)
        assert not rest.done()
        follower.high_watermark = 100
        assert await rest is None

    run(follower, scenario)


def test_what_never_gets_safe_is_not_waited_for_for_ever() -> None:
    """A few partitions are read at once, others wait for them."""
    follower = Follower(0, 50)
    follower.high_watermark = 52

    async def scenario(history: History, _: Led) -> None:
        history._timeout_s = 0.2
        pieces = history.whole(0, 100)
        assert offsets(await anext(pieces)) == [0, 50]
        with pytest.raises(HistoryUnreadable, match=r"from 52: broker 1 .* 100, .* stays at 52"):
            await anext(pieces)

    run(follower, scenario)


def test_a_partition_whose_beginning_was_deleted_is_read_from_what_is_left() -> None:
    follower = Follower(50, 98)
    follower.start = 50

    async def scenario(history: History, _: Led) -> None:
        assert [offsets(data) async for data in history.whole(0, 100)] == [[50, 98]]
        assert offsets(await history.read(0, 0, 1_000)) == [50, 98]

    run(follower, scenario)


def test_where_an_epoch_ended_a_broker_in_sync_says() -> None:
    follower = Follower(0)
    follower.ends = {3: EpochEnd(2, 40)}

    async def scenario(history: History, led: Led) -> None:
        assert await history.epoch_end(0, 3) == EpochEnd(2, 40)
        assert await history.epoch_end(0, 4) is None, "all epochs there are older"
        for broker in (1, 2, 3):
            led.leader.logs[0].diverged(broker, 100)
        with pytest.raises(HistoryUnreadable, match="no broker in sync has all of partition 0"):
            await history.epoch_end(0, 3)

    run(follower, scenario)


def test_how_far_its_logs_go_a_broker_says_of_those_that_it_follows_now() -> None:
    follower = Follower(0)

    async def scenario(history: History, led: Led) -> None:
        assert await history.log_ends(1, {0: 9, 4: 8}) == {0: 103}
        follower.off_by["partition_index"] = 1
        with pytest.raises(HistoryUnreadable, match=r"partitions \[0\]: an answer about \[1\]"):
            await history.log_ends(1, {0: 9})
        led.cluster.happen("broker_registrations_changed", "", {"unregistered": [1]})
        with pytest.raises(HistoryUnreadable, match="broker 1 is not registered on INTERNAL"):
            await history.log_ends(1, {0: 9})

    run(follower, scenario)


def test_a_broker_in_sync_that_has_heard_of_a_later_leader_says_so() -> None:
    follower = Follower(0)

    async def scenario(history: History, led: Led) -> None:
        assert await history.is_followed(0, follower.epoch)
        assert not await history.is_followed(0, follower.epoch - 1)
        led.cluster.happen("broker_registrations_changed", "", {"unregistered": [1, 2, 3]})
        with pytest.raises(HistoryUnreadable, match="no broker in sync can say who leads"):
            await history.is_followed(0, follower.epoch)

    run(follower, scenario)


@pytest.mark.parametrize("known", [10, 11, 17])
def test_what_a_broker_takes_for_committed_it_says_in_the_version_that_it_knows(known: int) -> None:
    follower = Follower(0)
    follower.highest[ApiKey.FETCH] = known

    async def scenario(history: History, _: Led) -> None:
        history.epochs_told = False
        assert await history.committed(1, 0, 103) == 100
        follower.start = 104
        with pytest.raises(
            HistoryUnreadable, match="partition 0 from 103: error OFFSET_OUT_OF_RANGE"
        ):
            await history.committed(1, 0, 103)

    run(follower, scenario)
    assert follower.versions == {(ApiKey.FETCH, min(known, 11))}


def test_a_broker_that_knows_no_request_which_it_is_sent_is_named() -> None:
    follower = Follower(0)
    del follower.highest[ApiKey.LIST_OFFSETS]

    async def scenario(history: History, led: Led) -> None:
        with pytest.raises(HistoryUnreadable, match=r"broker 1: .*does not support LIST_OFFSETS"):
            await history.log_ends(1, {0: 9})

    run(follower, scenario)


def test_an_answer_that_nobody_waited_for_is_not_taken_for_the_next_one() -> None:
    follower = Follower(0, 50)

    async def scenario(history: History, _: Led) -> None:
        follower.answering.clear()
        cancelled = asyncio.ensure_future(history.read(0, 0, 1_000))
        while not follower.asked:
            await asyncio.sleep(0.01)
        cancelled.cancel()
        await asyncio.gather(cancelled, return_exceptions=True)
        follower.answering.set()
        assert offsets(await history.read(0, 50, 1_000)) == [50]
        assert len(follower.connections) == 2

    run(follower, scenario)


def test_a_broker_that_hung_up_meanwhile_is_connected_to_again() -> None:
    follower = Follower(0, 50)
    follower.hangs_up = True

    async def scenario(history: History, _: Led) -> None:
        for offset in (0, 50):
            assert offset in offsets(await history.read(0, offset, 1_000))
            await asyncio.gather(*filter(None, follower.connections))
            await asyncio.sleep(0.01)  # the loop hears of the end at its next look at the sockets
        assert len(follower.connections) == 2

    run(follower, scenario)


@pytest.mark.parametrize(
    ("number", "said"),
    [("correlation_id", "answer 3 to request 2"), ("partition_index", "an answer about [1]")],
)
def test_an_answer_to_another_question_is_refused(number: str, said: str) -> None:
    follower = Follower(0)

    async def scenario(history: History, _: Led) -> None:
        follower.off_by[number] = 1
        with pytest.raises(HistoryUnreadable, match=re.escape(said)):
            await anext(history.whole(0, 100))
        follower.off_by.clear()
        assert offsets(await history.read(0, 0, 1_000)) == [0]

    run(follower, scenario)


def test_a_broker_that_says_what_is_no_answer_is_not_waited_for() -> None:
    class Stranger(Follower):
        async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            self.connections.append(asyncio.current_task())
            writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
            await reader.read()
            writer.close()

    async def scenario(history: History, _: Led) -> None:
        with pytest.raises(HistoryUnreadable, match="frame of 1213486160 bytes exceeds the limit"):
            await anext(history.whole(0, 100))

    run(Stranger(0), scenario)


def test_no_more_is_asked_for_than_an_answer_can_hold() -> None:
    follower = Follower(0)

    async def scenario(history: History, _: Led) -> None:
        for wanted in (1_000, 2**31 - 1):
            assert offsets(await history.read(0, 0, wanted)) == [0]

    run(follower, scenario)
    assert [limit == 1_000 for limit in follower.limits] == [True, False]
    assert max(follower.limits) < ANSWER_MAX_BYTES


def test_a_broker_that_throttles_consumers_is_asked_again() -> None:
    follower = Follower(0, 50)

    async def scenario(history: History, _: Led) -> None:
        follower.without = [{"throttle_time_ms": 50}, {"throttle_time_ms": 1}]
        began_s = asyncio.get_running_loop().time()
        assert [offsets(data) async for data in history.whole(0, 52)] == [[0, 50]]
        assert asyncio.get_running_loop().time() - began_s >= 0.05
        assert (follower.asked, len(follower.connections)) == (3, 1)

    run(follower, scenario)


@pytest.mark.parametrize(
    ("without", "said"),
    [
        ({}, "partition 0: an answer about []"),
        ({"error_code": -1, "throttle_time_ms": 50}, "broker 1: error UNKNOWN_SERVER_ERROR"),
    ],
)
def test_an_answer_about_nothing_is_refused(without: dict[str, int], said: str) -> None:
    follower = Follower(0)

    async def scenario(history: History, _: Led) -> None:
        follower.without = [without] * 2
        with pytest.raises(HistoryUnreadable, match=re.escape(said)):
            await anext(history.whole(0, 100))
        assert await history.read(0, 0, 1_000) == b""

    run(follower, scenario)


@asynccontextmanager
async def asked_elsewhere(
    follower: Follower, history: History, led: Led, *, gone: int = 0
) -> AsyncIterator[None]:
    """Broker 2, or 1 if none is gone, is at another address and is asked there."""
    server = await asyncio.start_server(follower.serve, "127.0.0.1", 0)
    moved = registered_at(server, 2 if gone else 1)
    changed = {"updated": [moved], "unregistered": [gone] if gone else []}
    led.cluster.happen("broker_registrations_changed", "", changed)
    assert offsets(await history.read(0, 0, 1_000)) == [0]
    yield
    server.close()


@pytest.mark.parametrize("gone", [0, 1])
def test_where_a_broker_is_no_more_no_connection_is_kept(gone: int) -> None:
    follower = Follower(0)

    async def scenario(history: History, led: Led) -> None:
        await history.read(0, 0, 1_000)
        async with asked_elsewhere(follower, history, led, gone=gone):
            (first, second) = filter(None, follower.connections)
            await first
            assert not second.done()

    run(follower, scenario)


def test_a_connection_that_is_in_use_stays_though_its_broker_moved() -> None:
    follower = Follower(0)

    async def scenario(history: History, led: Led) -> None:
        asks = history._connection(history._source(0, [1], ""))
        async with asks as connection:
            await connection.earliest(0)
            async with asked_elsewhere(follower, history, led):
                assert await connection.earliest(0) == 0
                assert len(follower.connections) == 2

    run(follower, scenario)
