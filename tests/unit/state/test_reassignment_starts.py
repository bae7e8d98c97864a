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
    controller.move([4, 5], request_id=request_id)
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


def test_a_target_that_starts_for_the_first_time_is_new() -> None:
    """Kafka takes it from NewReplica to OnlineReplica without a request; its first one says so."""
    controller = moving(1, 2, 5, request_id=None)
    [row] = controller.brokers(registered=[broker(4, 104)])[CHANGE]
    assert {4, 5} <= set(row["recipients"])
    assert actions(row) & Action.IS_NEW
    [row] = controller.brokers(bounced=[broker(4, 204)])[CHANGE]
    assert not actions(row) & Action.IS_NEW


def test_targets_that_were_away_are_new_one_after_the_other() -> None:
    controller = moving(1, 2, request_id=None)
    for id_ in (4, 5):
        [row] = controller.brokers(registered=[broker(id_, 100 + id_)])[CHANGE]
        assert actions(row) & Action.IS_NEW


def test_a_target_that_starts_again_is_not_new_beside_one_that_starts_for_the_first_time() -> None:
    controller = moving(1, 2, 4, request_id=None)
    [row] = controller.brokers(registered=[broker(5, 105)], bounced=[broker(4, 204)])[CHANGE]
    assert {4, 5} <= set(row["recipients"])
    assert not actions(row) & Action.IS_NEW


def test_targets_of_a_move_that_was_rejected_are_new_before_it_is_asked_for_again() -> None:
    """What the rejected write would have said to them was lost with it."""
    controller = moving(1, 2, 4, 5)
    [row] = controller.found("rejected", [1, 3, [1, 2], 4, 0, 7])[CHANGE]
    assert {4, 5} <= set(row["recipients"])
    assert actions(row) & Action.IS_NEW
    [row] = controller.move([4, 5])[CHANGE]
    assert {4, 5} <= set(row["recipients"])


def test_a_target_that_starts_again_is_not_new_though_a_write_is_rejected() -> None:
    """The other one is still away."""
    controller = moving(1, 2, 4, request_id=None)
    controller.brokers(bounced=[broker(4, 204)])
    [row] = controller.found("rejected", [1, 4, [1, 2], 5, 0, 8])[CHANGE]
    assert 4 in row["recipients"]
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
    [row] = controller.move([4, 3])[CHANGE]
    assert row["adding"] == [4, 3]
    assert actions(row) & Action.IS_NEW
