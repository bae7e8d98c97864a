"""State znodes that changed without us: after a notification, and after a conflict."""

from __future__ import annotations

from typing import Any

import pytest

from state.decisions import Action, DecisionKind, Rule
from state.partitions.legal import PartitionState
from state.protocol_errors import ProtocolError
from tests.fixtures.states import stored
from tests.unit.state.support import Controller, actions, broker

CHANGE, STOP = DecisionKind.CHANGE_PARTITIONS, DecisionKind.STOP_REPLICAS
ID_BEFORE, ID = "xVg7K6qyTvmxpuD7RnqU_w", "yVg7K6qyTvmxpuD7RnqU_w"


@pytest.fixture
def controller() -> Controller:
    """Topic t with replicas 1, 2, 3, all in the ISR, led by 1 at epoch 0 and version 0."""
    controller = Controller()
    controller.topic("t", [[1, 2, 3]])
    return controller


def loaded(*brokers: int, state: list[Any]) -> Any:
    """What a new controller decides that finds topic t on 1, 2, 3 with a state."""
    controller = Controller(())
    controller.elect(6)
    controller.brokers(registered=[broker(id_, 100 + id_) for id_ in brokers])
    controller.topic("t", [[1, 2, 3]], [state])
    return controller.happen("resync_completed", topics=1)


def test_a_load_takes_brokers_that_are_not_listed_out_of_the_isr() -> None:
    """Their removal was written to the topic, and not to the state."""
    said = loaded(1, 2, 3, 4, state=stored(1, [1, 2, 3, 4], leader_epoch=3, zk_version=7))
    [row] = said[CHANGE]
    assert (row["leader"], row["isr"], row["leader_epoch"]) == (1, [1, 2, 3], 4)
    assert (row["recipients"], row["rule"]) == ([1, 2, 3], Rule.REPLICA_LEFT_ISR)
    assert [(one["broker"], one["delete"]) for one in said[STOP]] == [(4, True)]


def test_a_load_takes_a_leader_that_is_not_listed_out_of_the_isr_of_the_next_one() -> None:
    said = loaded(1, 2, 3, 4, state=stored(4, [4, 1], leader_epoch=3, zk_version=7))
    [row] = said[CHANGE]
    assert (row["leader"], row["isr"], row["leader_epoch"]) == (1, [1], 4)
    assert (row["recipients"], row["rule"]) == ([1, 2, 3], Rule.OFFLINE_PARTITION_ELECTED)
    assert [(one["broker"], one["delete"]) for one in said[STOP]] == [(4, True)]


def test_a_load_leaves_an_isr_that_a_newer_controller_wrote() -> None:
    state = stored(1, [1, 2, 4], leader_epoch=3, controller_epoch=9, zk_version=7)
    said = loaded(1, 2, 3, 4, state=state)
    assert [row["isr"] for row in said[CHANGE]] == [[1, 2, 4]]
    assert STOP not in said


def observe(controller: Controller, cause: str, state: list[Any] | None) -> Any:
    body = {"topic": "t", "cause": cause, "partitions": [0], "states": [state]}
    return controller.happen("partition_states_observed", "t", **body)


def test_a_notified_isr_is_taken_and_told_without_a_write(controller: Controller) -> None:
    [row] = observe(controller, "notification", stored(1, [1, 3], zk_version=1))[CHANGE]
    assert (row["isr"], row["partition_epoch"], row["leader_epoch"]) == ([1, 3], 1, 0)
    assert actions(row) == Action.UPDATE_METADATA
    assert row["rule"] == Rule.STATE_OBSERVED


@pytest.mark.parametrize("version", [0, -1])
def test_a_notified_state_that_is_not_newer_is_nothing_new(
    controller: Controller, version: int
) -> None:
    assert (
        observe(controller, "notification", stored(2, [2], leader_epoch=9, zk_version=version))
        == {}
    )


