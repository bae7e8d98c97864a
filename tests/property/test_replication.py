"""Brokers lead and follow, we lead, everybody dies at any moment: an acknowledged record stays.

And on as many brokers as min.insync.replicas says, if we acknowledged it.
Brokers are models that keep their logs and cut them off as ReplicaFetcherThread does, those of old
protocols once they are told where their last leader epoch ended; the controller's machine elects
and keeps ISRs, and what leads here is what leads in the front.
"""

from __future__ import annotations

import asyncio
import random
from asyncio import Future
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import settings

from streaming.internal_topics import GROUP_TOPIC
from streaming.offsets.follower import UNKNOWN, EpochEnd
from streaming.offsets.follower_reports import FollowerReports
from streaming.offsets.history_connection import HistoryUnreadable
from streaming.offsets.isr_maintenance import IsrMaintenance
from streaming.offsets.replica_epochs import ReplicaEpochs
from streaming.offsets.replica_fetch import ReplicaFetch
from tests.property.replica import Replica, batch
from tests.unit.gateway.support import BROKERS
from tests.unit.offsets.support import Led

LAG_S = 30.0
STEPS = 120
CONVERGES_IN = 40

Answer = dict[str, Any]


class Replication(Led):
    """acked: (offset, value) of what was acknowledged, by a broker or by us. doubtful: whether a
    broker has died since we lead of which nobody may be able to say that it has everything.
    """

    def __init__(self, seed: int) -> None:
        super().__init__()
        self.leader.stop()
        self.chance = random.Random(seed)
        self.min_insync_replicas = self.least = self.chance.choice([1, 2, 3])
        self.brokers_are_written_to = self.chance.random() < 0.7
        kinds = [(True, 0.0), (True, 0.5), (False, 1.0), (False, 0.5)]
        self.told, asks = self.chance.choice(kinds)
        self.replicas = {broker: Replica(self.chance.random() < asks) for broker in (1, 2, 3)}
        self.alive = {1, 2, 3}
        self.acked: list[tuple[int, bytes]] = []
        self.too_few = 0
        self.appended = 0
        self.registered = 200
        self.doubtful = False
        reports = FollowerReports(
            self.leader, self.epoch_end, None if self.told else self.committed
        )
        self.fetching = ReplicaFetch(
            self.leader, self.cluster.image, reports, self.older, self.consumers
        )
        self.asking = ReplicaEpochs(self.leader, reports, self.log_ends, self.consumers, wait_s=0)
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
                safe = self.replicas[broker].high_watermark  # all that a consumer may read
                return self.replicas[broker].batches(offset, min(offset + 3, safe))
        return b""

    async def epoch_end(self, partition: int, last_epoch: int) -> EpochEnd | None:
        for broker in self.leader.logs[partition].witnesses(self.facts.in_sync):
            return self.replicas[broker].end_of(last_epoch)
        raise HistoryUnreadable("nobody knows")

    async def committed(self, broker: int, partition: int, end: int) -> int:
        assert end == len(self.replicas[broker].log)
        return self.replicas[broker].high_watermark

    async def log_ends(self, broker: int, epochs: Mapping[int, int]) -> Mapping[int, int]:
        return {partition: len(self.replicas[broker].log) for partition in epochs}

    # brokers die and come back

    def die(self) -> None:
        broker = self.chance.choice(sorted(self.alive))
        self.alive.discard(broker)
        alone = set(self.facts.isr) <= {broker}
        self.doubtful = self.doubtful or alone or not self.told
        checkpointed = self.chance.choice([0, self.replicas[broker].high_watermark])
        self.replicas[broker].high_watermark = checkpointed
        self.cluster.happen("broker_registrations_changed", "", {"unregistered": [broker]})
        self.look()

    def come_back(self) -> None:
        for broker in sorted({1, 2, 3} - self.alive)[:1]:
            self.registered += 1
            one = BROKERS[broker - 1] | {"epoch": self.registered}
            self.cluster.happen("broker_registrations_changed", "", {"registered": [one]})
            self.alive.add(broker)
            self.replicas[broker].truncate(len(self.replicas[broker].log))  # as Log begins
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
        leader.hears(everybody)
        if others and kind == "follow" and not parts:
            follower.hears(leader.high_watermark)
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
        self.doubtful = False
        self.leader.lead([0])
        self.raise_epochs()

    async def follows(self, broker: int) -> None:
        """A broker asks us once."""
        replica, log = self.replicas[broker], self.leader.logs[0]
        if not replica.asks or replica.asked_in == log.epoch:
            await self.fetches(broker)
        elif replica.last_epoch == UNKNOWN:
            replica.truncate(replica.high_watermark)
            replica.asked_in = log.epoch
        else:
            await self.asks(broker)

    async def asks(self, broker: int) -> None:
        """A broker asks us where its last leader epoch ended."""
        replica, log = self.replicas[broker], self.leader.logs[0]
        named = {"current_leader_epoch": log.epoch, "leader_epoch": replica.last_epoch}
        asked = self.asked_about_epochs({"partition": 0} | named, broker)
        (topic,) = (await self.asking.handle(asked))["topics"]
        (answer,) = topic["partitions"]
        if not answer["error_code"]:
            said = EpochEnd(answer["leader_epoch"], answer["end_offset"])
            if replica.cut_off(said):
                replica.asked_in = log.epoch

    async def fetches(self, broker: int) -> None:
        """A broker fetches once from us."""
        replica, log = self.replicas[broker], self.leader.logs[0]
        asked = self.asked(
            {
                "current_leader_epoch": log.epoch,
                "fetch_offset": len(replica.log),
                "last_fetched_epoch": UNKNOWN if replica.asks else replica.last_epoch,
                "partition_max_bytes": self.chance.choice([1, 200, 10_000]),
            },
            broker=broker,
        )
        asked.body["max_wait_ms"] = 0
        answer = (await self.fetching.handle(asked))["responses"][0]["partitions"][0]
        said = answer.get("diverging_epoch")
        if said:
            assert said["epoch"] >= 0, "a broker takes no notice (FetchResponse.isDivergingEpoch)"
            assert not replica.asks, "nor does one that was told before it fetched"
            replica.cut_off(EpochEnd(said["epoch"], said["end_offset"]))
        elif not answer["error_code"]:
            replica.take(answer["records"])
            replica.hears(answer["high_watermark"])

    def append_ours(self) -> None:
        log, value = self.leader.logs[0], self.value()
        offset = log.end
        done = self.leader.append(0, batch(value))

        def when_done(ended: Future[Any]) -> None:
            if ended.exception() is None:
                self.is_safe(offset, value)

        done.add_done_callback(when_done)

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
            await self.follows(self.chance.choice(sorted(self.alive)))
        elif kind == "append" and self.leader.logs[0].begun:
            self.append_ours()
        elif kind == "maintenance":
            await self.maintenance.look()
            self.look()
        await asyncio.sleep(0)
        if self.leader.lost():
            assert self.doubtful, "nobody has lost anything"
            self.leader.stop()

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
        """With all brokers back, all have the same, also where we lead already."""
        while len(self.alive) < 3:
            self.come_back()
        log = self.leader.logs.get(0)
        if log is None or not log.begun or self.chance.random() < 0.5:
            self.leader.stop()
            self.take_over()
        for turn in range(CONVERGES_IN):
            if self.leader.lost():
                self.leader.stop()
                self.take_over()
            for broker in (1, 2, 3):
                await self.follows(broker)
            await self.maintenance.look()
            self.look()
            if turn == CONVERGES_IN // 2:
                self.append_ours()
            await asyncio.sleep(0)
            self.check()
        one, two, three = (replica.log for replica in self.replicas.values())
        assert one == two == three
        assert one[-1][1] == b"%d" % self.appended


@pytest.mark.parametrize("start", range(0, 4_000, 1_000))
def test_what_was_acknowledged_is_on_every_broker_that_may_lead(start: int) -> None:
    for seed in range(start, start + settings.default.max_examples * 2):
        asyncio.run(Replication(seed).play())
