"""Brokers lead and follow, we lead, everybody dies at any moment: an acknowledged record stays.

And on as many brokers as min.insync.replicas says, if we acknowledged it.
Brokers are models that keep their logs and cut them off as ReplicaFetcherThread does; the
controller's machine elects and keeps ISRs, and what leads here is what leads in the front.
"""

from __future__ import annotations

import asyncio
import random
from typing import Any

import pytest
from hypothesis import settings

from streaming.offsets.batches import BatchRecord, encode_batch, read_batches, stamped
from streaming.offsets.history_connection import HistoryUnreadable
from streaming.offsets.isr_maintenance import IsrMaintenance
from streaming.offsets.partition_log import UNKNOWN, EpochEnd
from streaming.offsets.replica_fetch import ReplicaFetch
from tests.unit.gateway.support import BROKERS
from tests.unit.offsets.support import GROUP_TOPIC, Led

LAG_S = 30.0
STEPS = 120
CONVERGES_IN = 40

Answer = dict[str, Any]


class Replica:
    """A broker's log: (leader epoch, value) by offset. epochs: (leader epoch, first offset), also
    of an epoch in which it led and appended nothing.
    """

    def __init__(self) -> None:
        self.log: list[tuple[int, bytes]] = []
        self.epochs: list[tuple[int, int]] = []

    @property
    def last_epoch(self) -> int:
        return self.epochs[-1][0] if self.epochs else UNKNOWN

    def lead(self, epoch: int) -> None:
        if epoch > self.last_epoch:
            self.epochs.append((epoch, len(self.log)))

    def append(self, epoch: int, value: bytes) -> None:
        self.lead(epoch)
        self.log.append((epoch, value))

    def end_of(self, epoch: int) -> EpochEnd | None:
        """LeaderEpochFileCache.endOffsetFor."""
        if epoch == self.last_epoch:
            return EpochEnd(epoch, len(self.log))
        later = [start for one, start in self.epochs if one > epoch]
        if epoch == UNKNOWN or not later:
            return None
        earlier = [one for one, _ in self.epochs if one <= epoch]
        return EpochEnd(earlier[-1] if earlier else epoch, later[0])

    def cut_off(self, said: EpochEnd) -> None:
        """AbstractFetcherThread.getOffsetTruncationState, LeaderEpochFileCache.truncateFromEnd."""
        own = None if said.epoch == UNKNOWN else self.end_of(said.epoch)
        ends = [said.end_offset] if own is None else [own.end_offset]
        if own is not None and own.epoch == said.epoch:
            ends.append(said.end_offset)
        del self.log[min(ends) :]
        self.epochs = [(epoch, start) for epoch, start in self.epochs if start < len(self.log)]

    def batches(self, offset: int, end: int) -> bytes:
        found = enumerate(self.log[offset:end], offset)
        return b"".join(stamped(batch(value), at, epoch) for at, (epoch, value) in found)

    def take(self, data: bytes) -> None:
        for one in read_batches(data):
            assert one.base_offset == len(self.log), "a follower takes what comes next"
            self.append(one.leader_epoch, one.records[0].value)


def batch(value: bytes) -> bytes:
    return encode_batch([BatchRecord(1, b"k", value)])