def test_a_notified_partition_without_a_state_keeps_the_one_it_got(controller: Controller) -> None:
    """The notification of an earlier topic of that name may be looked at while it is created."""
    assert observe(controller, "notification", None) == {}
    [row] = controller.brokers(unregistered=[3])[CHANGE]
    assert (row["leader"], row["isr"], row["partition_epoch"]) == (1, [1, 2], 1)


def test_a_conflict_is_adopted_and_the_leader_epoch_bumped(controller: Controller) -> None:
    """The leader whose ISR change met the conflict waits for a higher epoch."""
    controller.alter([1, 2])
    [row] = observe(controller, "conflict", stored(1, [1, 3], zk_version=1))[CHANGE]
    assert (row["isr"], row["leader_epoch"], row["partition_epoch"]) == ([1, 3], 1, 2)
    assert actions(row) == Action.WRITE | Action.LEADER_AND_ISR | Action.UPDATE_METADATA
    assert (row["recipients"], row["rule"]) == ([1, 2, 3], Rule.LEADER_EPOCH_BUMPED)


@pytest.mark.parametrize("cause", ["conflict", "rejected"])
@pytest.mark.parametrize("state", [stored(2, [2], leader_epoch=9, zk_version=4), None])
def test_what_a_write_of_another_topic_of_that_name_met_says_nothing(
    cause: str, state: list[Any] | None
) -> None:
    """The name is used again before the correction is folded."""
    controller = Controller()
    controller.topic("t", [[1, 2, 3]], topic_id=ID)
    before = controller.row("t", 0)
    assert controller.found(cause, state, topic_id=ID_BEFORE) == {}
    assert controller.row("t", 0) == before
    assert controller.found(cause, state, topic_id=ID) != {}


def test_a_conflict_counts_whatever_its_version(controller: Controller) -> None:
    controller.alter([1, 2])
    controller.alter([1])
    [row] = observe(controller, "conflict", stored(1, [1, 2, 3]))[CHANGE]
    assert (row["isr"], row["partition_epoch"]) == ([1, 2, 3], 1)


def test_an_adopted_leader_that_is_dead_is_replaced_at_once(controller: Controller) -> None:
    controller.brokers(unregistered=[2])
    [row] = observe(controller, "conflict", stored(2, [2, 3], leader_epoch=4, zk_version=6))[CHANGE]
    assert (row["leader"], row["isr"], row["leader_epoch"], row["partition_epoch"]) == (
        3,
        [3],
        5,
        7,
    )
    assert row["rule"] == Rule.OFFLINE_PARTITION_ELECTED


def test_a_dead_member_of_an_adopted_isr_leaves_it(controller: Controller) -> None:
    controller.brokers(unregistered=[2])
    [row] = observe(controller, "conflict", stored(1, [1, 2], leader_epoch=4, zk_version=6))[CHANGE]
    assert (row["leader"], row["isr"], row["leader_epoch"]) == (1, [1], 5)


@pytest.mark.parametrize("cause", ["read", "conflict", "rejected"])
def test_a_state_that_is_gone_leaves_the_partition_offline_and_is_told_at_each_try(
    controller: Controller, cause: str
) -> None:
    def refused(said: Any) -> list[tuple[str, int, int]]:
        rows = said[DecisionKind.REFUSE_TRANSITION]
        return [(row["reason"], row["current"], row["target"]) for row in rows]

    no_state = ("no_stored_state", PartitionState.OFFLINE, PartitionState.ONLINE)
    said = observe(controller, cause, None)
    assert (CHANGE in said, refused(said)) == (False, [no_state])
    said = controller.brokers(registered=[broker(4, 104)])
    assert (CHANGE in said, refused(said)) == (False, [no_state])
    said = controller.brokers(unregistered=[1])
    assert CHANGE not in said
    assert no_state in refused(said)
    [row] = observe(controller, "read", stored(2, [2, 3], leader_epoch=7, zk_version=9))[CHANGE]
    assert (row["leader"], row["partition_epoch"]) == (2, 9)
    assert controller.slot.table.rows.state.tolist() == [PartitionState.ONLINE]


