"""What brokers are told that name no leader epoch in Fetch, but ask where their last one ended."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import pytest

from state.protocol_errors import ProtocolError
from streaming.offsets.follower import UNKNOWN, EpochEnd
from streaming.offsets.follower_reports import FollowerReports
from streaming.offsets.history_connection import HistoryUnreadable
from streaming.offsets.replica_epochs import ReplicaEpochs
from tests.fixtures.waiting import WAIT_S
from tests.unit.offsets.support import OLDER, Led

LEADER = 1
"""Whom ZooKeeper names for partition 0."""

ANYBODY = -2
"""The replica id of requests that have none."""

LAG_S = 30.0
COME_AGAIN = {"error_code": ProtocolError.UNKNOWN_LEADER_EPOCH}


class Asking(Led):
    """ends: where brokers' logs of partition 0 end; committed: their high watermarks, which they
    are asked for unless somebody in sync can say where epochs ended, as `told` does.
    """

    def __init__(self, told: Mapping[int, EpochEnd] | None = None) -> None:
        super().__init__()
        self.raise_epochs()
        self.ends = {1: 10, 2: 10, 3: 10}
        self.committed: dict[int, int] = {}
        self.told = told
        find_committed = None if told else self._committed
        self.reports = FollowerReports(self.leader, self._epoch_end, find_committed)
        self.epochs = ReplicaEpochs(
            self.leader, self.reports, self._log_ends, self.consumers, wait_s=WAIT_S
        )

    async def _epoch_end(self, partition: int, last_epoch: int) -> EpochEnd:
        assert self.told is not None
        return self.told[last_epoch]

    async def _committed(self, broker: int, partition: int, end: int) -> int:
        assert end == self.ends[broker]
        return self.committed[broker]

    async def _log_ends(self, broker: int, epochs: Mapping[int, int]) -> Mapping[int, int]:
        if broker not in self.ends:
            raise HistoryUnreadable(f"broker {broker} is silent")
        return {partition: self.ends[broker] for partition in epochs}

    async def ask(self, broker: int, last_epoch: int = OLDER, **partition: int) -> dict[str, Any]:
        """Return what a broker hears, without the partition's number."""
        named = {"partition": 0, "current_leader_epoch": self.leader.logs[0].epoch}
        asked = self.asked_about_epochs({**named, "leader_epoch": last_epoch, **partition}, broker)
        (topic,) = (await self.epochs.handle(asked))["topics"]
        (answer,) = topic["partitions"]
        assert answer.pop("partition") == partition.get("partition", 0)
        return answer

    async def asks_at_once(self, broker: int, last_epoch: int = OLDER) -> dict[str, Any]:
        """The same of a broker that does not wait for others."""
        self.epochs._wait_s = 0
        try:
            return await self.ask(broker, last_epoch)
        finally:
            self.epochs._wait_s = WAIT_S

    def shrink(self, isr: list[int]) -> None:
        facts = self.leader.facts[0]
        names = ("leader_epoch", "partition_epoch", "recovery")
        change = {"partition": 0, "isr": isr} | {name: getattr(facts, name) for name in names}
        body = {
            "request_id": "r",
            "broker_id": facts.leader,
            "broker_epoch": self.leader.broker_epoch(facts.leader),
            "version": 3,
            "topic": "__consumer_offsets",
            "topic_id": None,
            "partitions": [change],
        }
        self.cluster.happen("alter_partition_requested", "__consumer_offsets", body)
        self.look()
        assert self.leader.facts[0].isr == tuple(isr)


def all_of(epoch: int, end: int) -> dict[str, int]:
    return {"error_code": 0, "leader_epoch": epoch, "end_offset": end}


def run(scenario: Callable[[Asking], Awaitable[None]], **options: Any) -> None:
    async def play() -> None:
        await scenario(Asking(**options))

    asyncio.run(play())


