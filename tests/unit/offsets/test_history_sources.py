"""Which of several brokers in sync is asked for history: who failed is asked last the next time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import aclosing, asynccontextmanager
from typing import Any

import pytest

from streaming.offsets.batches import UnreadableBatch
from streaming.offsets.follower import EpochEnd
from streaming.offsets.history import History
from streaming.offsets.history_connection import HistoryUnreadable
from tests.unit.offsets.answering_follower import Follower, history_of, offsets, registered_at
from tests.unit.offsets.support import Led

STORAGE_ERROR = 56


class Failing(Follower):
    """Answers Fetch with an error while it has one."""

    error = 0

    def _fetched(self, body: dict[str, Any]) -> dict[str, Any]:
        answer = super()._fetched(body)
        if self.error:
            answer["responses"][0]["partitions"][0] |= {"error_code": self.error, "records": b""}
        return answer


Brokers = dict[int, Failing]
Scenario = Callable[[History, Led, Brokers], Awaitable[None]]


@asynccontextmanager
async def reading(brokers: Brokers) -> AsyncIterator[tuple[History, Led]]:
    """Both partitions are led from offset 100 on; each broker is one of its own."""
    servers = {
        number: await asyncio.start_server(broker.serve, "127.0.0.1", 0)
        for number, broker in brokers.items()
    }
    led = Led()
    moved = [registered_at(server, number) for number, server in servers.items()]
    led.cluster.happen("broker_registrations_changed", "", {"registered": moved})
    led.look()
    for partition in (0, 1):
        for number in (1, 2, 3):
            led.fetch(number, 100, partition)
    try:
        async with history_of(led) as history:
            yield history, led
    finally:
        for server in servers.values():
            server.close()
        for broker in brokers.values():
            broker.answering.set()
            await asyncio.gather(*filter(None, broker.connections))


def run(scenario: Scenario) -> None:
    async def play() -> None:
        brokers = {number: Failing(0, 50, 98) for number in (1, 2, 3)}
        async with reading(brokers) as (history, led):
            await scenario(history, led, brokers)

    asyncio.run(play())


async def whole(history: History, partition: int = 0) -> list[list[int]]:
    async with aclosing(history.whole(partition, 100)) as pieces:
        return [offsets(data) async for data in pieces]


def asked(brokers: Brokers) -> list[int]:
    return [broker.asked for broker in brokers.values()]


def test_who_answers_with_an_error_is_not_asked_again_before_the_others() -> None:
    async def scenario(history: History, led: Led, brokers: Brokers) -> None:
        brokers[1].error = brokers[2].error = STORAGE_ERROR
        for broker in (1, 2):
            with pytest.raises(HistoryUnreadable, match=f"broker {broker} .*KAFKA_STORAGE_ERROR"):
                await whole(history)
        assert await whole(history) == [[0, 50, 98]]
        assert asked(brokers) == [1, 1, 1]
        assert offsets(await history.read(0, 0, 1_000)) == [0, 50, 98]
        assert asked(brokers) == [1, 1, 2]
        brokers[1].error, brokers[3].error = 0, STORAGE_ERROR
        assert await history.read(0, 0, 1_000) == b""
        assert offsets(await history.read(0, 0, 1_000)) == [0, 50, 98]
        assert asked(brokers) == [2, 1, 3], "1 failed the longest time ago"

    run(scenario)


def test_who_does_not_answer_is_asked_last_about_all_partitions() -> None:
    async def scenario(history: History, led: Led, brokers: Brokers) -> None:
        led.leader.facts = {one: led.leader.facts[0] for one in (0, 1)}
        history._timeout_s = 0.2
        brokers[1].answering.clear()
        loads = [asyncio.ensure_future(whole(history, partition)) for partition in (0, 1)]
        failures = await asyncio.gather(*loads, return_exceptions=True)
        assert [str(one) for one in failures] == [
            "broker 1: TimeoutError()",
            "broker 1 did not answer another request",
        ]
        assert asked(brokers) == [1, 0, 0]
        for partition in (0, 1):
            assert await whole(history, partition) == [[0, 50, 98]]

    run(scenario)


@pytest.mark.parametrize("where", ["length", "records"])
def test_who_gives_what_cannot_be_read_is_not_asked_again_before_the_others(where: str) -> None:
    async def scenario(history: History, led: Led, brokers: Brokers) -> None:
        if where == "length":
            brokers[1].batches[50] = bytes(200)
        with pytest.raises(UnreadableBatch):
            async with aclosing(history.whole(0, 100)) as pieces:
                async for _ in pieces:
                    raise UnreadableBatch("records are read by who loads them")
        assert await whole(history) == [[0, 50, 98]]
        assert asked(brokers) == [1, 1, 0]

    run(scenario)


def test_a_broker_whose_older_records_are_not_safe_to_its_knowledge_is_not_alone() -> None:
    async def scenario(history: History, led: Led, brokers: Brokers) -> None:
        brokers[1].batches.clear()
        assert await history.read(0, 0, 1_000) == b""
        assert offsets(await history.read(0, 0, 1_000)) == [0, 50, 98]

    run(scenario)


def test_where_an_epoch_ended_another_witness_says_and_nobody_else() -> None:
    async def scenario(history: History, led: Led, brokers: Brokers) -> None:
        brokers[1].epochs_error = STORAGE_ERROR
        brokers[2].ends = brokers[3].ends = {3: EpochEnd(2, 40)}
        led.leader.logs[0].diverged(2, 50)
        with pytest.raises(HistoryUnreadable, match="broker 1 about epoch 3"):
            await history.epoch_end(0, 3)
        assert await history.epoch_end(0, 3) == EpochEnd(2, 40)
        assert asked(brokers) == [1, 0, 1], "2 is no witness"

    run(scenario)


def test_a_partition_is_read_of_one_broker() -> None:
    async def scenario(history: History, led: Led, brokers: Brokers) -> None:
        for broker in brokers.values():
            del broker.batches[98]
            broker.high_watermark = 52
        pieces = history.whole(0, 100)
        assert offsets(await anext(pieces)) == [0, 50]
        led.leader.logs[0].diverged(1, 100)
        with pytest.raises(HistoryUnreadable, match=r"broker 1 has offset 99 .* no more"):
            await anext(pieces)
        assert asked(brokers) == [1, 0, 0]

    run(scenario)
