"""Leaders that their topic does not list: a move was taken back while they alone were in sync."""

from __future__ import annotations

from typing import Any

import pytest

from state.decisions import DecisionKind, Rule
from state.partitions.changes import EPOCH_DURING_DELETE
from state.partitions.legal import PartitionState
from tests.fixtures.states import stored
from tests.unit.state.support import Controller, answer, broker

CHANGE, REFUSE = DecisionKind.CHANGE_PARTITIONS, DecisionKind.REFUSE_TRANSITION
COMPLETE, STOP = DecisionKind.COMPLETE_REASSIGNMENT, DecisionKind.STOP_REPLICAS
REWRITE, DELETE = DecisionKind.REWRITE_ASSIGNMENT, DecisionKind.DELETE_TOPIC
STATE = stored(3, [3], leader_epoch=4, zk_version=7)


def led_by_3(controller: Controller) -> None:
    """Topic t on brokers 1 and 2, of which none is in sync."""
    controller.topic("t", [[1, 2]], [STATE])


def check_recalled(said: dict[DecisionKind, Any]) -> None:
    """Broker 3 is listed as one that is to go, and told to lead."""
    written = said[REWRITE]
    assert (written["assignment"], written["adding"]) == ({"0": [1, 2, 3]}, {})
    assert written["removing"] == {"0": [3]}
    [row] = said[CHANGE]
    assert (row["leader"], row["isr"], row["leader_epoch"]) == (3, [3], 5)
    assert (row["rule"], sorted(row["recipients"])) == (Rule.OFFLINE_PARTITION_ELECTED, [1, 2, 3])


def test_a_leader_that_is_listed_again_is_started_whenever_it_comes_back() -> None:
    controller = Controller((1, 2, 3))
    led_by_3(controller)
    said = controller.move([1, 2, 3])
    assert REFUSE not in said
    [row] = said[CHANGE]
    assert (row["leader"], row["isr"], row["leader_epoch"]) == (3, [3], 5)
    assert (row["adding"], sorted(row["recipients"])) == ([3], [1, 2, 3])
    assert controller.row("t", 0)["state"] == PartitionState.ONLINE
    [row] = controller.brokers(unregistered=[3])[CHANGE]
    assert (row["leader"], row["isr"]) == (-1, [3])
    [row] = controller.brokers(registered=[broker(3, 203)])[CHANGE]
    assert (row["leader"], row["isr"]) == (3, [3])
    assert 3 in row["recipients"]


def test_a_leader_that_is_listed_again_while_it_is_down_leads_when_it_comes_back() -> None:
    controller = Controller((1, 2))
    led_by_3(controller)
    said = controller.move([1, 2, 3], request_id=None)
    [row] = said[CHANGE]
    assert (row["leader"], row["isr"], REFUSE in said) == (3, [3], False)
    [row] = controller.brokers(registered=[broker(3, 103)])[CHANGE]
    assert (row["leader"], row["isr"]) == (3, [3])
    assert 3 in row["recipients"]
    assert controller.row("t", 0)["state"] == PartitionState.ONLINE


def test_a_move_to_a_leader_that_was_not_listed_ends_at_once() -> None:
    controller = Controller((1, 2, 3))
    led_by_3(controller)
    said = controller.move([3], several=DecisionKind.REMOVE_REASSIGNMENTS)
    assert REFUSE not in said
    assert said[COMPLETE]["assignment"] == {"0": [3]}
    assert sorted((row["broker"], row["delete"]) for row in said[STOP]) == [(1, True), (2, True)]
    [row] = said[CHANGE]
    assert (row["leader"], row["isr"], row["leader_epoch"]) == (3, [3], 5)
    controller.brokers(unregistered=[3])
    [row] = controller.brokers(registered=[broker(3, 203)])[CHANGE]
    assert (row["leader"], row["recipients"]) == (3, [3])


