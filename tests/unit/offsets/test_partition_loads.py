"""Partitions of a term are read each on its own, and again later if they cannot be."""

from __future__ import annotations

import asyncio
from collections import Counter

from streaming.offsets.batches import UnreadableBatch
from streaming.offsets.history_connection import HistoryUnreadable
from streaming.offsets.partition_loads import PartitionLoads
from streaming.offsets.partition_log import PartitionLog


class Reading:
    """Partitions 0 and 1 have begun, 2 has not; broken: what is raised for each."""

    def __init__(self) -> None:
        self.now_s = 0.0
        self.logs = [PartitionLog(number, 3) for number in range(3)]
        for log in self.logs[:2]:
            log.start = log.end = log.high_watermark = 10 + log.partition
        self.broken: dict[int, Exception] = {}
        self.read: list[tuple[int, int]] = []
        self.counters: Counter[str] = Counter()
        self.loads = PartitionLoads(self.load, lambda: self.now_s, self.counters)

    async def load(self, partition: int, end: int) -> None:
        self.read.append((partition, end))
        if partition in self.broken:
            raise self.broken[partition]

    def look(self, now_s: float) -> list[tuple[int, int]]:
        """What is read at a time."""
        self.now_s, self.read = now_s, []
        asyncio.run(self.loads.look(self.logs))
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
