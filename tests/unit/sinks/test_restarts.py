"""A job that ends at some step of a batch: its brokers get what they have not confirmed."""

from __future__ import annotations

import pytest

from state.topic_ids import topic_id_to_text
from streaming.sinks.channel import Answer
from streaming.sinks.plan import SharedRequest
from streaming.wire.apis import ApiKey
from streaming.zk.znodes import epoch_bytes
from streaming.zk.znodes.controller import CONTROLLER_EPOCH_PATH
from streaming.zk.znodes.paths import DELETE_TOPICS_PATH, topic_path
from tests.property.control_actions import change_isr
from tests.property.control_brokers import Broker
from tests.property.control_checks import WrittenStates, check_agreement, settle
from tests.property.control_names import ObservedLoop
from tests.property.control_restarts import STEPS, RestartingLoop

PLACE = ("t", 0)
NOT_FOUND_AGAIN = {"after the commit"}
"""The image that a job begins with lacks partitions in doubt: a removal that its broker had not
confirmed is not found then, and the replica stays where it is.
"""


@pytest.mark.parametrize(
    "step", [one for one in STEPS if one != "amid delivery" and one not in NOT_FOUND_AGAIN]
)
def test_a_broker_that_a_cancelled_move_was_to_add_deletes_its_replica(step: str) -> None:
    """The state of the partition met an ISR that its leader wrote: the end of the move is held
    back, and the topic is read again, while the assignment that does not list 4 is written.
    """
    loop = RestartingLoop([])
    states = WrittenStates(loop)
    settle(loop, states)
    loop.log.move("t", {0: [1, 2, 4]})
    settle(loop, states)
    change_isr(loop, loop.brokers[1], PLACE, [1, 2])
    loop.log.move("t", {0: None})
    loop.slow, loop.ends_at = {4}, step
    loop.run_batch()
    assert loop.ends_at == "", "the step is reached"
    assert PLACE in loop.brokers[4].replicas
    loop.slow = set()
    settle(loop, states)
    assert PLACE not in loop.brokers[4].replicas
    check_agreement(loop)


ID_OF_V = topic_id_to_text((7).to_bytes(16, "big"))


class Unstopped(ObservedLoop):
    """A loop in which no broker is to stop a replica."""

    def hand(self, broker: Broker, request: SharedRequest) -> Answer:
        assert request.api is not ApiKey.STOP_REPLICA, ("LOST: is to stop", broker, request.rows)
        return super().hand(broker, request)


def with_topic_v(loop: ObservedLoop) -> WrittenStates:
    """Create a topic v that has an id."""
    states = WrittenStates(loop)
    loop.log.create("v", [[1, 2, 3]], topic_id=ID_OF_V)
    settle(loop, states)
    return states


def delete_v(loop: RestartingLoop) -> None:
    loop.log.write("delete_topic_requested", "v", request_id="delete", topic="v", topic_id=None)


@pytest.mark.parametrize("step", [one for one in STEPS if one != "amid delivery"])
def test_a_topic_whose_mark_for_deletion_was_rejected_keeps_its_replicas(step: str) -> None:
    loop = Unstopped([])
    states = with_topic_v(loop)
    loop.store.denied = DELETE_TOPICS_PATH
    delete_v(loop)
    loop.ends_at = step
    states.run_batch()
    assert loop.ends_at == "", "the step is reached"
    settle(loop, states)
    assert topic_path("v") in loop.store.nodes
    check_agreement(loop)


@pytest.mark.parametrize(
    "step", ["before delivery", "after delivery", "before the commit", "after the commit"]
)
def test_a_topic_whose_mark_for_deletion_was_fenced_keeps_its_replicas(step: str) -> None:
    """Another controller was elected before the mark was written."""
    loop = Unstopped([])
    states = with_topic_v(loop)
    loop.store.change(CONTROLLER_EPOCH_PATH, epoch_bytes(2))
    delete_v(loop)
    loop.ends_at = step
    states.run_batch()
    assert loop.ends_at == "", "the step is reached"
    settle(loop, states)
    assert topic_path("v") in loop.store.nodes
