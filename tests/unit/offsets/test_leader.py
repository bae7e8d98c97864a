"""What this node leads: which appends are safe when, and which ISR it wants."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import pytest

from state.protocol_errors import ProtocolError
from streaming.gateway.ports import DecisionTimedOut, NotController
from streaming.internal_topics import GROUP_TOPIC
from streaming.offsets.follower import UNKNOWN
from streaming.offsets.isr_maintenance import IsrMaintenance
from streaming.offsets.leader import LeaderStopped, Refusal
from tests.unit.gateway.support import BROKERS
from tests.unit.offsets.support import BATCH, OLDER, Led

LAG_S = 30.0


def run(scenario: Callable[[Led], Awaitable[None]]) -> None:
    async def play() -> None:
        await scenario(Led())

    asyncio.run(play())


def maintenance(led: Led) -> IsrMaintenance:
    return IsrMaintenance(led.leader, led.cluster, lag_max_s=LAG_S, timeout_s=10.0)


def isr(led: Led) -> tuple[int, ...]:
    led.look()
    return led.leader.facts[0].isr


def test_an_append_is_done_when_every_broker_in_sync_has_it() -> None:
    async def scenario(led: Led) -> None:
        with pytest.raises(LeaderStopped):
            led.leader.append(0, BATCH)
        led.begin()
        first, second = led.leader.append(0, BATCH), led.leader.append(0, BATCH)
        led.fetch(1, 2)
        led.fetch(2, 2)
        led.fetch(3, 1)
        assert (first.done(), second.done()) == (True, False)
        led.fetch(3, 2)
        assert second.done()

    run(scenario)


def test_a_broker_that_dies_holds_nothing_up() -> None:
    async def scenario(led: Led) -> None:
        led.begin()
        done = led.leader.append(0, BATCH)
        for broker in (1, 2):
            led.fetch(broker, 1)
        led.cluster.happen("broker_registrations_changed", "", {"unregistered": [3]})
        led.look()
        assert done.done()
        assert led.leader.logs[0].follower(3).position == UNKNOWN, "it may come back with less"

    run(scenario)


def test_nothing_is_safe_while_a_broker_of_the_stored_isr_is_away() -> None:
    async def scenario(led: Led) -> None:
        led.begin()
        done = led.leader.append(0, BATCH)
        facts = led.leader.facts[0]
        led.leader.facts = {0: replace(facts, in_sync=(1, 2), live=(1, 2))}
        for broker in (1, 2):
            led.fetch(broker, 1)
        assert not done.done(), "3 may come back, and lead"
        assert led.leader.wanted_isr(led.leader.logs[0], LAG_S) == (1, 2)

    run(scenario)


def test_nothing_counts_on_fewer_brokers_than_the_topic_wants() -> None:
    async def scenario(led: Led) -> None:
        led.begin()
        led.min_insync_replicas = 2
        led.cluster.happen("broker_registrations_changed", "", {"unregistered": [2]})
        led.look()
        assert led.leader.refusal(0) is None
        under_way = led.leader.append(0, BATCH)
        led.cluster.happen("broker_registrations_changed", "", {"unregistered": [3]})
        assert isr(led) == (1,)
        led.fetch(1, 1)
        assert not under_way.done(), "1 alone has it"
        assert led.leader.refusal(0) is Refusal.TOO_FEW_IN_SYNC
        led.min_insync_replicas = 1
        led.fetch(1, 1)
        assert (under_way.done(), led.leader.refusal(0)) == (True, None)

    run(scenario)


def test_what_too_few_have_counts_once_another_broker_in_sync_has_it() -> None:
    async def scenario(led: Led) -> None:
        led.begin()
        led.min_insync_replicas = 2
        led.cluster.happen("broker_registrations_changed", "", {"unregistered": [2, 3]})
        led.look()
        done = led.leader.append(0, BATCH)
        led.fetch(1, 1)
        back = BROKERS[1] | {"epoch": 99}
        led.cluster.happen("broker_registrations_changed", "", {"registered": [back]})
        led.look()
        led.fetch(2, 1)
        assert not done.done(), "2 is not in sync"
        await maintenance(led).look()
        assert isr(led) == (1, 2)
        led.fetch(2, 1)
        assert done.done()

    run(scenario)


def test_a_topic_that_wants_more_replicas_than_it_has_gets_all() -> None:
    async def scenario(led: Led) -> None:
        led.begin()
        led.min_insync_replicas = 4
        assert led.leader.refusal(0) is None
        led.min_insync_replicas = None
        assert led.leader.refusal(0) is Refusal.TOO_FEW_IN_SYNC, "it is not known what it wants"

    run(scenario)


def test_what_was_said_before_the_log_began_is_not_what_was_appended_since() -> None:
    async def scenario(led: Led) -> None:
        led.fetch(2, 110)
        led.fetch(3, 110)
        led.fetch(1, 100)
        done = led.leader.append(0, BATCH)
        led.fetch(1, 101)
        assert not done.done()

    run(scenario)


def test_under_steady_appends_it_is_enough_to_have_what_the_fetch_before_could_see() -> None:
    async def scenario(led: Led) -> None:
        led.begin()
        for second in range(1, 2 * int(LAG_S)):
            led.now_s = float(second)
            led.leader.append(0, BATCH)
            for broker in (1, 2, 3):
                led.fetch(broker, second - 1)
        assert led.leader.wanted_isr(led.leader.logs[0], LAG_S) == (1, 2, 3)

    run(scenario)


def test_partitions_that_were_lost_are_named() -> None:
    async def scenario(led: Led) -> None:
        led.begin(10)
        assert led.leader.lost() == []
        for broker in (1, 2, 3):
            led.fetch(broker, 9)
        assert led.leader.lost() == [0]
        for broker in (1, 2, 3):
            led.leader.logs[0].diverged(broker, 10)
        assert led.leader.lost() == [], "they cut off what nobody else has"

    run(scenario)


def test_an_append_that_waits_is_told_when_the_leadership_ends() -> None:
    async def scenario(led: Led) -> None:
        led.begin()
        done = led.leader.append(0, BATCH)
        led.leader.stop()
        with pytest.raises(LeaderStopped):
            await done

    run(scenario)


def test_a_newer_epoch_goes_on_with_the_same_log() -> None:
    async def scenario(led: Led) -> None:
        led.begin(5)
        epoch = led.leader.logs[0].epoch
        led.raise_epochs()
        log = led.leader.logs[0]
        assert log.epoch == epoch + 2
        assert (log.begun, log.end) == (True, 5)

    run(scenario)


def test_brokers_that_are_late_leave_the_isr_and_come_back() -> None:
    async def scenario(led: Led) -> None:
        led.begin()
        await maintenance(led).look()
        assert isr(led) == (1, 2, 3)
        led.leader.append(0, BATCH)
        led.now_s = LAG_S + 1
        for broker in (1, 2):
            led.fetch(broker, 1)
        await maintenance(led).look()
        assert isr(led) == (1, 2)
        led.look()
        assert led.leader.logs[0].high_watermark == 1
        led.fetch(3, 1)
        await maintenance(led).look()
        assert isr(led) == (1, 2, 3)

    run(scenario)


def test_the_leader_in_zookeeper_stays_in_the_isr() -> None:
    async def scenario(led: Led) -> None:
        led.begin()
        led.leader.append(0, BATCH)
        led.now_s = LAG_S + 1
        await maintenance(led).look()
        assert isr(led) == (1,)

    run(scenario)


def test_a_broker_that_is_asked_into_the_isr_counts_until_that_is_decided() -> None:
    async def scenario(led: Led) -> None:
        led.begin()
        done = led.leader.append(0, BATCH)
        led.now_s = LAG_S + 1
        for broker in (1, 2):
            led.fetch(broker, 1)
        await maintenance(led).look()
        led.look()
        assert done.done()
        led.fetch(3, 1)
        led.cluster.gate = asyncio.Event()
        asking = asyncio.create_task(maintenance(led).look())
        await asyncio.sleep(0)
        next_done = led.leader.append(0, BATCH)
        for broker in (1, 2):
            led.fetch(broker, 2)
        assert not next_done.done()
        led.cluster.gate.set()
        await asking
        led.look()
        led.fetch(3, 2)
        assert next_done.done()

    run(scenario)


def test_a_broker_that_is_asked_into_the_isr_counts_when_nobody_says_how_it_was_decided() -> None:
    async def scenario(led: Led) -> None:
        led.begin()
        led.leader.append(0, BATCH)
        led.now_s = LAG_S + 1
        for broker in (1, 2):
            led.fetch(broker, 1)
        await maintenance(led).look()
        led.look()
        led.fetch(3, 1)
        done = led.leader.append(0, BATCH)
        with pytest.raises(DecisionTimedOut):
            await IsrMaintenance(led.leader, led.cluster, lag_max_s=LAG_S, timeout_s=0).look()
        for broker in (1, 2):
            led.fetch(broker, 2)
        assert not done.done()
        assert isr(led) == (1, 2, 3)

    run(scenario)


def test_an_isr_that_is_not_decided_on_is_asked_for_again() -> None:
    async def scenario(led: Led) -> None:
        led.begin()
        led.leader.append(0, BATCH)
        led.now_s = LAG_S + 1
        led.cluster.fail = NotController("not now")
        with pytest.raises(NotController):
            await maintenance(led).look()
        led.cluster.fail = None
        await maintenance(led).look()
        assert isr(led) == (1,)

    run(scenario)


def test_the_isr_is_asked_for_in_the_name_of_zookeepers_leader() -> None:
    async def scenario(led: Led) -> None:
        led.begin()
        led.leader.append(0, BATCH)
        led.now_s = LAG_S + 1
        await maintenance(led).look()
        (asked,) = led.cluster.payloads("alter_partition_requested")
        (change,) = asked["partitions"]
        assert (asked["broker_id"], asked["broker_epoch"], asked["topic"]) == (1, 101, GROUP_TOPIC)
        assert (change["partition"], change["isr"]) == (0, [1])
        replies: list[dict[str, Any]] = led.cluster.happen(
            "raise_leader_epochs_requested", GROUP_TOPIC, {"request_id": "r", "topic": GROUP_TOPIC}
        )
        assert replies[0]["error"] == ProtocolError.NONE

    run(scenario)


def test_a_broker_that_never_fetches_leaves_the_isr_so_that_the_log_begins(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def scenario(led: Led) -> None:
        keeping, log = maintenance(led), led.leader.logs[0]
        for second in range(0, int(LAG_S) + 1, 10):
            led.now_s = float(second)
            for broker in (1, 2):
                led.fetch(broker, 5)
            await keeping.look()
            assert isr(led) == (1, 2, 3), "3 may yet fetch"
            assert not log.begun
            assert led.leader.awaited(log) == [3]
        led.now_s += 1
        for _ in range(2):
            await keeping.look()
            assert isr(led) == (1, 2)
        assert (log.begun, log.end, led.leader.awaited(log)) == (True, 5, [])
        (said,) = [one for one in caplog.messages if one.startswith("partition 0 waits")]
        assert said == "partition 0 waits for brokers [3], which have not fetched from us for 30 s"
        led.fetch(3, 5)
        await keeping.look()
        assert isr(led) == (1, 2, 3), "it comes back"

    run(scenario)


@pytest.mark.parametrize(
    ("fetching", "stays"),
    [
        pytest.param((), (1, 2, 3), id="nobody says how far the log goes"),
        pytest.param((2,), (1, 2), id="who leads in ZooKeeper stays"),
        pytest.param((1,), (1,), id="who leads has all of it"),
    ],
)
def test_who_stays_in_the_isr_of_a_log_that_cannot_begin(
    fetching: tuple[int, ...], stays: tuple[int, ...]
) -> None:
    async def scenario(led: Led) -> None:
        led.now_s = LAG_S + 1
        for broker in fetching:
            led.fetch(broker, 5)
        assert led.leader.wanted_isr(led.leader.logs[0], LAG_S) == stays

    run(scenario)


def test_a_broker_that_stops_fetching_before_it_cut_off_what_is_not_ours_goes_too() -> None:
    async def scenario(led: Led) -> None:
        log = led.leader.logs[0]
        led.fetch(1, 5, epoch=OLDER + 1)
        led.fetch(2, 5, epoch=OLDER + 1)
        led.fetch(3, 9, epoch=OLDER)
        assert led.leader.awaited(log) == [3]
        led.now_s = LAG_S + 1
        led.fetch(1, 5, epoch=OLDER + 1)
        assert led.leader.wanted_isr(log, LAG_S) == (1, 2)

    run(scenario)


def test_brokers_have_time_to_fetch_under_each_leader_epoch() -> None:
    async def scenario(led: Led) -> None:
        led.now_s = LAG_S
        led.raise_epochs()
        led.now_s += LAG_S
        led.fetch(1, 5)
        assert led.leader.wanted_isr(led.leader.logs[0], LAG_S) == (1, 2, 3)

    run(scenario)
