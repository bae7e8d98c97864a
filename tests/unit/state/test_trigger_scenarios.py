"""What makes the controller elect leaders and move replicas, scenario by scenario.

Each test has the name of its scenario: first what triggers an election, by strategy, then what
happens to the two state machines in each of the controller's procedures.
"""

from __future__ import annotations

from typing import Any

import pytest

from state.decisions import Action, DecisionKind, Rule
from state.partitions.legal import ReplicaState
from state.protocol_errors import ProtocolError
from tests.fixtures.states import stored
from tests.unit.state.support import Controller, actions, broker

CHANGE, STOP = DecisionKind.CHANGE_PARTITIONS, DecisionKind.STOP_REPLICAS
REWRITE, COMPLETE = DecisionKind.REWRITE_ASSIGNMENT, DecisionKind.COMPLETE_REASSIGNMENT
BROKERS, REMAINING = DecisionKind.UPDATE_BROKERS, DecisionKind.REPORT_REMAINING
DELETE_ZNODE, REPLY = DecisionKind.DELETE_ADMIN_ZNODE, DecisionKind.REPLY
TOLD = Action.LEADER_AND_ISR | Action.UPDATE_METADATA


def back(controller: Controller, *ids: int) -> Any:
    return controller.brokers(registered=[broker(id_, 200 + id_) for id_ in ids])


def elect(controller: Controller, kind: str, *partitions: int, by: str | None = "r") -> Any:
    body = {"request_id": by, "topic": "t", "election_type": kind, "partitions": list(partitions)}
    return controller.happen("elect_leaders_requested", "t", **body)


def offline(unclean: bool = False) -> Controller:
    """Topic t on 1 and 2; 1 alone was in sync and is dead."""
    controller = Controller((1, 2), unclean_leader_election_enable=unclean)
    controller.topic("t", [[1, 2]])
    controller.alter([1])
    controller.brokers(unregistered=[1])
    return controller


# --- OfflinePartitionLeaderElectionStrategy ------------------------------------------------------


def test_controller_reloads() -> None:
    """New and offline partitions are elected for when a controller takes over."""
    controller = Controller()
    controller.elect(6)
    controller.brokers(registered=[broker(2, 102), broker(3, 103)])
    lost, led = stored(1, [1, 2], leader_epoch=4), stored(3, [3], leader_epoch=1)
    controller.topic("t", [[1, 2], [3, 1], [3, 2]], [lost, led, None])
    dead, kept, new = controller.happen("resync_completed", topics=1)[CHANGE]
    assert (dead["leader"], dead["isr"], dead["rule"]) == (2, [2], Rule.OFFLINE_PARTITION_ELECTED)
    assert (kept["leader"], kept["leader_epoch"]) == (3, 1)
    assert (new["leader"], new["isr"], new["rule"]) == (3, [3, 2], Rule.NEW_PARTITION_ELECTED)


def test_script_asks_for_an_unclean_election() -> None:
    """kafka-leader-election --election-type UNCLEAN goes before unclean.leader.election.enable."""
    controller = offline()
    assert controller.row("t", 0)["leader"] == -1
    [row] = elect(controller, "unclean", 0)[CHANGE]
    assert (row["leader"], row["isr"], row["rule"]) == (2, [2], Rule.UNCLEAN_ELECTED)


def test_a_broker_of_the_isr_that_starts_leads_its_offline_partition() -> None:
    controller = offline()
    [row] = back(controller, 1)[CHANGE]
    assert (row["leader"], row["isr"], row["rule"]) == (1, [1], Rule.OFFLINE_PARTITION_ELECTED)


def test_leader_and_isr_response_received() -> None:
    """Replicas on failed disks are offline: their partitions get other leaders."""
    controller = Controller()
    controller.topic("t", [[1, 2, 3], [2, 3]])
    answer = {"broker_id": 1, "broker_epoch": 101, "topic": "t", "partitions": [0]}
    [row] = controller.happen(
        "leader_and_isr_answered", "t", **answer, errors=[ProtocolError.KAFKA_STORAGE_ERROR]
    )[CHANGE]
    assert (row["name"], row["leader"], row["isr"]) == ("t-0", 2, [2, 3])


def test_a_broker_that_is_left_of_the_isr_leads_when_another_crashes() -> None:
    controller = Controller()
    controller.topic("t", [[1, 2, 3], [2, 1], [3, 2]])
    led, followed = controller.brokers(unregistered=[1])[CHANGE]
    assert (led["leader"], led["isr"], led["rule"]) == (2, [2, 3], Rule.OFFLINE_PARTITION_ELECTED)
    assert (followed["leader"], followed["isr"]) == (2, [2])
    assert followed["rule"] == Rule.REPLICA_LEFT_ISR


