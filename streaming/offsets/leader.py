"""This node as leader of __consumer_offsets: appends, and knows what the brokers in sync have.

Lives on the gateway's event loop. Followers tell by fetching how far they are; what all brokers of
the ISR have is safe, whoever dies, and counts once they are min.insync.replicas. Nothing is written
here but in memory.
"""

from __future__ import annotations

import asyncio
import enum
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from streaming.image.cluster_image import ClusterImage
from streaming.offsets.follower import UNKNOWN
from streaming.offsets.partition_facts import PartitionFacts, partition_facts
from streaming.offsets.partition_log import PartitionLog

UNSAFE_MAX_BYTES = 16 * 1024 * 1024
"""What may be kept of a partition that not all brokers in sync have, beyond which no commit is
taken: while the high watermark stands each client tries its own again every few seconds.
"""


@dataclass(frozen=True, slots=True)
class Pending:
    """What waits until a partition's high watermark is at an offset."""

    offset: int
    done: asyncio.Future[None]


class Refusal(enum.StrEnum):
    """Why a partition takes no commit now."""

    FULL = "full"
    TOO_FEW_IN_SYNC = "too few in sync"


class LeaderStopped(Exception):
    """This node leads the partition no more; what was appended may be kept or not."""


class OffsetsLeader:
    """The partitions of the topic that this node leads, by number."""

    def __init__(
        self, now_s: Callable[[], float], min_insync_replicas: Callable[[], int | None]
    ) -> None:
        """Lead nothing yet. now_s: the event loop's clock; min_insync_replicas: the topic's, None
        while it was never read.
        """
        self._now_s = now_s
        self._min_insync_replicas = min_insync_replicas
        self._logs: dict[int, PartitionLog] = {}
        self._broker_epochs: dict[int, int] = {}
        self._pending: dict[int, list[Pending]] = {}
        self._changed = asyncio.Event()
        self.facts: Mapping[int, PartitionFacts] = {}
        self.partition_count = 0

    @property
    def logs(self) -> Mapping[int, PartitionLog]:
        """The partitions that are led."""
        return self._logs

    def lead(self, partitions: Sequence[int]) -> None:
        """Lead partitions from now on, each with a log that has not begun."""
        for partition in partitions:
            epoch = self.facts[partition].announced_epoch
            self._logs[partition] = PartitionLog(partition, epoch, self._now_s())

    def stop(self) -> None:
        """Lead nothing any more; who waits is told."""
        self._logs.clear()
        for waiting in self._pending.values():
            for one in waiting:
                if not one.done.done():
                    one.done.set_exception(LeaderStopped("the leadership has ended"))
        self._pending.clear()
        self._wake()

    def look_at(self, image: ClusterImage, partition_count: int) -> None:
        """Take leader epochs, ISRs and live brokers from the image; partition_count: how many
        partitions the topic has, with those of which the image knows nothing.
        """
        self.facts = partition_facts(image)
        self.partition_count = partition_count
        epochs = {id_: broker.epoch for id_, broker in image.brokers.items()}
        gone = {id_ for id_, epoch in self._broker_epochs.items() if epochs.get(id_) != epoch}
        self._broker_epochs = epochs
        for log in self._logs.values():
            for broker in gone:
                log.drop_follower(broker)
            facts = self.facts.get(log.partition)
            if facts is not None and facts.announced_as_ours and facts.announced_epoch > log.epoch:
                log.change_epoch(facts.announced_epoch, self._now_s())
            self._settle(log)

    def broker_epoch(self, broker_id: int) -> int:
        """Return a registered broker's epoch, -1 for one that is not."""
        return self._broker_epochs.get(broker_id, UNKNOWN)

    def append(self, partition: int, batch: bytes) -> asyncio.Future[None]:
        """Append a batch as append_all does."""
        return self.append_all(partition, [batch])

    def append_all(self, partition: int, batches: Sequence[bytes]) -> asyncio.Future[None]:
        """Append batches; the future ends once all brokers in sync have them.

        Raises LeaderStopped, which the future may raise too.
        """
        log = self._logs.get(partition)
        if log is None or not log.begun:
            raise LeaderStopped(f"partition {partition} is not led")
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        for batch in batches:
            log.append(batch)
        self._pending.setdefault(partition, []).append(Pending(log.end, done))
        self._wake()
        return done

    def refusal(self, partition: int) -> Refusal | None:
        """Return why a partition takes no commit now, None if it does: too much waits for brokers
        in sync, or there are too few of them (Partition.appendRecordsToLeader).
        """
        log, facts = self._logs.get(partition), self.facts.get(partition)
        if log is not None and log.unsafe_bytes > UNSAFE_MAX_BYTES:
            return Refusal.FULL
        if facts is not None and not self._enough_in_sync(facts):
            return Refusal.TOO_FEW_IN_SYNC
        return None

    def fetched(self, log: PartitionLog, broker_id: int, position: int, last_epoch: int) -> None:
        """Take how far a follower is, as PartitionLog.fetched does, and what that makes safe."""
        log.fetched(broker_id, position, last_epoch, self._now_s())
        self._settle(log)

    def lost(self) -> list[int]:
        """Return the partitions of which brokers in sync do not show what was safe."""
        return [
            log.partition
            for log in self._logs.values()
            if (facts := self.facts.get(log.partition)) is not None
            and log.lost_by(facts.isr, facts.leader)
        ]

    async def changed(self, timeout_s: float) -> None:
        """Wait until something was appended, begun or replicated, or the time is over."""
        try:
            async with asyncio.timeout(timeout_s):
                await self._changed.wait()
        except TimeoutError:
            pass

    def awaited(self, log: PartitionLog) -> list[int]:
        """Return the brokers in sync that a log waits for before it begins."""
        facts = self.facts.get(log.partition)
        return [] if facts is None else log.awaited(facts.in_sync)

    def held_up_by(self, log: PartitionLog, lag_max_s: float) -> list[int]:
        """Return those of them that have not fetched from us for longer than lag_max_s."""
        late_s = self._now_s() - lag_max_s
        if log.led_s >= late_s:
            return []
        return [one for one in self.awaited(log) if log.follower(one).asked_s < late_s]

    def wanted_isr(self, log: PartitionLog, lag_max_s: float) -> tuple[int, ...]:
        """Return the ISR as it should be: replicas that have what is safe come in, those that are
        gone or have been behind for longer than lag_max_s go out; before the log has begun those
        that hold it up, if another one has said how far it is, and those whose logs are unclear.

        Source: Partition.maybeExpandIsr, getOutOfSyncReplicas. ZooKeeper's leader always stays. A
        replica whose log directory has failed fetches no more, however far it was.
        """
        facts = self.facts[log.partition]
        if not log.begun:
            late = {*self.held_up_by(log, lag_max_s)}
            said = [one for one in facts.in_sync if log.follower(one).position != UNKNOWN]
            goes = late - {facts.leader} if {*said} - late else set()
            goes |= {*log.unclear(facts.in_sync)}
            return tuple(broker for broker in facts.isr if broker not in goes)
        late_s = self._now_s() - lag_max_s
        stays = {
            broker
            for broker in facts.isr
            if broker == facts.leader
            or (broker in facts.in_sync and log.follower(broker).keeps_up(log.end, late_s))
        }
        joins = {
            broker
            for broker in facts.online
            if broker not in facts.isr and log.follower(broker).position >= log.high_watermark
        }
        return tuple(broker for broker in facts.replicas if broker in stays | joins)

    def _settle(self, log: PartitionLog) -> None:
        facts = self.facts.get(log.partition)
        if facts is None:
            return
        if log.begin_if_agreed(facts.in_sync, facts.leader, self._now_s()):
            self._wake()
        elif self._enough_in_sync(facts) and log.advance(facts.isr):
            waiting = self._pending.get(log.partition, [])
            safe = [one for one in waiting if one.offset <= log.high_watermark]
            self._pending[log.partition] = waiting[len(safe) :]
            for one in safe:
                if not one.done.done():
                    one.done.set_result(None)
            self._wake()

    def _enough_in_sync(self, facts: PartitionFacts) -> bool:
        """Return whether what all of the ISR have is on as many brokers as the topic wants, or on
        all that there are (Partition.effectiveMinIsr).
        """
        least = self._min_insync_replicas()
        return least is not None and len(facts.isr) >= min(least, len(facts.replicas))

    def _wake(self) -> None:
        """Let everybody who waits look again."""
        self._changed.set()
        self._changed = asyncio.Event()