def test_a_leader_that_is_not_listed_is_told_to_lead_when_it_comes_back() -> None:
    controller = Controller((1, 2, 3))
    led_by_3(controller)
    controller.brokers(unregistered=[3])
    said = controller.brokers(registered=[broker(3, 203)])
    assert REFUSE not in said
    check_recalled(said)
    assert controller.row("t", 0)["state"] == PartitionState.ONLINE
    said = controller.alter([3, 1, 2], broker_id=3, broker_epoch=203)
    assert said[COMPLETE]["assignment"] == {"0": [1, 2]}
    assert [(row["broker"], row["delete"]) for row in said[STOP]] == [(3, True)]
    [row] = said[CHANGE]
    assert (row["leader"], row["isr"], row["leader_epoch"]) == (1, [1, 2], 6)


def test_a_leader_that_is_not_listed_is_told_to_lead_when_it_bounced() -> None:
    controller = Controller((1, 2, 3))
    led_by_3(controller)
    check_recalled(controller.brokers(bounced=[broker(3, 203)]))


def test_a_leader_that_is_not_listed_is_told_to_lead_after_a_load() -> None:
    controller = Controller((1, 2, 3))
    controller.elect(6)
    controller.brokers(registered=[broker(id_, 100 + id_) for id_ in (1, 2, 3)])
    led_by_3(controller)
    check_recalled(controller.happen("resync_completed", topics=1))


@pytest.mark.parametrize(
    ("leader", "epoch"),
    [
        pytest.param(-1, 5, id="another controller may have had it delete its replica"),
        pytest.param(3, 9, id="another controller is the newer one"),
    ],
)
def test_other_brokers_that_are_not_listed_are_not_told_to_lead(leader: int, epoch: int) -> None:
    controller = Controller((2, 3))
    controller.elect(6)
    controller.brokers(registered=[broker(2, 102)])
    controller.topic(
        "t", [[1, 2]], [stored(leader, [3], leader_epoch=4, controller_epoch=epoch, zk_version=7)]
    )
    controller.happen("resync_completed", topics=1)
    said = controller.brokers(registered=[broker(3, 103)])
    assert REWRITE not in said
    assert controller.row("t", 0)["leader"] == leader


def test_a_leader_that_is_not_listed_is_not_told_to_lead_a_topic_that_is_to_be_deleted() -> None:
    controller = Controller((1, 2))
    led_by_3(controller)
    controller.happen("topic_deletion_requested", "t", topic="t")
    assert REWRITE not in controller.brokers(registered=[broker(3, 103)])


def stopped_with_topic(said: dict[DecisionKind, Any]) -> list[int]:
    rows = said[STOP]
    assert all((row["delete"], row["leader_epoch"]) == (True, EPOCH_DURING_DELETE) for row in rows)
    return sorted(row["broker"] for row in rows)


def test_a_leader_that_is_not_listed_deletes_what_it_has_with_the_topic() -> None:
    controller = Controller((1, 2, 3))
    led_by_3(controller)
    said = controller.happen("topic_deletion_requested", "t", topic="t")
    assert stopped_with_topic(said) == [1, 2, 3]
    assert DELETE not in answer(controller, 1)
    assert answer(controller, 3) == {}
    assert DELETE in answer(controller, 2), "it is not waited for"


def test_who_turns_out_to_lead_a_topic_in_deletion_deletes_what_it_has() -> None:
    controller = Controller((1, 2, 3))
    controller.topic("t", [[1, 2]], [stored(1, [1, 2], leader_epoch=4, zk_version=6)])
    said = controller.happen("topic_deletion_requested", "t", topic="t")
    assert stopped_with_topic(said) == [1, 2]
    said = controller.found("conflict", STATE)
    assert stopped_with_topic(said) == [1, 2, 3]


def test_a_move_goes_on_with_a_leader_that_was_not_listed() -> None:
    controller = Controller((1, 2, 3))
    moving = {"adding": [[4]], "removing": [[2]]}
    controller.topic("t", [[1, 4, 2]], [STATE], **moving)
    said = controller.brokers(bounced=[broker(3, 203)])
    written = said[REWRITE]
    assert written["assignment"] == {"0": [1, 4, 2, 3]}
    assert (written["adding"], written["removing"]) == ({"0": [4]}, {"0": [2, 3]})
