"""Reassignments of topics that are read again because a write met another content."""

from __future__ import annotations

from state.decisions import DecisionKind
from state.protocol_errors import ProtocolError
from tests.fixtures.states import stored
from tests.unit.state.support import broker
from tests.unit.state.test_reassignment import (
    COMPLETE,
    REMOVE,
    REWRITE,
    errors,
    move,
    state,
    with_topic,
)


def test_a_topic_that_is_read_again_keeps_its_requests() -> None:
    controller = with_topic()
    move(controller, [3, 2], request_id=None)
    said = controller.happen("topic_removed", "t", topic="t", observed_again=True)
    assert list(said) == [DecisionKind.FORGET_TOPIC]


def test_a_request_that_comes_while_the_topic_is_read_again_is_asked_again_behind_that() -> None:
    controller = with_topic()
    controller.happen("topic_removed", "t", topic="t", observed_again=True)
    assert move(controller, [3, 2], request_id=None) == {}
    controller.topic("t", [[1, 2]], [state(1, [1, 2])], zk_version=9, observed_again=True)
    said = move(controller, [3, 2], request_id=None)
    assert said[REWRITE]["assignment"] == {"0": [3, 2, 1]}
    assert REMOVE not in said


def test_a_request_for_a_topic_that_turns_out_to_be_gone_goes() -> None:
    controller = with_topic()
    controller.happen("topic_removed", "t", topic="t", observed_again=True)
    assert move(controller, [3, 2], request_id=None) == {}
    controller.happen("topic_removed", "t", topic="t")
    assert move(controller, [3, 2], request_id=None)[REMOVE]["partitions"] == [[0, None]]


def test_who_waits_is_answered_while_the_topic_is_read_again() -> None:
    controller = with_topic()
    controller.happen("topic_removed", "t", topic="t", observed_again=True)
    assert errors(move(controller, [3, 2])) == [ProtocolError.UNKNOWN_TOPIC_OR_PARTITION]


def test_an_end_that_cannot_be_written_waits_for_the_next_occasion() -> None:
    controller = with_topic()
    controller.happen("topic_removed", "t", topic="t", observed_again=True)
    moving = {"adding": [[3]], "removing": [[1]], "zk_version": 4}
    state = stored(3, [3, 2], leader_epoch=2, zk_version=7)
    said = controller.topic("t", [[3, 2, 1]], [state], **moving, unwritable=True)
    assert COMPLETE not in said
    said = controller.brokers(registered=[broker(4, 104)])
    assert said[COMPLETE]["assignment"] == {"0": [3, 2]}
