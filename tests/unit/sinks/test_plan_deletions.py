"""What brokers are told of topics in deletion, decoded again from the bytes of the requests."""

from __future__ import annotations

from tests.fixtures.states import stored
from tests.unit.sinks.test_plan import LISR, STOP, UM, Plans, announced, apis, led

PORTS = {1: 11, 2: 12, 3: 13}
GONE = {("t", 0): -2}


def mark(plans, topic="t"):
    plans.story.write("topic_deletion_requested", topic, topic=topic)


def last_told(plan):
    """(topic, partition): leader by broker, of each one's last UpdateMetadata."""
    return {
        id_: announced([one for one in requests if one.header.api_key is UM][-1])
        for id_, requests in plan.items()
    }


def test_a_load_that_finds_a_mark_tells_every_broker_that_the_topic_is_gone():
    plans = Plans()
    plans.plan()
    plans.story.elected(2, 2)
    plans.story.register(PORTS)
    states = [stored(1, [1, 2], controller_epoch=1)]
    plans.story.observe("t", [[1, 2]], states=states)
    plans.story.observe("u", [[3]], states=[stored(3, [3], controller_epoch=1)])
    mark(plans)
    plans.story.write("resync_completed", topics=2)
    plan = plans.plan()
    assert last_told(plan) == dict.fromkeys((1, 2, 3), GONE)
    assert apis(plan[1]) == [UM, UM, STOP], "everything else comes first"
    assert announced(plan[1][0]) == {("u", 0): 3}


def test_a_broker_that_registers_again_hears_that_its_topic_is_gone():
    plans = Plans()
    plans.story.create("t", [[1, 2]])
    plans.plan()
    plans.story.observe("t", [[1, 2]])
    plans.story.unregister(2)
    mark(plans)
    assert last_told(plans.plan()) == {1: GONE, 3: GONE}
    answer(plans, 1)
    plans.plan()
    plans.story.register({2: 12}, add=200)
    plan = plans.plan()
    assert last_told(plan) == dict.fromkeys((1, 2, 3), GONE)
    assert apis(plan[2]) == [UM, UM, STOP]


def answer(plans, broker):
    plans.story.write(
        "stop_replica_answered",
        "t",
        broker_id=broker,
        broker_epoch=100 + broker,
        topic="t",
        partitions=[0],
        errors=[0],
    )


def test_a_replica_that_is_started_and_deleted_in_one_batch_is_not_started():
    plans = Plans()
    plans.plan()
    plans.story.create("t", [[1, 2]])
    plans.story.create("u", [[1]])
    plans.story.observe("t", [[1, 2]])
    mark(plans)
    plan = plans.plan()
    assert apis(plan[1]) == [LISR, UM, UM, STOP]
    assert led(plan[1]) == {("u", 0): (1, 0, True)}
    assert apis(plan[2]) == [UM, UM, STOP]
    assert announced(plan[2][0]) == {("u", 0): 1}
    assert announced(plan[2][1]) == GONE
