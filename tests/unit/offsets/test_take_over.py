"""From the brokers' leadership to ours: what is told in which order, and what begins it anew."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from streaming.gateway.ports import DecisionTimedOut
from streaming.offsets import partition_loads, take_over
from streaming.offsets.batches import UnreadableBatch
from streaming.offsets.isr_maintenance import IsrMaintenance
from streaming.offsets.node_role import NodeRole
from streaming.offsets.take_over import TakeOver
from streaming.process.back_off import BackOff
from tests.fixtures.waiting import WAIT_S, wait_on_loop
from tests.unit.gateway.support import BROKERS
from tests.unit.offsets.support import Led


class Told:
    """A coordinator that notes what it is told."""

    def __init__(self) -> None:
        self.said: list[tuple[Any, ...]] = []
        self.hang = False
        self.unreadable: set[int] = set()

    def elected(self, partitions: dict[int, int]) -> None:
        self.said.append(("elected", partitions))

    async def load(self, partition: int, end: int) -> None:
        if self.hang:
            await asyncio.Event().wait()
        if partition in self.unreadable:
            self.said.append(("unreadable", partition))
            raise UnreadableBatch("batch at offset 3: magic 1")
        self.said.append(("loaded", partition, end))

    def resigned(self) -> None:
        self.said.append(("resigned",))


class TakingOver(Led):
    """Decisions come at once; brokers follow when they are made to."""

    def __init__(self) -> None:
        super().__init__()
        self.leader.stop()
        self.told = Told()
        self.job = True
        self.paused = False
        self.looks = 0
        self.take_over = TakeOver(
            self.leader,
            self,
            IsrMaintenance(self.leader, self, lag_max_s=30.0, timeout_s=WAIT_S),
            self.told,
            node_role=NodeRole(self.is_controller, lambda: self.job, lambda: self.paused),
            counters=Counter(),
            timeout_s=WAIT_S,
        )

    def is_controller(self) -> bool:
        """Say whether we are the controller, which each turn of the take-over begins with."""
        self.looks += 1
        return self.cluster.is_controller()

    async def a_turn(self) -> None:
        """Wait until a turn has begun, and has done what it does without waiting."""
        looks = self.looks
        await self.until(lambda: self.looks > looks)

    async def submit(
        self, kind: str, key: str, payload: dict[str, Any], timeout_s: float
    ) -> dict[str, Any]:
        reply = await self.cluster.submit(kind, key, payload, timeout_s)
        self.look()
        return reply

    def epoch(self, partition: int = 0) -> int:
        return self.leader.facts[partition].announced_epoch

    async def all_follow(self, offset: int = 0) -> None:
        await self.until(lambda: len(self.leader.logs) == 2)
        for partition in (0, 1):
            for broker in (1, 2, 3):
                self.fetch(broker, offset, partition)

    async def until(self, true: Callable[[], Any]) -> None:
        await wait_on_loop("what is told", true)


def run(
    scenario: Callable[[TakingOver], Awaitable[None]],
    before: Callable[[TakingOver], None] = lambda _: None,
) -> None:
    async def play() -> None:
        taking = TakingOver()
        before(taking)
        task = asyncio.create_task(taking.take_over.run())
        try:
            await scenario(taking)
            assert not task.done()
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    asyncio.run(play())


def test_epochs_are_raised_and_what_brokers_agree_on_is_loaded() -> None:
    async def scenario(led: TakingOver) -> None:
        before = led.epoch()
        await led.all_follow(5)
        await led.until(lambda: len(led.told.said) == 3)
        epochs = {0: led.epoch(0), 1: led.epoch(1)}
        assert epochs[0] == before + 2
        assert led.told.said == [
            ("elected", epochs),
            ("loaded", 0, 5),
            ("loaded", 1, 5),
        ]
        assert len(led.cluster.payloads("raise_leader_epochs_requested")) == 2

    run(scenario)


def test_without_a_job_nothing_begins() -> None:
    def without(led: TakingOver) -> None:
        led.job = False

    async def scenario(led: TakingOver) -> None:
        await led.a_turn()
        assert not led.leader.logs
        led.job = True
        await led.until(lambda: led.told.said)

    run(scenario, without)


def test_a_term_outlives_the_job_and_begins_anew_when_it_is_back() -> None:
    async def scenario(led: TakingOver) -> None:
        await led.all_follow()
        await led.until(lambda: len(led.told.said) == 3)
        first = led.epoch()
        led.job = False
        await led.a_turn()
        assert led.leader.logs
        led.job = True
        led.take_over.restart()
        await led.until(lambda: ("resigned",) in led.told.said)
        await led.until(lambda: len(led.told.said) == 5)
        assert led.told.said[-1] == ("elected", {0: led.epoch(0), 1: led.epoch(1)})
        assert led.epoch() == first + 2

    run(scenario)


def test_a_load_under_way_ends_with_the_term() -> None:
    async def scenario(led: TakingOver) -> None:
        led.told.hang = True
        await led.all_follow()
        await led.until(lambda: led.told.said)
        led.take_over.restart()
        await led.until(lambda: ("resigned",) in led.told.said)

    run(scenario)


def test_the_role_that_is_lost_ends_the_term() -> None:
    async def scenario(led: TakingOver) -> None:
        await led.all_follow()
        await led.until(lambda: len(led.told.said) == 3)
        led.cluster.controller = False
        led.take_over.restart()
        await led.until(lambda: ("resigned",) in led.told.said)
        await led.a_turn()
        assert not led.leader.logs

    run(scenario)


def test_a_decision_that_does_not_come_is_asked_for_again() -> None:
    async def scenario(led: TakingOver) -> None:
        led.cluster.fail = DecisionTimedOut("no reply")
        await led.until(lambda: ("resigned",) in led.told.said)
        led.cluster.fail = None
        await led.until(lambda: any(said[0] == "elected" for said in led.told.said))

    run(scenario)


def test_brokers_that_come_back_with_less_are_believed() -> None:
    async def scenario(led: TakingOver) -> None:
        await led.all_follow(5)
        await led.until(lambda: ("loaded", 0, 5) in led.told.said)
        for broker in (1, 2, 3):
            led.fetch(broker, 4)
        await led.until(lambda: ("resigned",) in led.told.said)
        await led.all_follow(4)
        await led.until(lambda: ("loaded", 0, 4) in led.told.said)

    run(scenario)


def test_a_partition_without_a_leader_is_taken_over_when_it_has_one() -> None:
    def all_gone(led: TakingOver) -> None:
        led.cluster.happen("broker_registrations_changed", "", {"unregistered": [1, 2, 3]})
        led.look()

    async def scenario(led: TakingOver) -> None:
        await led.a_turn()
        assert not led.leader.logs, "nobody could follow"
        back = [broker | {"epoch": 200 + broker["id"]} for broker in BROKERS]
        led.cluster.happen("broker_registrations_changed", "", {"registered": back})
        led.look()
        await led.all_follow()
        await led.until(lambda: len(led.told.said) == 3)

    run(scenario, all_gone)


def test_a_partition_that_cannot_be_read_costs_only_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(partition_loads, "FIRST_PAUSE_S", 0.0)

    async def scenario(led: TakingOver) -> None:
        led.told.unreadable = {0}
        await led.all_follow(5)
        await led.until(lambda: led.told.said.count(("unreadable", 0)) >= 2)
        assert ("loaded", 1, 5) in led.told.said
        assert led.take_over.failures == {0: "batch at offset 3: magic 1"}
        led.told.unreadable.clear()
        await led.until(lambda: ("loaded", 0, 5) in led.told.said)
        assert not led.take_over.failures
        assert ("resigned",) not in led.told.said
        assert len(led.cluster.payloads("raise_leader_epochs_requested")) == 2

    run(scenario)


def test_nothing_is_taken_over_during_a_pause_and_what_is_led_stays_led() -> None:
    def pause(led: TakingOver) -> None:
        led.paused = True

    async def scenario(led: TakingOver) -> None:
        await led.a_turn()
        assert not led.leader.logs
        led.paused = False
        await led.all_follow()
        await led.until(lambda: len(led.told.said) == 3)
        led.paused = True
        await led.a_turn()
        await led.a_turn()
        assert len(led.leader.logs) == 2
        assert ("resigned",) not in led.told.said

    run(scenario, pause)


def test_terms_in_which_nothing_is_loaded_begin_more_and_more_rarely(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pauses = []

    class Noted(BackOff):
        def pause_s(self) -> float:
            pauses.append(super().pause_s())
            return 0.0

    monkeypatch.setattr(take_over, "BackOff", Noted)
    monkeypatch.setattr(take_over, "_PAUSE_S", 0.0)

    def undecided(led: TakingOver) -> None:
        led.cluster.fail = DecisionTimedOut("no reply")

    async def scenario(led: TakingOver) -> None:
        await led.until(lambda: len(pauses) >= 4)
        assert pauses[:4] == [1, 2, 4, 8]
        led.cluster.fail = None
        await led.until(lambda: any(said[0] == "elected" for said in led.told.said))
        await led.all_follow()
        await led.until(lambda: any(said[0] == "loaded" for said in led.told.said))
        del pauses[:]
        led.take_over.restart()
        resigned = led.told.said.count(("resigned",))
        await led.until(lambda: led.told.said.count(("resigned",)) > resigned)
        assert not pauses, "that was asked for"

    run(scenario, undecided)


def test_a_topic_that_goes_while_it_is_taken_over_ends_the_term() -> None:
    def held_back(led: TakingOver) -> None:
        led.cluster.gate = asyncio.Event()

    async def scenario(led: TakingOver) -> None:
        await led.until(lambda: len(led.cluster.payloads("raise_leader_epochs_requested")) == 2)
        led.delete()
        led.cluster.gate.set()
        await led.until(lambda: led.told.said == [("resigned",)])

    run(scenario, held_back)


def test_whom_a_partition_waits_for_is_said() -> None:
    async def scenario(led: TakingOver) -> None:
        await led.until(lambda: len(led.leader.logs) == 2)
        for broker in (1, 2):
            led.fetch(broker, 5)
        both = {0: "waits for brokers [3] to fetch", 1: "waits for brokers [2, 3, 1] to fetch"}
        assert led.take_over.failures == both
        await led.all_follow(5)
        await led.until(lambda: not led.take_over.failures)

    run(scenario)