def test_a_rejected_write_is_taken_back_and_nothing_is_written_before_the_next_occasion(
    controller: Controller,
) -> None:
    controller.brokers(unregistered=[1])
    [row] = observe(controller, "rejected", stored(1, [1, 2, 3]))[CHANGE]
    assert actions(row) == Action.LEADER_AND_ISR | Action.UPDATE_METADATA
    assert (row["leader"], row["isr"], row["leader_epoch"], row["partition_epoch"]) == (
        1,
        [1, 2, 3],
        0,
        0,
    )
    [row] = controller.brokers(registered=[broker(4, 104)])[CHANGE]
    assert actions(row) & Action.WRITE
    assert (row["leader"], row["leader_epoch"], row["partition_epoch"]) == (2, 1, 1)


def test_after_a_rejected_write_replicas_are_told_what_is_stored_unless_their_disk_failed(
    controller: Controller,
) -> None:
    """One that started meanwhile was not told, and one whose disk failed not asked about it."""
    controller.happen("log_dir_failure_notified", broker_ids=[1])
    state = stored(1, [1, 2, 3])
    [row] = observe(controller, "rejected", state)[CHANGE]
    assert (row["recipients"], row["leader_epoch"]) == ([1, 2, 3], 0)
    answer = {"broker_id": 1, "broker_epoch": 101, "topic": "t", "partitions": [0]}
    controller.happen(
        "leader_and_isr_answered", "t", **answer, errors=[ProtocolError.KAFKA_STORAGE_ERROR]
    )
    [row] = observe(controller, "rejected", state)[CHANGE]
    assert (row["recipients"], row["leader_epoch"]) == ([2, 3], 0), "it was asked"


def test_a_rejected_isr_is_accepted_again_when_the_leader_asks_again(
    controller: Controller,
) -> None:
    controller.alter([1, 2])
    observe(controller, "rejected", stored(1, [1, 2, 3]))
    [row] = controller.alter([1, 2])[CHANGE]
    assert (row["isr"], row["leader_epoch"], row["partition_epoch"]) == ([1, 2], 0, 1)


def test_a_partition_that_could_not_be_created_is_created_on_the_next_occasion(
    controller: Controller,
) -> None:
    body = {"topic": "t", "cause": "rejected", "partitions": [0], "states": [None]}
    assert controller.happen("partition_states_observed", "t", **body, uncreated=[0]) == {}
    [row] = controller.brokers(registered=[broker(4, 104)])[CHANGE]
    assert actions(row) & (Action.WRITE | Action.CREATE) == Action.WRITE | Action.CREATE
    assert (row["leader"], row["leader_epoch"], row["partition_epoch"]) == (1, 0, 0)


def test_partitions_nobody_knows_are_passed_over(controller: Controller) -> None:
    body = {
        "topic": "t",
        "cause": "read",
        "partitions": [5],
        "states": [stored(1, [1], zk_version=3)],
    }
    assert controller.happen("partition_states_observed", "t", **body) == {}


def test_what_overtook_us_is_decided_about_again_without_a_bump(controller: Controller) -> None:
    controller.brokers(unregistered=[1])
    [row] = observe(controller, "overtaken", stored(1, [1, 3], zk_version=1))[CHANGE]
    assert (row["leader"], row["isr"], row["leader_epoch"], row["partition_epoch"]) == (
        3,
        [3],
        1,
        2,
    )
    [row] = observe(controller, "overtaken", stored(3, [3], leader_epoch=1, zk_version=2))[CHANGE]
    assert actions(row) == Action.UPDATE_METADATA


def test_what_another_controller_decided_is_adopted_as_it_is(controller: Controller) -> None:
    """Also a leader that cannot lead; the next event decides about it."""
    controller.brokers(unregistered=[2])
    [row] = observe(controller, "adopted", stored(2, [2, 3], leader_epoch=4))[CHANGE]
    assert (row["leader"], row["isr"], row["leader_epoch"], row["partition_epoch"]) == (
        2,
        [2, 3],
        4,
        0,
    )
    assert actions(row) == Action.UPDATE_METADATA
    rows = controller.brokers(registered=[broker(4, 104)])[CHANGE]
    assert [row["leader"] for row in rows] == [3]