@pytest.mark.parametrize("of_topic", [True, False])
def test_unclean_leader_election_is_enabled(of_topic: bool) -> None:
    controller = offline()
    if of_topic:
        said = controller.happen("topic_config_changed", "t", topic="t", unclean=True)
    else:
        config = {"unclean.leader.election.enable": True}
        said = controller.happen("cluster_config_changed", config=config)
    [row] = said[CHANGE]
    assert (row["leader"], row["isr"], row["rule"]) == (2, [2], Rule.UNCLEAN_ELECTED)


# --- ReassignPartitionLeaderElectionStrategy -----------------------------------------------------


def test_partition_is_reassigned_without_its_leader() -> None:
    """[2, 4] ==> [1, 4], and 2 leads."""
    controller = Controller((1, 2, 4))
    controller.topic("t", [[2, 4]])
    controller.move([1, 4])
    [row] = controller.alter([2, 4, 1], broker_id=2, broker_epoch=102)[CHANGE]
    assert (row["leader"], row["isr"], row["replicas"]) == (1, [4, 1], [1, 4])
    assert row["rule"] == Rule.REASSIGNED_PARTITION_ELECTED


def test_partition_is_reassigned_whose_leader_is_offline() -> None:
    """Its list stays the same but for the order, and its leader's disk has failed."""
    controller = Controller()
    controller.topic("t", [[1, 2, 3]])
    controller.brokers(unregistered=[1])
    assert controller.row("t", 0)["leader"] == 2
    said = controller.move([3, 2], several=DecisionKind.REMOVE_REASSIGNMENTS)
    [row] = said[CHANGE]
    assert (row["leader"], row["replicas"]) == (2, [3, 2]), "a leader that stays is kept"
    assert row["rule"] == Rule.LEADER_EPOCH_BUMPED
    answer = {
        "broker_id": 2,
        "broker_epoch": 102,
        "topic": "t",
        "partitions": [0],
        "errors": [ProtocolError.KAFKA_STORAGE_ERROR],
    }
    controller.happen("leader_and_isr_answered", "t", **answer)
    assert controller.row("t", 0)["leader"] == 3


# --- PreferredReplicaPartitionLeaderElectionStrategy ---------------------------------------------


def led_by_another() -> Controller:
    """Topic t prefers 1, which came back into the ISR, and is led by 2."""
    controller = Controller()
    controller.topic("t", [[1, 2, 3]])
    controller.brokers(unregistered=[1])
    back(controller, 1)
    controller.alter([2, 3, 1], broker_id=2, broker_epoch=102)
    assert controller.row("t", 0)["leader"] == 2
    return controller


def test_automatic_rebalance_is_due() -> None:
    controller = led_by_another()
    deadline_ms = controller.cluster.timers["leader_rebalance"]
    due = {"timer": "leader_rebalance", "deadline_ms": deadline_ms}
    said = controller.happen("timer_due", **due)
    assert said[DecisionKind.REPORT_IMBALANCE] == [{"broker": 1, "preferred": 1, "imbalanced": 1}]
    counts = {"preferred": {"1": 1}, "imbalanced": {"1": 1}, "proposals": [["t", 0, 1]]}
    [row] = controller.happen("leader_imbalance_reported", **counts)[CHANGE]
    assert (row["leader"], row["isr"]) == (1, [2, 3, 1])
    assert row["rule"] == Rule.PREFERRED_REPLICA_ELECTED


def test_controller_reloads_with_a_preferred_election_pending() -> None:
    """What /admin/preferred_replica_election asks for is done after the load, then it goes."""
    controller = Controller()
    controller.elect(6)
    controller.brokers(registered=[broker(id_, 100 + id_) for id_ in (1, 2)])
    by_2, by_1 = stored(2, [2, 1], leader_epoch=4), stored(1, [1, 2], leader_epoch=4)
    controller.topic("t", [[1, 2], [1, 2]], [by_2, by_1])
    controller.happen("resync_completed", topics=1)
    said = elect(controller, "preferred", 0, 1, by=None)
    [row] = said[CHANGE]
    assert (row["name"], row["leader"]) == ("t-0", 1)
    assert REPLY not in said
    path = "/admin/preferred_replica_election"
    said = controller.happen("admin_znode_observed", path=path, zk_version=3)
    assert (said[DELETE_ZNODE]["path"], said[DELETE_ZNODE]["expected_version"]) == (path, 3)


