"""A pause: nothing is decided from the order on until the load after its end."""

from __future__ import annotations

from typing import Any

import pytest

from state.cluster.authority import Phase
from state.decisions import Action, DecisionKind
from state.partitions.table import Deletion
from state.protocol_errors import ProtocolError
from tests.fixtures.states import stored
from tests.unit.state.support import Controller, actions, broker

PAUSE, REPLY = DecisionKind.SET_PAUSE, DecisionKind.REPLY
BROKERS, CHANGE = DecisionKind.UPDATE_BROKERS, DecisionKind.CHANGE_PARTITIONS


def phases(controller: Controller) -> set[Phase]:
    return {controller.slot.authority.phase, controller.cluster.authority.phase}


@pytest.fixture
def paused() -> Controller:
    """Topic t led by 1, then the order."""
    controller = Controller()
    controller.topic("t", [[1, 2, 3]])
    said = controller.happen("controller_paused", reason="a look around")
    assert said == {PAUSE: {"paused": True, "reason": "a look around"}}
    return controller


def only_told(said: Any) -> bool:
    """Whether what is decided is only to tell what was read."""
    [row] = said[CHANGE]
    return said.keys() == {BROKERS, CHANGE} and actions(row) == Action.UPDATE_METADATA


def load(controller: Controller, epoch: int, brokers: tuple[int, ...]) -> Any:
    """Be elected again, with topic t as it was."""
    controller.elect(epoch)
    controller.brokers(registered=[broker(id_, 100 + id_) for id_ in brokers])
    controller.topic("t", [[1, 2, 3]], [stored(1, [1, 2, 3])])
    return controller.happen("resync_completed", topics=1)


def test_nothing_is_decided_about_partitions(paused: Controller) -> None:
    assert paused.brokers(unregistered=[1]).keys() == {BROKERS}
    assert paused.row("t", 0)["leader"] == 1
    assert paused.topic("new", [[2]]) == {}
    states = [stored(2, [2], leader_epoch=1, zk_version=1)]
    body = {"topic": "t", "cause": "notification", "partitions": [0], "states": states}
    assert paused.happen("partition_states_observed", "t", **body) == {}
    assert paused.happen("topic_deletion_requested", "t", topic="t") == {}
    deadline_ms = 6_000
    assert paused.happen("timer_due", timer="leader_rebalance", deadline_ms=deadline_ms) == {}
    assert paused.happen("log_dir_failure_notified", broker_ids=[2]) == {}
    assert (
        paused.happen("admin_znode_observed", path="/admin/reassign_partitions", zk_version=0) == {}
    )


def test_what_is_asked_for_is_answered_with_an_error(paused: Controller) -> None:
    partition = {"partition": 0, "leader_epoch": 0, "partition_epoch": 0, "isr": [1]}
    who = {"request_id": "r", "broker_id": 1, "broker_epoch": 101, "version": 3}
    asked = [
        ("alter_partition_requested", {**who, "partitions": [partition]}),
        ("delete_topic_requested", {"request_id": "r"}),
        ("create_partitions_requested", {"request_id": "r", "partitions": 4}),
    ]
    for kind, body in asked:
        said = paused.happen(kind, "t", topic="t", **body)
        assert said.keys() == {REPLY}
        assert said[REPLY]["error"] == ProtocolError.NOT_CONTROLLER
    said = paused.shut_down(1)
    assert said[REPLY]["error"] == ProtocolError.NOT_CONTROLLER


def test_producers_still_get_ids(paused: Controller) -> None:
    asked = {"request_id": "r", "broker_id": 1, "broker_epoch": 101}
    said = paused.happen("producer_ids_requested", **asked)
    assert said[REPLY]["error"] == ProtocolError.NONE
    assert DecisionKind.WRITE_PRODUCER_ID_BLOCK in said


def test_the_load_after_the_end_finds_what_happened(paused: Controller) -> None:
    paused.brokers(unregistered=[1])
    said = paused.happen("controller_resumed", reason="done")
    assert said == {PAUSE: {"paused": False, "reason": "done"}}
    assert phases(paused) == {Phase.NONE}
    assert paused.brokers(unregistered=[3]) == {}, "not before the load"
    load(paused, 5, (2,))
    assert phases(paused) == {Phase.ACTIVE}
    assert (paused.row("t", 0)["leader"], paused.row("t", 0)["isr"]) == (2, [2])


def test_a_pause_outlives_an_election(paused: Controller) -> None:
    paused.happen("controller_resigned", reason="front started")
    assert only_told(load(paused, 6, (2, 3)))
    assert phases(paused) == {Phase.PAUSED}
    paused.happen("controller_resumed", reason="done")
    load(paused, 6, (2, 3))
    assert paused.row("t", 0)["leader"] == 2


