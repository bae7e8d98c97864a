"""Brokers that come, go, bounce, ask to leave, or lose a disk."""

from __future__ import annotations

import pytest

from state.decisions import Action, DecisionKind, Rule
from state.partitions.legal import PartitionState
from state.protocol_errors import ProtocolError
from tests.fixtures.states import stored
from tests.unit.state.support import Controller, actions, broker

CHANGE, STOP = DecisionKind.CHANGE_PARTITIONS, DecisionKind.STOP_REPLICAS


def test_a_dead_leader_is_replaced_by_the_next_in_sync_replica() -> None:
    controller = Controller()
    controller.topic("t", [[1, 2, 3]])
    [row] = controller.brokers(unregistered=[1])[CHANGE]
    assert (row["leader"], row["leader_epoch"], row["isr"]) == (2, 1, [2, 3])
    assert (row["rule"], row["leader_before"]) == (Rule.OFFLINE_PARTITION_ELECTED, 1)


def test_a_dead_follower_leaves_the_isr_and_the_leader_epoch_rises() -> None:
    controller = Controller()
    controller.topic("t", [[1, 2, 3]])
    [row] = controller.brokers(unregistered=[3])[CHANGE]
    assert (row["leader"], row["leader_epoch"], row["isr"]) == (1, 1, [1, 2])
    assert row["rule"] == Rule.REPLICA_LEFT_ISR


def test_a_follower_outside_the_isr_costs_no_write() -> None:
    controller = Controller()
    controller.topic("t", [[1, 2, 3]])
    controller.alter([1, 2])
    [row] = controller.brokers(unregistered=[3])[CHANGE]
    assert not actions(row) & Action.WRITE
    assert row["recipients"] == [1, 2]


def test_the_last_isr_member_stays_listed_without_a_leader() -> None:
    controller = Controller()
    controller.topic("t", [[3, 6]])
    controller.brokers(registered=[broker(6, 106)])
    controller.alter([3, 6], broker_id=3, broker_epoch=103)
    [row] = controller.brokers(unregistered=[1, 2, 3, 6])[CHANGE]
    assert (row["leader"], row["isr"], row["rule"]) == (-1, [3], Rule.LEADER_LOST)
    assert controller.row("t", 0)["state"] == PartitionState.OFFLINE


def test_a_partition_without_a_leader_is_not_told_about_until_it_had_one() -> None:
    controller = Controller((1,))
    controller.topic("t", [[7]])
    assert CHANGE not in controller.brokers(unregistered=[1])


def test_a_bounced_broker_is_failed_and_started_again() -> None:
    controller = Controller()
    controller.topic("t", [[1]])
    said = controller.brokers(bounced=[broker(1, 201)])
    [row] = said[CHANGE]
    assert (row["leader"], row["isr"], row["leader_epoch"]) == (1, [1], 1)
    assert row["recipients"] == [1]
    assert STOP not in said


def test_an_unclean_leader_is_alone_and_recovering() -> None:
    controller = Controller(unclean_leader_election_enable=True)
    controller.topic("t", [[1, 2]])
    controller.alter([1])
    [row] = controller.brokers(unregistered=[1])[CHANGE]
    assert (row["leader"], row["isr"], row["recovery"]) == (2, [2], 1)
    assert row["rule"] == Rule.UNCLEAN_ELECTED


def test_recovery_is_not_marked_for_brokers_that_do_not_know_it() -> None:
    config = {"unclean_leader_election_enable": True, "leader_recovery_supported": False}
    controller = Controller(**config)
    controller.topic("t", [[1, 2]])
    controller.alter([1])
    [row] = controller.brokers(unregistered=[1])[CHANGE]
    assert (row["leader"], row["recovery"]) == (2, 0)


def test_a_topic_may_forbid_what_the_cluster_allows() -> None:
    controller = Controller(unclean_leader_election_enable=True)
    controller.topic("t", [[1, 2]], unclean=False)
    controller.alter([1])
    [row] = controller.brokers(unregistered=[1])[CHANGE]
    assert row["leader"] == -1
    [row] = controller.happen("topic_config_changed", "t", topic="t", unclean=True)[CHANGE]
    assert (row["leader"], row["recovery"]) == (2, 1)


