"""ISRs while the controller is paused, and what is kept in memory for replicas that are behind."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from state.protocol_errors import ProtocolError
from streaming.gateway.ports import Paused
from streaming.internal_topics import GROUP_TOPIC
from streaming.offsets import isr_maintenance
from streaming.offsets.isr_maintenance import IsrMaintenance, forget_replicated
from streaming.offsets.partition_facts import PartitionFacts
from streaming.offsets.partition_log import PartitionLog
from tests.fixtures.waiting import wait_on_loop
from tests.unit.offsets.support import BATCH, Led

LAG_S = 30.0
FACTS = PartitionFacts(0, 1, 9, 0, 0, (1, 2, 3), (1, 2), (1, 2), (1, 2, 3), (1, 2, 3))


def test_a_pause_only_makes_isrs_wait() -> None:
    async def scenario() -> None:
        led = Led()
        led.begin()
        led.leader.append(0, BATCH)
        led.now_s = LAG_S + 1
        led.cluster.fail = Paused("paused, says the operator")
        keeping = IsrMaintenance(led.leader, led.cluster, lag_max_s=LAG_S, timeout_s=10.0)
        await keeping.look()
        assert led.leader.logs[0].joining == frozenset()
        led.cluster.fail = None
        await keeping.look()
        led.look()
        assert led.leader.facts[0].isr == (1,)

    asyncio.run(scenario())


def test_a_topic_that_goes_meanwhile_ends_no_maintenance() -> None:
    async def scenario() -> None:
        led = Led()
        for partition in (0, 1):
            for broker in (1, 2, 3):
                led.fetch(broker, 0, partition)
            led.leader.append(partition, BATCH)
        led.now_s = LAG_S + 1
        led.cluster.gate = asyncio.Event()
        keeping = IsrMaintenance(led.leader, led.cluster, lag_max_s=LAG_S, timeout_s=10.0)
        looking = asyncio.create_task(keeping.look())
        await wait_on_loop(
            "the request", lambda: led.cluster.payloads("alter_partition_requested"), poll_s=0
        )
        led.delete()
        led.cluster.gate.set()
        await looking

    asyncio.run(scenario())


def holding(partition: int, batches: int) -> PartitionLog:
    """A log that brokers 1 and 2 have all of, and broker 3 nothing of."""
    log = PartitionLog(partition, 8)
    log.start = log.end = log.high_watermark = 0
    for _ in range(batches):
        log.append(BATCH)
    for broker, position in ((1, log.end), (2, log.end), (3, 0)):
        log.follower(broker).position = position
    log.high_watermark = log.end
    return log


def test_one_budget_is_for_all_partitions_and_the_largest_give_way(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    logs = [holding(number, 1 + number) for number in range(4)]
    ours = [(log, FACTS) for log in logs]
    monkeypatch.setattr(isr_maintenance, "MEMORY_MAX_BYTES", 10 * len(BATCH))
    forget_replicated(ours)
    assert [log.memory_bytes // len(BATCH) for log in logs] == [1, 2, 3, 4], "it is not too much"
    monkeypatch.setattr(isr_maintenance, "MEMORY_MAX_BYTES", 4 * len(BATCH))
    forget_replicated(ours)
    assert [log.memory_bytes // len(BATCH) for log in logs] == [1, 2, 0, 0]


def test_what_is_not_safe_is_kept_beyond_the_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(isr_maintenance, "MEMORY_MAX_BYTES", 0)
    log = holding(0, 3)
    log.high_watermark = 1
    forget_replicated([(log, FACTS)])
    assert (log.start, log.memory_bytes) == (1, 2 * len(BATCH))


def test_a_replica_without_a_log_directory_holds_nothing() -> None:
    log = holding(0, 3)
    forget_replicated([(log, FACTS)])
    assert log.memory_bytes == 3 * len(BATCH), "broker 3 may still fetch it"
    forget_replicated([(log, replace(FACTS, online=(1, 2)))])
    assert log.memory_bytes == 0


def test_a_failed_log_directory_takes_a_replica_offline() -> None:
    async def scenario() -> None:
        led = Led()
        facts = led.leader.facts[0]
        assert facts.online == facts.live == (1, 2, 3)
        offline = led.cluster.known.columns["offline"].copy()
        row = led.cluster.known.rows_of("__consumer_offsets").start
        offline[row, 2] = True
        led.cluster.known.columns["offline"][row] = offline[row]
        led.look()
        facts = led.leader.facts[0]
        assert (facts.online, facts.live) == ((1, 2), (1, 2, 3))

    asyncio.run(scenario())


def test_a_replica_whose_log_directory_failed_is_not_asked_into_the_isr() -> None:
    async def scenario() -> None:
        led = Led()
        led.begin(100)
        body = {
            "broker_id": 2,
            "broker_epoch": led.leader.broker_epoch(2),
            "topic": GROUP_TOPIC,
            "partitions": [0],
            "errors": [ProtocolError.KAFKA_STORAGE_ERROR],
        }
        led.cluster.happen("leader_and_isr_answered", GROUP_TOPIC, body)
        led.look()
        log = led.leader.logs[0]
        assert led.leader.facts[0].isr == (1, 3)
        assert log.follower(2).position == log.high_watermark, "it had all before"
        assert led.leader.wanted_isr(log, lag_max_s=30.0) == (1, 3)

    asyncio.run(scenario())