class Replication(Led):
    """acked: (offset, value) of what was acknowledged, by a broker or by us."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        self.leader.stop()
        self.chance = random.Random(seed)
        self.min_insync_replicas = self.least = self.chance.choice([1, 2, 3])
        self.brokers_are_written_to = self.chance.random() < 0.7
        self.replicas = {broker: Replica() for broker in (1, 2, 3)}
        self.alive = {1, 2, 3}
        self.acked: list[tuple[int, bytes]] = []
        self.too_few = 0
        self.appended = 0
        self.registered = 200
        self.fetching = ReplicaFetch(self.leader, self.cluster.image, self.older, self.epoch_end)
        self.maintenance = IsrMaintenance(
            self.leader, self.cluster, lag_max_s=LAG_S, timeout_s=10.0
        )

    @property
    def facts(self) -> Any:
        return self.leader.facts[0]

    def value(self) -> bytes:
        self.appended += 1
        return b"%d" % self.appended

    # what a broker answers about its log

    async def older(self, partition: int, offset: int, max_bytes: int) -> bytes:
        log = self.leader.logs[partition]
        for broker in self.facts.in_sync:
            if log.follower(broker).position > offset:
                return self.replicas[broker].batches(offset, offset + 3)
        return b""

    async def epoch_end(self, partition: int, last_epoch: int) -> EpochEnd:
        for broker in self.leader.logs[partition].witnesses(self.facts.in_sync):
            if found := self.replicas[broker].end_of(last_epoch):
                return found
        raise HistoryUnreadable("nobody knows")

    # brokers die and come back

    def die(self) -> None:
        broker = self.chance.choice(sorted(self.alive))
        self.alive.discard(broker)
        self.cluster.happen("broker_registrations_changed", "", {"unregistered": [broker]})
        self.look()

    def come_back(self) -> None:
        for broker in sorted({1, 2, 3} - self.alive)[:1]:
            self.registered += 1
            one = BROKERS[broker - 1] | {"epoch": self.registered}
            self.cluster.happen("broker_registrations_changed", "", {"registered": [one]})
            self.alive.add(broker)
            self.look()

    # a broker leads

    def change_isr(self, isr: set[int]) -> None:
        facts = self.facts
        change = {
            "partition": 0,
            "leader_epoch": facts.leader_epoch,
            "partition_epoch": facts.partition_epoch,
            "recovery": facts.recovery,
            "isr": sorted(isr),
        }
        body = {
            "request_id": "r",
            "broker_id": facts.leader,
            "broker_epoch": self.leader.broker_epoch(facts.leader),
            "version": 3,
            "topic": GROUP_TOPIC,
            "topic_id": None,
            "partitions": [change],
        }
        self.cluster.happen("alter_partition_requested", GROUP_TOPIC, body)
        self.look()

    def broker_leads(self) -> None:
        """One step of a leader that is a broker, with what it cannot know chosen by chance."""
        leader = self.replicas[self.facts.leader]
        leader.lead(self.facts.leader_epoch)
        others = sorted(self.alive - {self.facts.leader})
        kind = self.chance.choice(["append", "follow", "follow", "follow", "shrink", "grow"])
        if kind == "append" and self.brokers_are_written_to:
            leader.append(self.facts.leader_epoch, self.value())
        elif others:
            broker = self.chance.choice(others)
            follower = self.replicas[broker]
            said = leader.end_of(follower.last_epoch)
            parts = said is not None and (
                said.epoch < follower.last_epoch or said.end_offset < len(follower.log)
            )
            safe = min(self.common(leader, self.replicas[one]) for one in self.facts.isr)
            if kind == "follow" and parts and said is not None:
                follower.cut_off(said)
            elif kind == "follow" and len(follower.log) < len(leader.log):
                follower.append(*leader.log[len(follower.log)])
            elif kind == "shrink" and len(self.facts.isr) > 1:
                self.change_isr({*self.facts.isr} - {broker})
            elif kind == "grow" and not parts and len(follower.log) >= safe:
                self.change_isr({*self.facts.isr, broker})
        everybody = min(self.common(leader, self.replicas[one]) for one in self.facts.isr)
        for offset in range(everybody):
            self.acknowledge(offset, leader.log[offset][1])

    @staticmethod
    def common(one: Replica, other: Replica) -> int:
        pairs = zip(one.log, other.log, strict=False)
        return next(
            (at for at, (left, right) in enumerate(pairs) if left != right),
            min(len(one.log), len(other.log)),
        )

    def acknowledge(self, offset: int, value: bytes) -> None:
        if (offset, value) not in self.acked:
            self.acked.append((offset, value))

    # we lead

    def take_over(self) -> None:
        self.leader.lead([0])
        self.raise_epochs()

    async def fetches(self, broker: int) -> None:
        """A broker fetches once from us."""
        replica, log = self.replicas[broker], self.leader.logs[0]
        asked = self.asked(
            {
                "current_leader_epoch": log.epoch,
                "fetch_offset": len(replica.log),
                "last_fetched_epoch": replica.last_epoch,
                "partition_max_bytes": self.chance.choice([1, 200, 10_000]),
            },
            broker=broker,
        )
        asked.body["max_wait_ms"] = 0
        answer = (await self.fetching.handle(asked))["responses"][0]["partitions"][0]
        said = answer.get("diverging_epoch")
        if said and said["epoch"] >= 0:  # FetchResponse.isDivergingEpoch
            replica.cut_off(EpochEnd(said["epoch"], said["end_offset"]))
        elif not answer["error_code"]:
            replica.take(answer["records"])

    def append_ours(self) -> None:
        log, value = self.leader.logs[0], self.value()
        offset = log.end
        done = self.leader.append(0, batch(value))
        done.add_done_callback(lambda ended: ended.exception() or self.is_safe(offset, value))

    def is_safe(self, offset: int, value: bytes) -> None:
        have = [one for one in self.replicas.values() if (offset, value) in self.has(one.log)]
        self.too_few += len(have) < self.least
        self.acknowledge(offset, value)

    async def we_lead(self) -> None:
        if 0 not in self.leader.logs:
            self.take_over()
        self.now_s += self.chance.choice([0.1, 1.0, 20.0])
        kind = self.chance.choice(["fetch"] * 6 + ["append", "append", "maintenance"])
        if kind == "fetch" and self.alive:
            await self.fetches(self.chance.choice(sorted(self.alive)))
        elif kind == "append" and self.leader.logs[0].begun:
            self.append_ours()
        elif kind == "maintenance":
            await self.maintenance.look()
            self.look()
        await asyncio.sleep(0)
        if self.leader.lost():
            raise AssertionError("nobody has lost anything")

    # what must hold

    def check(self) -> None:
        for broker in self.facts.isr:
            log = self.replicas[broker].log
            lost = [one for one in self.acked if one not in self.has(log)]
            assert not lost, f"broker {broker} is in the ISR without {lost}: {log}"
        assert not self.too_few, f"acknowledged with fewer than {self.least} replicas"

    @staticmethod
    def has(log: list[tuple[int, bytes]]) -> set[tuple[int, bytes]]:
        return {(offset, value) for offset, (_, value) in enumerate(log)}

    async def play(self) -> None:
        ours = False
        for _ in range(STEPS):
            turn = self.chance.random()
            if turn < 0.04:
                self.leader.stop()
                ours = not ours or self.chance.random() < 0.3  # or taken over anew
            elif turn < 0.08 and self.alive:
                self.die()
            elif turn < 0.14 or self.facts.leader < 0:
                self.come_back()
            elif ours:
                await self.we_lead()
            else:
                self.broker_leads()
            await asyncio.sleep(0)
            self.check()
        await self.converge()

    async def converge(self) -> None:
        """With all brokers back, all have the same."""
        while len(self.alive) < 3:
            self.come_back()
        self.leader.stop()
        self.take_over()
        for turn in range(CONVERGES_IN):
            for broker in (1, 2, 3):
                await self.fetches(broker)
            if turn == 10:
                self.append_ours()
            await asyncio.sleep(0)
            self.check()
        one, two, three = (replica.log for replica in self.replicas.values())
        assert one == two == three
        assert one[-1][1] == b"%d" % self.appended


@pytest.mark.parametrize("start", range(0, 4_000, 1_000))
def test_what_was_acknowledged_is_on_every_broker_that_may_lead(start: int) -> None:
    for seed in range(start, start + settings.default.max_examples // 2):
        asyncio.run(Replication(seed).play())
