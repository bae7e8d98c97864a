"""Reads the partitions of one term, each in a task of its own; one that cannot be read is tried
again.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field

from streaming.offsets.batches import UnreadableBatch
from streaming.offsets.history_connection import HistoryUnreadable
from streaming.offsets.partition_log import PartitionLog
from streaming.process.back_off import BackOff
from streaming.process.counters import Counters

logger = logging.getLogger(__name__)

FIRST_PAUSE_S = 1.0
LONGEST_PAUSE_S = 30.0
AT_ONCE = 4
"""How many partitions are read at the same time: one whose broker hangs holds no other up, and what
is read of each is in memory until it is events.
"""


@dataclass(slots=True)
class _Failed:
    """A partition that could not be read: why, and from when on it is tried again (loop time)."""

    back_off: BackOff = field(default_factory=lambda: BackOff(FIRST_PAUSE_S, LONGEST_PAUSE_S))
    reason: str = ""
    not_before_s: float = 0.0


class PartitionLoads:
    """Which partitions of a term are read.

    load: reads a partition up to an offset and appends what stands there; before it appends it may
    raise HistoryUnreadable or UnreadableBatch.
    """

    def __init__(
        self,
        load: Callable[[int, int], Awaitable[None]],
        now_s: Callable[[], float],
        counters: Counters,
    ) -> None:
        """Begin with none."""
        self._load = load
        self._now_s = now_s
        self._counters = counters
        self._at_once = asyncio.Semaphore(AT_ONCE)
        self._under_way: set[int] = set()
        self._done: set[int] = set()
        self._failed: dict[int, _Failed] = {}

    @property
    def any_done(self) -> bool:
        """Whether a partition was read."""
        return bool(self._done)

    @property
    def failures(self) -> Mapping[int, str]:
        """Why partitions could not be read so far, by number."""
        return {partition: failed.reason for partition, failed in self._failed.items()}

    def look(self, logs: Iterable[PartitionLog], tasks: asyncio.TaskGroup) -> None:
        """Begin to read those that have begun and are not read, if it is time to."""
        taken = self._done | self._under_way
        for log in logs:
            if log.begun and log.partition not in taken:
                failed = self._failed.get(log.partition)
                if failed is None or self._now_s() >= failed.not_before_s:
                    self._under_way.add(log.partition)
                    tasks.create_task(self._try(log.partition, log.end))

    async def _try(self, partition: int, end: int) -> None:
        try:
            async with self._at_once:
                await self._load(partition, end)
        except (HistoryUnreadable, UnreadableBatch) as error:
            failed = self._failed.setdefault(partition, _Failed())
            pause_s = failed.back_off.pause_s()
            failed.reason, failed.not_before_s = str(error), self._now_s() + pause_s
            self._counters["failed_group_loads"] += 1
            text = "partition %d of __consumer_offsets cannot be loaded, again in %g s: %s"
            logger.error(text, partition, pause_s, error)
        else:
            self._failed.pop(partition, None)
            self._done.add(partition)
        finally:
            self._under_way.discard(partition)