def test_script_asks_for_a_preferred_election() -> None:
    [row] = elect(led_by_another(), "preferred", 0)[CHANGE]
    assert (row["leader"], row["isr"], row["rule"]) == (
        1,
        [2, 3, 1],
        Rule.PREFERRED_REPLICA_ELECTED,
    )


def test_preferred_replica_that_is_not_first_live_and_in_sync_does_not_lead() -> None:
    """Nobody else is tried either."""
    controller = Controller()
    controller.topic("t", [[1, 2, 3]])
    controller.brokers(unregistered=[1])
    back(controller, 1)
    said = elect(controller, "preferred", 0)
    assert CHANGE not in said
    [answer] = said[REPLY]["partitions"]
    assert answer["error"] == ProtocolError.PREFERRED_LEADER_NOT_AVAILABLE


# --- ControlledShutdownPartitionLeaderElectionStrategy -------------------------------------------


def test_broker_shuts_down() -> None:
    """Its leaders move, it leaves the ISRs; partitions with one replica are not elected for."""
    controller = Controller()
    controller.topic("t", [[1, 2, 3], [2, 1], [1]])
    said = controller.shut_down(1)
    led, followed = said[CHANGE]
    assert (led["leader"], led["isr"]) == (2, [2, 3])
    assert led["rule"] == Rule.CONTROLLED_SHUTDOWN_ELECTED
    assert (followed["leader"], followed["isr"]) == (2, [2])
    [stopped] = said[STOP]
    assert (stopped["name"], stopped["broker"], stopped["delete"]) == ("t-1", 1, False)
    assert REMAINING not in said
    assert controller.row("t", 2)["leader"] == 1


def test_broker_that_shut_down_is_gone() -> None:
    """The offline election then finds what the controlled shutdown left."""
    controller = Controller()
    controller.topic("t", [[1, 2, 3], [1]])
    controller.shut_down(1)
    kept, lost = controller.brokers(unregistered=[1])[CHANGE]
    assert (kept["leader"], kept["leader_epoch"]) == (2, 1), "as the shutdown left it"
    assert (lost["leader"], lost["isr"]) == (-1, [1])


def test_broker_shuts_down_that_alone_is_in_sync() -> None:
    controller = Controller((1, 2))
    controller.topic("t", [[1, 2]])
    controller.alter([1])
    assert [row["name"] for row in controller.shut_down(1)[REMAINING]] == ["t-0"]
    assert controller.row("t", 0)["leader"] == 1


def test_two_brokers_shut_down() -> None:
    """Neither is elected for the other."""
    controller = Controller()
    controller.topic("t", [[1, 2, 3]])
    controller.shut_down(2)
    [row] = controller.shut_down(1)[CHANGE]
    assert (row["leader"], row["isr"]) == (3, [3])


# --- no election ---------------------------------------------------------------------------------


def test_topic_is_created() -> None:
    """The first online replica leads, all that are online are in sync, in the assignment's order;
    partitions and replicas go NonExistent, New, Online.
    """
    controller = Controller((2, 3))
    said = controller.topic("t", [[1, 3, 2]])
    [row] = said[CHANGE]
    assert (row["leader"], row["leader_epoch"], row["isr"]) == (3, 0, [3, 2])
    assert row["rule"] == Rule.NEW_PARTITION_ELECTED
    assert actions(row) == Action.WRITE | Action.CREATE | Action.IS_NEW | TOLD
    assert DecisionKind.REFUSE_TRANSITION not in said
    assert controller.slot.table.rows.replica_state.tolist() == [[ReplicaState.ONLINE] * 3]


@pytest.mark.parametrize(("unclean", "leader"), [(False, -1), (True, 2)])
def test_all_replicas_are_offline_and_one_outside_the_isr_starts(
    unclean: bool, leader: int
) -> None:
    controller = Controller((1, 2), unclean_leader_election_enable=unclean)
    controller.topic("t", [[1, 2]])
    controller.brokers(unregistered=[2])
    controller.brokers(unregistered=[1])
    back(controller, 2)
    assert controller.row("t", 0)["leader"] == leader


def test_all_replicas_are_offline_and_start_one_by_one() -> None:
    """Not who starts first leads, but the first that is in sync."""
    controller = Controller()
    controller.topic("t", [[1, 2, 3]])
    for id_ in (1, 2, 3):
        controller.brokers(unregistered=[id_])
    assert controller.row("t", 0)["isr"] == [3]
    for id_, leader in ((1, -1), (2, -1), (3, 3)):
        back(controller, id_)
        assert controller.row("t", 0)["leader"] == leader


