"""Reassignments of topics that are read again because a write met another content."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from checkpoints.machine_format import decode_machine, encode_machine
from checkpoints.reslot import reslot
from checkpoints.snapshot import Snapshot
from state.decisions import DecisionKind
from state.protocol_errors import ProtocolError
from state.routing import Layout
from tests.fixtures.states import stored
from tests.unit.state.support import Controller, broker
from tests.unit.state.test_reassignment import CHANGE, COMPLETE, REMOVE, REWRITE, state, with_topic


def test_a_topic_that_is_read_again_keeps_its_requests() -> None:
    controller = with_topic()
    controller.move([3, 2], request_id=None)
    said = controller.take_back()
    assert list(said) == [DecisionKind.FORGET_TOPIC]


def test_a_request_that_comes_while_the_topic_is_read_again_is_asked_again_behind_that() -> None:
    controller = with_topic()
    controller.take_back()
    assert controller.move([3, 2], request_id=None) == {}
    controller.topic("t", [[1, 2]], [state(1, [1, 2])], zk_version=9, observed_again=True)
    said = controller.move([3, 2], request_id=None)
    assert said[REWRITE]["assignment"] == {"0": [3, 2, 1]}
    assert REMOVE not in said


def test_a_request_for_a_topic_that_turns_out_to_be_gone_goes() -> None:
    controller = with_topic()
    controller.take_back()
    assert controller.move([3, 2], request_id=None) == {}
    controller.happen("topic_removed", "t", topic="t")
    assert controller.move([3, 2], request_id=None)[REMOVE]["partitions"] == [[0, None]]


def test_an_end_that_cannot_be_written_waits_for_the_next_occasion() -> None:
    controller = with_topic()
    controller.take_back()
    moving = {"adding": [[3]], "removing": [[1]], "zk_version": 4}
    state = stored(3, [3, 2], leader_epoch=2, zk_version=7)
    said = controller.topic("t", [[3, 2, 1]], [state], **moving, unwritable=True)
    assert COMPLETE not in said
    said = controller.brokers(registered=[broker(4, 104)])
    assert said[COMPLETE]["assignment"] == {"0": [3, 2]}


def unwritable(isr: list[int], leader_epoch: int = 2, **more: Any) -> Controller:
    """The topic moves from 1 and 2 to 3 and 2, and is read again: nothing can be written to it."""
    controller = Controller((1, 2, 3))
    controller.topic("t", [[1, 2]], [stored(2, [2, 1])])
    read_again(controller, isr, leader_epoch, unwritable=True, **more)
    return controller


def read_again(controller: Controller, isr: list[int], leader_epoch: int = 2, **more: Any) -> Any:
    controller.take_back()
    state = stored(2, isr, leader_epoch=leader_epoch, zk_version=7)
    found = {"adding": [[3]], "removing": [[1]], "zk_version": 4, "observed_again": True}
    return controller.topic("t", [[3, 2, 1]], [state], **found | more)


def asks_for_all(controller: Controller) -> Any:
    return controller.alter([2, 3, 1], broker_id=2, broker_epoch=102)


def test_an_end_that_was_rejected_is_not_tried_at_each_isr_change() -> None:
    controller = unwritable([2, 3])
    said = asks_for_all(controller)
    assert [row["isr"] for row in said[CHANGE]] == [[2, 3, 1]]
    assert COMPLETE not in said
    noticed = stored(2, [2, 3], leader_epoch=3, zk_version=10)
    assert COMPLETE not in controller.found("notification", noticed)
    conflict = stored(2, [2, 3, 1], leader_epoch=3, zk_version=11)
    assert COMPLETE not in controller.found("conflict", conflict)


@pytest.mark.parametrize("error", [ProtocolError.NONE, ProtocolError.KAFKA_STORAGE_ERROR])
def test_an_end_that_was_rejected_is_not_tried_at_each_answer(error: ProtocolError) -> None:
    controller = unwritable([2, 3])
    answered = {"broker_id": 1, "broker_epoch": 101, "topic": "t", "partitions": [0]}
    said = controller.happen("leader_and_isr_answered", "t", **answered, errors=[error])
    assert COMPLETE not in said


def test_an_end_that_was_not_tried_yet_is_tried_as_ever() -> None:
    """What was rejected was something else."""
    assert COMPLETE in asks_for_all(unwritable([2, 1]))


def starts(controller: Controller) -> Any:
    return controller.brokers(registered=[broker(4, 104)])


def bounces(controller: Controller) -> Any:
    return controller.brokers(bounced=[broker(1, 201)])


def is_loaded(controller: Controller) -> Any:
    controller.elect(6)
    starts(controller)
    controller.brokers(registered=[broker(id_, 100 + id_) for id_ in (1, 2, 3)])
    read_again(controller, [2, 3])
    return controller.happen("resync_completed", topics=1)


def is_writable(controller: Controller) -> Any:
    return read_again(controller, [2, 3])


def is_moved(controller: Controller) -> Any:
    return controller.move([3], several=REMOVE)


@pytest.mark.parametrize("occasion", [starts, bounces, is_loaded, is_writable, is_moved])
def test_an_end_that_was_rejected_is_tried_on_the_next_occasion(
    occasion: Callable[[Controller], Any],
) -> None:
    assert COMPLETE in occasion(unwritable([2, 3]))


def test_after_an_occasion_an_end_is_tried_as_ever() -> None:
    controller = unwritable([2, 3])
    controller.brokers(unregistered=[3])
    assert COMPLETE not in controller.brokers(registered=[broker(3, 203)])
    assert COMPLETE in controller.alter([2, 3], broker_id=2, broker_epoch=102)


def test_that_an_end_was_rejected_is_written_and_read_and_moves_with_its_topic() -> None:
    controller = unwritable([2, 3])
    data = controller.states[0]
    assert [one.end_rejected for one in controller.slot.table.topics] == [True]
    assert encode_machine(decode_machine(data)) == data
    moved = reslot(Snapshot(controller.offset, Layout(1, 1), controller.states), Layout(3, 1))
    tables = [decode_machine(moved.states[key]).table for key in range(3)]
    assert [[one.end_rejected for one in table.topics] for table in tables].count([True]) == 1
    assert reslot(moved, Layout(1, 1)).states[0] == data