def test_an_unlisted_member_of_an_adopted_isr_leaves_it_and_is_deleted(
    controller: Controller,
) -> None:
    """What was to stop it was lost with the write that met this state."""
    said = observe(controller, "conflict", stored(1, [1, 7, 2], leader_epoch=4, zk_version=6))
    [row] = said[CHANGE]
    assert (row["leader"], row["isr"], row["leader_epoch"]) == (1, [1, 2], 5)
    assert (row["recipients"], row["rule"]) == ([1, 2, 3], Rule.REPLICA_LEFT_ISR)
    [stop] = said[DecisionKind.STOP_REPLICAS]
    assert (stop["broker"], stop["delete"], stop["leader_epoch"]) == (7, True, 5)


def test_an_unlisted_leader_is_replaced_and_deleted(controller: Controller) -> None:
    controller.brokers(registered=[broker(7, 107)])
    said = observe(controller, "conflict", stored(7, [7, 1, 2], leader_epoch=4, zk_version=6))
    [row] = said[CHANGE]
    assert (row["leader"], row["isr"], row["leader_epoch"]) == (1, [1, 2], 5)
    [stop] = said[DecisionKind.STOP_REPLICAS]
    assert (stop["broker"], stop["delete"], stop["leader_epoch"]) == (7, True, 5)


def test_an_unlisted_leader_goes_on_while_nobody_else_is_in_sync(controller: Controller) -> None:
    """Under the epoch that it knows, until it takes somebody into the ISR."""
    controller.brokers(registered=[broker(7, 107)])
    said = observe(controller, "conflict", stored(7, [7], leader_epoch=4, zk_version=6))
    [row] = said[CHANGE]
    assert (row["leader"], row["isr"], row["leader_epoch"]) == (7, [7], 4)
    assert DecisionKind.STOP_REPLICAS not in said
    said = observe(controller, "notification", stored(7, [7, 3], leader_epoch=4, zk_version=7))
    [row] = said[CHANGE]
    assert (row["leader"], row["isr"], row["leader_epoch"]) == (3, [3], 5)
    [stop] = said[DecisionKind.STOP_REPLICAS]
    assert (stop["broker"], stop["delete"]) == (7, True)


def test_a_topic_read_again_lets_go_of_brokers_that_it_does_not_list(
    controller: Controller,
) -> None:
    controller.take_back()
    state = stored(1, [1, 2, 7], leader_epoch=4, zk_version=6)
    said = controller.topic("t", [[1, 2, 3]], [state], zk_version=1, observed_again=True)
    [row] = said[CHANGE]
    assert (row["leader"], row["isr"], row["leader_epoch"]) == (1, [1, 2], 5)
    [stop] = said[DecisionKind.STOP_REPLICAS]
    assert (stop["broker"], stop["delete"]) == (7, True)


@pytest.mark.parametrize("again", [False, True])
def test_of_an_isr_without_live_members_the_one_that_is_listed_stays(
    controller: Controller, again: bool
) -> None:
    """It leads when its broker comes back."""
    controller.brokers(registered=[broker(7, 107)], unregistered=[1])
    if again:
        controller.take_back()
        state = stored(1, [1, 7], leader_epoch=4, zk_version=6)
        said = controller.topic("t", [[1, 2, 3]], [state], zk_version=1, observed_again=True)
    else:
        said = observe(controller, "conflict", stored(1, [1, 7], leader_epoch=4, zk_version=6))
    [row] = said[CHANGE]
    assert (row["leader"], row["isr"]) == (-1, [1])
    assert (7, True) in [(row["broker"], row["delete"]) for row in said[DecisionKind.STOP_REPLICAS]]
    [row] = controller.brokers(registered=[broker(1, 111)])[CHANGE]
    assert (row["leader"], row["isr"]) == (1, [1])
