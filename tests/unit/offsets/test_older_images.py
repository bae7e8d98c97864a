"""A job that comes may tell an image that is a batch behind ZooKeeper, with the ISRs of then."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from streaming.image.cluster_image import ClusterImage
from streaming.internal_topics import GROUP_TOPIC
from tests.unit.offsets.support import BATCH, Led


def alter_isr(led: Led, isr: Sequence[int]) -> None:
    facts = led.leader.facts[0]
    change = {
        "partition": 0,
        "leader_epoch": facts.leader_epoch,
        "partition_epoch": facts.partition_epoch,
        "recovery": 0,
        "isr": list(isr),
    }
    body = {
        "request_id": "r",
        "broker_id": facts.leader,
        "broker_epoch": led.leader.broker_epoch(facts.leader),
        "version": 3,
        "topic": GROUP_TOPIC,
        "topic_id": None,
        "partitions": [change],
    }
    led.cluster.happen("alter_partition_requested", GROUP_TOPIC, body)
    led.look()
    assert led.leader.facts[0].isr == tuple(isr)


def test_a_log_does_not_begin_by_the_isr_of_then() -> None:
    """What was acknowledged without a broker that was late would be cut off everywhere."""

    async def scenario() -> None:
        led = Led()
        led.begin(100)
        of_then = led.cluster.known.snapshot()
        alter_isr(led, [1, 3])
        log = led.leader.logs[0]
        acknowledged = led.leader.append(0, BATCH)
        for broker in (1, 3):
            led.fetch(broker, log.end, epoch=log.epoch)
        await acknowledged
        led.leader.stop()
        count = led.leader.partition_count
        led.leader.look_at(ClusterImage.from_snapshot(of_then), count)
        assert led.leader.facts[0].isr == (1, 2, 3)
        led.leader.lead([0, 1])
        for broker, position in ((1, log.end), (2, 100), (3, log.end)):
            led.fetch(broker, position, epoch=log.epoch)
        again = led.leader.logs[0]
        assert not again.begun
        led.raise_epochs()  # what was decided last was carried out again before it
        assert (again.start, again.begun) == (log.end, True)

    asyncio.run(scenario())


@pytest.mark.parametrize("epoch_of_then", [True, False])
def test_an_epoch_of_then_raises_nothing(epoch_of_then: bool) -> None:
    async def scenario() -> None:
        led = Led()
        of_then = led.cluster.known.snapshot()
        led.raise_epochs()
        led.leader.stop()
        led.leader.lead([0, 1])
        log = led.leader.logs[0]
        image = ClusterImage.from_snapshot(of_then) if epoch_of_then else led.cluster.known
        led.leader.look_at(image, led.leader.partition_count)
        for broker in (1, 2, 3):
            led.fetch(broker, 100, epoch=log.epoch)
        assert (log.raised, log.begun) == (False, False)

    asyncio.run(scenario())