def test_a_log_begins_when_all_in_sync_have_asked() -> None:
    async def scenario(led: Asking) -> None:
        first = [asyncio.create_task(led.ask(broker)) for broker in (1, 2)]
        await asyncio.sleep(0.01)
        assert not led.leader.logs[0].begun
        assert await led.ask(3) == all_of(OLDER, 10)
        assert [await one for one in first] == [all_of(OLDER, 10)] * 2
        assert led.leader.logs[0].end == 10

    run(scenario)


@pytest.mark.parametrize(
    ("client", "told"),
    [
        ("broker-3-fetcher-0", 8),
        ("broker-3-fetcher-0x", 10),
        (f"broker-{3:05000}-fetcher-0", 10),
        ("a consumer", 10),
        (None, 10),
    ],
)
def test_before_version_3_the_client_id_says_who_follows(client: str, told: int) -> None:
    """A consumer hears of all that is safe, a broker of what its log has."""

    async def scenario(led: Asking) -> None:
        led.begin(10)
        led.ends[3] = 8
        asked = {"partition": 0, "leader_epoch": OLDER}
        asked["current_leader_epoch"] = led.leader.logs[0].epoch
        call = led.asked_about_epochs(asked, ANYBODY, version=2, client=client)
        (topic,) = (await led.epochs.handle(call))["topics"]
        assert topic["partitions"] == [{"partition": 0, **all_of(OLDER, told)}]

    run(scenario)


def test_who_has_more_than_all_cuts_it_off() -> None:
    async def scenario(led: Asking) -> None:
        led.ends = {1: 12, 2: 10, 3: 11}
        first = [asyncio.create_task(led.ask(broker)) for broker in (1, 2)]
        await asyncio.sleep(0.01)
        assert await led.ask(3) == all_of(OLDER, 10)
        assert [await one for one in first] == [all_of(OLDER, 10)] * 2
        followers = led.leader.logs[0].followers
        assert [followers[broker].position for broker in (1, 2, 3)] == [UNKNOWN, 10, UNKNOWN]

    run(scenario)


def test_a_newer_epoch_than_that_of_zookeepers_leader_is_cut_off() -> None:
    async def scenario(led: Asking) -> None:
        first = [asyncio.create_task(led.ask(broker)) for broker in (LEADER, 2)]
        await asyncio.sleep(0.01)
        assert await led.ask(3, OLDER + 5) == all_of(OLDER, 10)
        log = led.leader.logs[0]
        assert (log.begun, log.follower(3).position) == (False, UNKNOWN), "it has yet to do so"
        led.ends[3] = 8
        assert await led.ask(3) == all_of(OLDER, 8)
        assert [await one for one in first] == [all_of(OLDER, 8)] * 2

    run(scenario)


def test_an_older_epoch_is_kept_as_far_as_it_is_committed() -> None:
    async def scenario(led: Asking) -> None:
        led.ends[2], led.committed = 7, {2: 7}
        first = [asyncio.create_task(led.ask(broker, OLDER + 1)) for broker in (LEADER, 3)]
        await asyncio.sleep(0.01)
        assert await led.ask(2, OLDER) == all_of(OLDER, 7)
        assert led.leader.logs[0].end == 7
        assert [await one for one in first] == [all_of(OLDER, 7)] * 2

    run(scenario)


def test_what_may_have_been_acknowledged_is_cut_off_outside_of_the_isr_alone() -> None:
    async def scenario(led: Asking) -> None:
        led.committed = {2: 7}
        for broker in (LEADER, 3):
            assert await led.asks_at_once(broker, OLDER + 1) == COME_AGAIN
        assert await led.asks_at_once(2, OLDER) == COME_AGAIN
        log = led.leader.logs[0]
        assert led.leader.wanted_isr(log, LAG_S) == (1, 3)
        assert led.leader.wanted_isr(led.leader.logs[1], LAG_S) == led.leader.facts[1].isr
        led.shrink([1, 3])
        assert (log.begun, log.end) == (True, 10)
        assert await led.asks_at_once(2, OLDER) == all_of(OLDER, 7)
        assert log.follower(2).position == UNKNOWN
        with log.asking_for([1, 2, 3], isr=[1, 3]):
            assert await led.asks_at_once(2, OLDER) == COME_AGAIN, "it may be in sync soon"

    run(scenario)


