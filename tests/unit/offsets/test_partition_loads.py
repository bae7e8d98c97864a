"""Partitions of a term are read each on its own, and again later if they cannot be."""

from __future__ import annotations

import asyncio
from collections import Counter

import pytest

from streaming.offsets.batches import UnreadableBatch
from streaming.offsets.history_connection import HistoryUnreadable
from streaming.offsets.partition_loads import AT_ONCE, PartitionLoads
from streaming.offsets.partition_log import PartitionLog
from streaming.offsets.term_over import TermOver
from tests.fixtures.waiting import wait_on_loop
from tests.unit.front.loop_turns import pass_the_loop


class Reading:
    """Partitions 0 and 1 have begun, 2 has not; broken: what is raised for each; hangs: those that
    are not read before `answers` is set.
    """

    def __init__(self, count: int = 3) -> None:
        self.now_s = 0.0
        self.logs = [PartitionLog(number, 3) for number in range(count)]
        for log in self.logs[:-1]:
            log.start = log.end = log.high_watermark = 10 + log.partition
        self.broken: dict[int, Exception] = {}
        self.hangs: set[int] = set()
        self.answers = asyncio.Event()
        self.read: list[tuple[int, int]] = []
        self.counters: Counter[str] = Counter()
        self.loads = PartitionLoads(self.load, lambda: self.now_s, self.counters)

    async def load(self, partition: int, end: int) -> None:
        self.read.append((partition, end))
        if partition in self.hangs:
            await self.answers.wait()
        if partition in self.broken:
            raise self.broken[partition]

    def look(self, now_s: float) -> list[tuple[int, int]]:
        """What is read at a time."""

        async def scenario() -> None:
            async with asyncio.TaskGroup() as tasks:
                self.loads.look(self.logs, tasks)

        self.now_s, self.read = now_s, []
        asyncio.run(scenario())
        return self.read


def test_each_partition_that_has_begun_is_read_once() -> None:
    reading = Reading()
    assert not reading.loads.any_done
    assert reading.look(0) == [(0, 10), (1, 11)]
    assert reading.loads.any_done
    assert reading.look(100) == []
    assert not reading.loads.failures


def test_one_that_cannot_be_read_is_tried_again_on_its_own_and_later_each_time() -> None:
    reading = Reading()
    reading.broken[0] = UnreadableBatch("batch at offset 7: magic 1")
    assert reading.look(0) == [(0, 10), (1, 11)]
    assert reading.loads.failures == {0: "batch at offset 7: magic 1"}
    tries = [now_s for now_s in range(200) if reading.look(now_s)]
    assert tries == [1, 3, 7, 15, 31, 61, 91, 121, 151, 181]
    assert reading.counters["failed_group_loads"] == 11
    reading.broken[0] = HistoryUnreadable("nobody has it")
    reading.look(300)
    assert reading.loads.failures == {0: "nobody has it"}
    reading.broken.clear()
    assert reading.look(400) == [(0, 10)]
    assert not reading.loads.failures


def test_one_that_hangs_holds_no_other_up_and_is_not_read_twice() -> None:
    async def scenario() -> None:
        reading = Reading()
        reading.hangs = {0}
        async with asyncio.TaskGroup() as tasks:
            reading.loads.look(reading.logs, tasks)
            await wait_on_loop("partition 1", lambda: reading.loads.any_done, poll_s=0)
            reading.loads.look(reading.logs, tasks)
            await asyncio.sleep(0)
            assert reading.read == [(0, 10), (1, 11)]
            reading.answers.set()
        reading.loads.look(reading.logs, tasks)
        assert reading.read == [(0, 10), (1, 11)]

    asyncio.run(scenario())


def test_a_few_are_read_at_once() -> None:
    async def scenario() -> None:
        reading = Reading(11)
        reading.hangs = set(range(10))
        async with asyncio.TaskGroup() as tasks:
            reading.loads.look(reading.logs, tasks)
            await pass_the_loop()
            assert len(reading.read) == AT_ONCE
            reading.answers.set()
        assert sorted(reading.read) == [(number, 10 + number) for number in range(10)]

    asyncio.run(scenario())


def test_what_is_being_read_when_the_term_ends_is_no_failure() -> None:
    async def scenario() -> None:
        reading = Reading()
        reading.hangs = {0}
        with pytest.raises(ExceptionGroup):
            async with asyncio.TaskGroup() as tasks:
                reading.loads.look(reading.logs, tasks)
                await wait_on_loop("both", lambda: len(reading.read) == 2, poll_s=0)
                raise TermOver("it is begun anew")
        assert not reading.loads.failures
        assert not reading.counters

    asyncio.run(scenario())