def test_a_topics_config_elects_for_that_topic_only() -> None:
    controller = Controller((1, 2))
    for name in ("t", "u"):
        controller.topic(name, [[1, 2]], [stored(1, [1])])
    controller.brokers(unregistered=[1])
    said = controller.happen("topic_config_changed", "t", topic="t", unclean=True)
    assert [row["topic"] for row in said[CHANGE]] == ["t"]
    assert DecisionKind.REFUSE_TRANSITION not in said


def test_controlled_shutdown_hands_leaders_over_and_reports_what_remains() -> None:
    controller = Controller()
    controller.topic("t", [[1, 2], [2, 1], [1], [1, 3]])
    controller.happen(
        "partition_states_observed",
        "t",
        topic="t",
        cause="notification",
        partitions=[3],
        states=[stored(1, [1], zk_version=1)],
    )
    said = controller.shut_down(1)
    led, followed = said[CHANGE]
    assert (led["leader"], led["isr"], led["recipients"]) == (2, [2], [1, 2])
    assert (followed["leader"], followed["isr"]) == (2, [2])
    assert [row["partition"] for row in said[DecisionKind.REPORT_REMAINING]] == [3]
    assert said[DecisionKind.REPLY]["error"] == 0


def test_controlled_shutdown_answers_who_may_not() -> None:
    controller = Controller()

    def error(broker_id: int, broker_epoch: int) -> int:
        return int(controller.shut_down(broker_id, broker_epoch)[DecisionKind.REPLY]["error"])

    assert error(9, 1) == ProtocolError.BROKER_NOT_AVAILABLE
    assert error(1, 100) == ProtocolError.STALE_BROKER_EPOCH
    assert error(1, -1) == 0
    controller.happen("controller_resigned", reason="test")
    assert error(1, 101) == ProtocolError.NOT_CONTROLLER


def test_a_replica_on_a_failed_disk_loses_its_lead() -> None:
    controller = Controller()
    controller.topic("t", [[1, 2]])
    [asked] = controller.happen("log_dir_failure_notified", broker_ids=[1])[CHANGE]
    assert (asked["recipients"], actions(asked)) == ([1], Action.LEADER_AND_ISR)
    answer = {
        "broker_id": 1,
        "topic": "t",
        "partitions": [0],
        "errors": [ProtocolError.KAFKA_STORAGE_ERROR],
    }
    assert controller.happen("leader_and_isr_answered", "t", broker_epoch=100, **answer) == {}
    said = controller.happen("leader_and_isr_answered", "t", broker_epoch=101, **answer)
    [row] = said[CHANGE]
    assert (row["leader"], row["isr"], row["offline"]) == (2, [2], [1])
    assert [stop["broker"] for stop in said[STOP]] == [1]


def test_nothing_is_decided_without_the_role() -> None:
    controller = Controller()
    controller.topic("t", [[1, 2]])
    controller.happen("controller_resigned", reason="test")
    assert CHANGE not in controller.brokers(unregistered=[1])
    assert controller.topic("u", [[1]]) == {}


@pytest.mark.parametrize("lost", ["unregistered", "bounced"])
def test_a_state_that_is_made_as_one_broker_starts_is_led_as_another_is_lost(lost: str) -> None:
    """KafkaController.onBrokerStartup, onBrokerFailure: both in one look at the registrations."""
    controller = Controller((1, 2))
    controller.topic("t", [[1, 2]])
    controller.found("rejected", None, uncreated=[0])
    gone = [1] if lost == "unregistered" else [broker(1, 201)]
    (row,) = controller.brokers(registered=[broker(3, 103)], **{lost: gone})[CHANGE]
    assert (row["leader"], row["isr"]) == (2, [2])
    assert controller.row("t", 0)["leader"] == 2


def test_a_replica_that_bounces_as_its_first_leader_starts_is_told_of_it() -> None:
    controller = Controller((3,))
    controller.shut_down(3)
    controller.topic("t", [[3, 4]])
    (row,) = controller.brokers(registered=[broker(4, 104)], bounced=[broker(3, 203)])[CHANGE]
    assert (row["leader"], row["recipients"]) == (4, [3, 4])