def test_a_pause_ordered_during_a_load_begins_with_its_end() -> None:
    controller = Controller()
    controller.elect(6)
    controller.happen("controller_paused", reason="early")
    assert phases(controller) == {Phase.LOADING}
    assert only_told(load(controller, 7, (2, 3)))
    assert phases(controller) == {Phase.PAUSED}


def test_a_load_within_which_the_pause_ends_is_left_to_the_load_after_it(
    paused: Controller,
) -> None:
    """That one would read before what this one decides is written."""
    paused.elect(6)
    paused.brokers(registered=[broker(2, 102)])
    paused.happen("controller_resumed", reason="done")
    assert phases(paused) == {Phase.NONE}
    assert paused.topic("t", [[1, 2, 3]], [stored(1, [1, 2, 3])]) == {}
    assert paused.happen("resync_completed", topics=1) == {}
    assert phases(paused) == {Phase.NONE}
    load(paused, 6, (2,))
    assert phases(paused) == {Phase.ACTIVE}
    assert (paused.row("t", 0)["leader"], paused.row("t", 0)["isr"]) == (2, [2])


def test_a_topic_that_is_to_be_repaired_is_told_as_it_is_until_the_load_after_the_pause(
    paused: Controller,
) -> None:
    """Another controller may have put us into its lists, and given it no id."""
    minted = "AAECAwQFBgcICQoLDA0ODw"
    given: Any = {"name": "t", "replicas": [[1000, 1]], "states": [stored(1, [1])]}
    paused.elect(6)
    paused.brokers(registered=[broker(1, 101), broker(2, 102)])
    assert paused.topic(**given, new_topic_id=minted) == {}
    said = paused.happen("resync_completed", topics=1)
    assert only_told(said)
    assert (said[CHANGE][0]["replicas"], said[CHANGE][0]["topic_id"]) == ([1000, 1], None)
    assert said[CHANGE][0]["adding"] == []
    paused.happen("controller_resumed", reason="done")
    paused.elect(6)
    paused.brokers(registered=[broker(1, 101), broker(2, 102)])
    rewrite = paused.topic(**given, new_topic_id=minted)[DecisionKind.REWRITE_ASSIGNMENT]
    assert (rewrite["assignment"], rewrite["topic_id"]) == ({"0": [2, 1]}, minted)


def test_an_end_without_a_pause_changes_nothing() -> None:
    controller = Controller()
    controller.happen("controller_resumed", reason="nothing")
    assert phases(controller) == {Phase.ACTIVE}
    controller.elect(6)
    controller.happen("controller_resumed", reason="nothing")
    assert phases(controller) == {Phase.LOADING}


def test_no_timer_is_left_armed(paused: Controller) -> None:
    assert paused.cluster.timers == {}


def test_a_topic_that_is_to_be_deleted_is_told_as_it_is() -> None:
    controller = Controller()
    controller.elect(6)
    controller.happen("controller_paused", reason="early")
    controller.brokers(registered=[broker(1, 101)])
    controller.topic("t", [[1, 2, 3]], [stored(1, [1, 2, 3])])
    controller.happen("topic_deletion_requested", "t", topic="t")
    assert only_told(controller.happen("resync_completed", topics=1))
    assert controller.slot.table.deletions == {}


def test_a_topic_whose_deletion_had_begun_is_told_as_gone() -> None:
    controller = Controller()
    controller.elect(6)
    controller.happen("controller_paused", reason="early")
    controller.brokers(registered=[broker(1, 101)])
    for topic in ("t", "u"):
        controller.topic(topic, [[1, 2, 3]], [stored(-1, [3], leader_epoch=1, zk_version=1)])
    controller.happen("topic_deletion_requested", "t", topic="t")
    said = controller.happen("resync_completed", topics=2)
    gone = Action.UPDATE_METADATA | Action.DELETED
    assert [actions(row) for row in said[CHANGE]] == [gone, Action.UPDATE_METADATA]
    assert controller.slot.table.deletions == {"t": Deletion()}
    controller.happen("controller_resumed", reason="done")
    controller.elect(7)
    assert controller.slot.table.deletions == {}, "read again"


def test_where_deletion_is_not_allowed_it_is_told_as_it_is() -> None:
    controller = Controller()
    controller.elect(6, delete_topic_enable=False)
    controller.happen("controller_paused", reason="early")
    controller.brokers(registered=[broker(1, 101)])
    controller.topic("t", [[1, 2, 3]], [stored(-1, [3], leader_epoch=1, zk_version=1)])
    controller.happen("topic_deletion_requested", "t", topic="t")
    assert only_told(controller.happen("resync_completed", topics=1))