def test_leader_crashes_and_returns() -> None:
    """It does not get its partitions back by itself."""
    controller = Controller()
    controller.topic("t", [[1, 2, 3]])
    controller.brokers(unregistered=[1])
    back(controller, 1)
    controller.alter([2, 3, 1], broker_id=2, broker_epoch=102)
    assert controller.row("t", 0)["leader"] == 2


# --- the controller's procedures -----------------------------------------------------------------


def test_on_broker_startup() -> None:
    """The new broker hears of everything, its replicas go online, offline partitions are elected
    for, and reassignments that wait for it go on.
    """
    controller = Controller((1, 2))
    controller.topic("t", [[1, 2], [3, 1], [2, 1]])
    controller.brokers(registered=[broker(4, 104)])
    controller.move([2, 4], partitions=[2])
    controller.brokers(unregistered=[4])
    said = controller.brokers(registered=[broker(3, 103), broker(4, 204)])
    assert said[BROKERS]["introduced"] == [3, 4]
    moving = said[CHANGE][-1]
    assert (moving["name"], moving["adding"]) == ("t-2", [4])
    assert sorted(moving["recipients"]) == [1, 2, 4]
    states = controller.slot.table.rows.replica_state
    assert (states[controller.slot.table.rows.replicas == 3] == ReplicaState.ONLINE).all()


def test_on_broker_failure() -> None:
    """Partitions without a leader go offline and are elected for; then the replicas go offline."""
    controller = Controller()
    controller.topic("t", [[1, 2], [1]])
    elected, lost = controller.brokers(unregistered=[1])[CHANGE]
    assert (elected["leader"], elected["isr"]) == (2, [2])
    assert (lost["leader"], lost["isr"], lost["rule"]) == (-1, [1], Rule.LEADER_LOST)
    states = controller.slot.table.rows.replica_state
    assert (states[controller.slot.table.rows.replicas == 1] == ReplicaState.OFFLINE).all()


def test_on_controller_failover() -> None:
    """Under the new epoch every broker hears of everything, each replica of its partitions."""
    controller = Controller()
    controller.elect(6)
    controller.brokers(registered=[broker(id_, 100 + id_) for id_ in (1, 2)])
    controller.topic("t", [[1, 2, 3]], [stored(1, [1, 2], leader_epoch=4, zk_version=7)])
    said = controller.happen("resync_completed", topics=1)
    update = said[BROKERS]
    assert (update["complete"], update["introduced"], update["controller_epoch"]) == (
        True,
        [1, 2],
        6,
    )
    [row] = said[CHANGE]
    assert sorted(row["recipients"]) == [1, 2]
    assert actions(row) == TOLD
    assert row["controller_epoch"] == 5, "what is not written keeps the epoch it was written under"
    assert [(one["broker"], one["delete"]) for one in said[STOP]] == [(3, False)]


def test_on_partition_reassignment() -> None:
    """From [1, 2] to [2, 3]: both lists are assigned, 3 starts, and when it is in sync the list is
    what was asked for; 1 leaves the ISR and is stopped and deleted.
    """
    controller = Controller()
    controller.topic("t", [[1, 2]], zk_version=0)
    said = controller.move([2, 3])
    rewritten = said[REWRITE]
    assert rewritten["assignment"] == {"0": [2, 3, 1]}
    assert (rewritten["adding"], rewritten["removing"]) == ({"0": [3]}, {"0": [1]})
    [row] = said[CHANGE]
    assert (sorted(row["recipients"]), row["leader_epoch"]) == ([1, 2, 3], 1)
    assert actions(row) & Action.IS_NEW
    assert COMPLETE not in controller.alter([1, 2])
    said = controller.alter([1, 2, 3])
    [row] = said[CHANGE]
    assert (row["leader"], row["isr"], row["replicas"]) == (2, [2, 3], [2, 3])
    assert [(one["broker"], one["delete"]) for one in said[STOP]] == [(1, True)]
    assert said[COMPLETE]["assignment"] == {"0": [2, 3]}
    assert (said[COMPLETE]["adding"], said[COMPLETE]["removing"]) == ({}, {})


def test_replica_state_machine_starts() -> None:
    """A replica is online when its broker is live, else what cannot be deleted and then offline."""
    controller = Controller()
    controller.elect(6)
    controller.brokers(registered=[broker(1, 101)])
    controller.topic("t", [[1, 2]], [stored(1, [1], leader_epoch=4, zk_version=7)])
    controller.happen("resync_completed", topics=1)
    online, dead = controller.slot.table.rows.replica_state[0].tolist()
    assert (online, dead) == (ReplicaState.ONLINE, ReplicaState.OFFLINE)
