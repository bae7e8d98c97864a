"""Which replicas are new to brokers that start while partitions move to them.

A replica that is new is created where there is room. One that is not stays away from brokers with a
failed disk: it may be there.
"""

from __future__ import annotations

from state.decisions import Action, DecisionKind
from tests.unit.state.support import Controller, actions, broker

CHANGE = DecisionKind.CHANGE_PARTITIONS


def moving(*live: int, request_id: str | None = "r") -> Controller:
    """t-0 moves from 1 and 2 to 4 and 5."""
    controller = Controller(live)
    controller.topic("t", [[1, 2]], [[1, 3, [1, 2], 4, 0, 7]], zk_version=9)
    controller.happen(
        "alter_reassignments_requested",
        "t",
        request_id=request_id,
        topic="t",
        partitions=[0],
        targets=[[4, 5]],
    )
    return controller


def test_a_target_that_starts_again_is_not_new() -> None:
    controller = moving(1, 2, 4, 5)
    controller.alter([1, 2, 4])
    controller.brokers(unregistered=[4])
    [row] = controller.brokers(registered=[broker(4, 204)])[CHANGE]
    assert {4, 5} <= set(row["recipients"])
    assert not actions(row) & Action.IS_NEW


def test_a_target_that_bounced_is_not_new() -> None:
    [row] = moving(1, 2, 4, 5).brokers(bounced=[broker(4, 204)])[CHANGE]
    assert {4, 5} <= set(row["recipients"])
    assert not actions(row) & Action.IS_NEW


def test_a_target_that_alone_is_in_sync_leads_with_what_it_has() -> None:
    controller = moving(1, 2, 4, 5)
    controller.alter([1, 2, 4])
    for id_ in (2, 1, 4):
        controller.brokers(unregistered=[id_])
    [row] = controller.brokers(registered=[broker(4, 204)])[CHANGE]
    assert (row["leader"], row["isr"], row["adding"]) == (4, [4], [4, 5])
    assert not actions(row) & Action.IS_NEW


def test_targets_that_are_loaded_are_not_new() -> None:
    controller = moving(1, 2, 4, 5)
    controller.elect(6)
    controller.brokers(registered=[broker(id_, 200 + id_) for id_ in (1, 2, 4, 5)])
    lists = {"adding": [[4, 5]], "removing": [[1, 2]]}
    controller.topic("t", [[4, 5, 1, 2]], [[1, 4, [1, 2, 4], 5, 0, 9]], zk_version=10, **lists)
    [row] = controller.happen("resync_completed", topics=1)[CHANGE]
    assert row["leader_epoch"] == 5
    assert not actions(row) & Action.IS_NEW


def test_a_target_that_was_away_when_its_move_began_is_not_new() -> None:
    """Kafka takes it from NewReplica to OnlineReplica, and tells it of the move as all others."""
    controller = moving(1, 2, 5, request_id=None)
    [row] = controller.brokers(registered=[broker(4, 104)])[CHANGE]
    assert {4, 5} <= set(row["recipients"])
    assert not actions(row) & Action.IS_NEW


def test_a_target_that_runs_is_not_new_again_as_another_broker_starts() -> None:
    controller = moving(1, 2, 4, 5)
    [row] = controller.brokers(bounced=[broker(5, 205)])[CHANGE]
    assert {4, 5} <= set(row["recipients"])
    assert not actions(row) & Action.IS_NEW


def test_a_target_that_comes_later_is_new_beside_one_that_started_again() -> None:
    controller = moving(1, 2, 3, 4, 5)
    controller.brokers(unregistered=[4])
    controller.brokers(registered=[broker(4, 204)])
    said = controller.happen(
        "alter_reassignments_requested",
        "t",
        request_id="r",
        topic="t",
        partitions=[0],
        targets=[[4, 3]],
    )
    [row] = said[CHANGE]
    assert row["adding"] == [4, 3]
    assert actions(row) & Action.IS_NEW