def test_zookeepers_leader_says_itself_where_its_log_goes_on() -> None:
    async def scenario(led: Asking) -> None:
        led.ends, led.committed = {1: 5, 2: 10, 3: 10}, {1: 0}
        for broker in (2, 3):
            assert await led.asks_at_once(broker, OLDER + 1) == COME_AGAIN
        assert await led.asks_at_once(LEADER, OLDER) == COME_AGAIN, "others are to cut off first"
        assert led.leader.wanted_isr(led.leader.logs[0], LAG_S) == (1, 2, 3)
        for broker in (2, 3):
            assert await led.asks_at_once(broker, OLDER + 1) == all_of(OLDER, 5)
            led.ends[broker] = 5
        assert await led.asks_at_once(2) == COME_AGAIN
        assert await led.asks_at_once(3) == all_of(OLDER, 5)

    run(scenario)


def test_where_an_epoch_ended_somebody_in_sync_says() -> None:
    async def scenario(led: Asking) -> None:
        first = [asyncio.create_task(led.ask(broker, OLDER + 1)) for broker in (LEADER, 3)]
        await asyncio.sleep(0.01)
        assert await led.ask(2, OLDER) == all_of(OLDER, 4)
        led.ends[2] = 4
        assert await led.ask(2, OLDER) == all_of(OLDER, 4)
        assert [await one for one in first] == [all_of(OLDER, 4)] * 2

    run(scenario, told={OLDER: EpochEnd(OLDER, 4)})


def test_a_broker_that_cannot_be_asked_comes_again() -> None:
    async def scenario(led: Asking) -> None:
        del led.ends[2]
        assert await led.asks_at_once(2) == COME_AGAIN
        assert led.leader.logs[0].follower(2).position == UNKNOWN

    run(scenario)


def test_what_another_start_of_a_broker_has_is_not_taken_for_that_of_who_asked() -> None:
    async def scenario(led: Asking) -> None:
        find = led._log_ends
        led.shrink([1, 3])

        async def restarts(broker: int, epochs: Mapping[int, int]) -> Mapping[int, int]:
            led.cluster.happen("broker_registrations_changed", "", {"unregistered": [broker]})
            led.look()
            return await find(broker, epochs)

        led.epochs._find_log_ends = restarts
        assert await led.asks_at_once(2) == COME_AGAIN
        assert led.leader.logs[0].follower(2).position == UNKNOWN

    run(scenario)


def test_who_went_while_it_was_asked_has_said_nothing() -> None:
    async def scenario(led: Asking) -> None:
        led.shrink([1, 3])
        for broker in (LEADER, 3):
            await led.asks_at_once(broker, OLDER + 1)
        log = led.leader.logs[0]
        assert log.begun

        async def goes(broker: int, partition: int, end: int) -> int:
            led.cluster.happen("broker_registrations_changed", "", {"unregistered": [broker]})
            led.look()
            return end

        led.reports._find_committed = goes
        assert await led.asks_at_once(2) == COME_AGAIN
        assert log.follower(2).committed == UNKNOWN
        assert log.follower(2).position == UNKNOWN

    run(scenario)


@pytest.mark.parametrize(
    ("change", "error"),
    [(-1, ProtocolError.FENCED_LEADER_EPOCH), (1, ProtocolError.UNKNOWN_LEADER_EPOCH)],
)
def test_other_leader_epochs(change: int, error: int) -> None:
    async def scenario(led: Asking) -> None:
        led.ends.clear()
        epoch = led.leader.logs[0].epoch + change
        assert await led.ask(2, current_leader_epoch=epoch) == {"error_code": error}

    run(scenario)


def test_who_does_not_follow_is_told_that_we_do_not_lead() -> None:
    async def scenario(led: Asking) -> None:
        not_led = {"error_code": ProtocolError.NOT_LEADER_OR_FOLLOWER}
        assert await led.ask(2, partition=7) == not_led

    run(scenario)
