"""The check that a broker's controlled shutdown leaves enough replicas in sync."""

from __future__ import annotations

from typing import Any

import pytest

from state.decisions import DecisionKind
from state.partitions.refusals import RefusalReason
from state.protocol_errors import ProtocolError
from tests.fixtures.states import stored
from tests.unit.state.support import Controller, broker

CHANGE, REFUSE = DecisionKind.CHANGE_PARTITIONS, DecisionKind.REFUSE_TRANSITION
CHECK, AT_RISK = DecisionKind.CHECK_SHUTDOWN, DecisionKind.REPORT_AT_RISK
REMAINING, REPLY = DecisionKind.REPORT_REMAINING, DecisionKind.REPLY


def checking(**config: Any) -> Controller:
    return Controller(controlled_shutdown_safety_check_enable=True, **config)


def checked(controller: Controller, said: Any) -> Any:
    """Let the log say what the slots found."""
    at_risk = [row["name"].rsplit("-", 1) for row in said.get(AT_RISK, ())]
    places = [[topic, int(partition)] for topic, partition in at_risk]
    return controller.happen("controlled_shutdown_checked", **said[CHECK], at_risk=places)


def names(rows: Any) -> list[str]:
    return [row["name"] for row in rows]


def test_without_the_check_a_broker_leaves_whatever_becomes_of_its_partitions() -> None:
    controller = Controller(min_insync_replicas=2)
    controller.topic("t", [[1, 2]])
    said = controller.shut_down(1)
    assert CHECK not in said
    assert controller.row("t", 0)["isr"] == [2]


def test_what_would_fall_below_min_insync_replicas_keeps_the_broker() -> None:
    controller = checking(min_insync_replicas=2)
    controller.topic("t", [[1, 2, 3], [2, 1], [1, 2], [1], [2, 3]])
    said = controller.shut_down(1)
    assert said.keys() == {CHECK, AT_RISK}
    assert names(said[AT_RISK]) == ["t-1", "t-2"], "those with one replica are left alone"
    said = checked(controller, said)
    assert CHANGE not in said
    assert said[REPLY]["error"] == ProtocolError.NONE
    assert names(said[REMAINING]) == ["t-1", "t-2"]
    assert [(row["name"], row["replica"], row["reason"]) for row in said[REFUSE]] == [
        ("t-1", 1, RefusalReason.BELOW_MIN_INSYNC),
        ("t-2", 1, RefusalReason.BELOW_MIN_INSYNC),
    ]
    assert (
        controller.slot.brokers.shutting_down == controller.cluster.brokers.shutting_down == set()
    )
    assert controller.row("t", 2)["leader"] == 1


def test_a_broker_that_nothing_needs_leaves_in_two_steps() -> None:
    controller = checking(min_insync_replicas=2)
    controller.topic("t", [[1, 2, 3]])
    said = controller.shut_down(1)
    assert said.keys() == {CHECK}
    said = checked(controller, said)
    assert (controller.row("t", 0)["leader"], controller.row("t", 0)["isr"]) == (2, [2, 3])
    assert REMAINING not in said
    assert controller.slot.brokers.shutting_down == controller.cluster.brokers.shutting_down == {1}


def test_a_topics_own_setting_goes_before_the_clusters() -> None:
    controller = checking(min_insync_replicas=2)
    controller.topic("lax", [[1, 2]], min_insync_replicas=1)
    controller.topic("strict", [[1, 2, 3]], min_insync_replicas=3)
    assert names(controller.shut_down(1)[AT_RISK]) == ["strict-0"]
    body = {"topic": "strict", "unclean": None, "min_insync_replicas": 2}
    controller.happen("topic_config_changed", "strict", **body)
    assert AT_RISK not in controller.shut_down(1)


def test_a_topic_is_created_with_its_setting() -> None:
    controller = checking()
    body = {"request_id": "r", "topic": "t", "partitions": 1, "replication_factor": 2}
    drawn = {"start_index": 0, "shift": 0}
    configs = {"min.insync.replicas": "2"}
    controller.happen("create_topic_requested", "t", **body, **drawn, configs=configs)
    assert names(controller.shut_down(1)[AT_RISK]) == ["t-0"]


def test_the_clusters_default_may_change() -> None:
    controller = checking(min_insync_replicas=1)
    controller.topic("t", [[1, 2]])
    assert AT_RISK not in controller.shut_down(1)
    controller.happen("cluster_config_changed", config={"min.insync.replicas": 2})
    assert names(controller.shut_down(1)[AT_RISK]) == ["t-0"]


def test_brokers_that_are_leaving_too_do_not_count() -> None:
    controller = checking(min_insync_replicas=1)
    controller.topic("t", [[1, 2, 3]])
    for id_ in (1, 2):
        checked(controller, controller.shut_down(id_))
    assert names(controller.shut_down(3)[AT_RISK]) == ["t-0"]


def test_a_broker_that_is_not_in_sync_is_not_needed() -> None:
    controller = checking(min_insync_replicas=2)
    controller.topic("t", [[1, 2]], [stored(2, [2])])
    assert AT_RISK not in controller.shut_down(1)


def test_an_operator_may_let_a_broker_leave_once() -> None:
    controller = checking(min_insync_replicas=2)
    controller.topic("t", [[1, 2]])
    controller.happen("controlled_shutdown_allowed", broker_id=1)
    said = controller.shut_down(1)
    assert said.keys() >= {CHANGE, REPLY}
    assert CHECK not in said
    assert controller.row("t", 0)["isr"] == [2]
    controller.brokers(unregistered=[1])
    controller.brokers(registered=[broker(1, 201)])
    assert CHECK in controller.shut_down(1, 201)


def test_a_broker_that_bounces_during_a_load_is_no_longer_let_leave() -> None:
    controller = checking()
    controller.elect(6, controlled_shutdown_safety_check_enable=True, min_insync_replicas=2)
    controller.brokers(registered=[broker(id_, 100 + id_) for id_ in (1, 2)])
    controller.happen("controlled_shutdown_allowed", broker_id=1)
    controller.brokers(bounced=[broker(1, 201)])
    controller.happen("resync_completed", topics=0)
    controller.topic("t", [[1, 2]])
    assert controller.shut_down(1, 201).keys() == {CHECK, AT_RISK}


@pytest.mark.parametrize(
    ("broker_id", "epoch", "error"),
    [(9, 109, ProtocolError.BROKER_NOT_AVAILABLE), (1, 100, ProtocolError.STALE_BROKER_EPOCH)],
)
def test_what_is_wrong_with_the_request_is_answered_at_once(
    broker_id: int, epoch: int, error: ProtocolError
) -> None:
    controller = checking()
    controller.topic("t", [[1, 2]])
    said = controller.shut_down(broker_id, epoch)
    assert said.keys() == {REPLY}
    assert said[REPLY]["error"] == error


def test_a_broker_that_bounced_since_the_check_is_not_relieved() -> None:
    controller = checking()
    controller.topic("t", [[1, 2]])
    said = controller.shut_down(1)
    controller.brokers(bounced=[broker(1, 201)])
    said = checked(controller, said)
    assert said.keys() == {REPLY}
    assert said[REPLY]["error"] == ProtocolError.STALE_BROKER_EPOCH


def test_two_that_ask_at_the_same_time_are_not_enough_for_each_other() -> None:
    controller = checking(min_insync_replicas=2)
    controller.topic("t", [[1, 2, 3]])
    first, second = controller.shut_down(1), controller.shut_down(2)
    checked(controller, first)
    assert controller.row("t", 0)["isr"] == [2, 3]
    again = checked(controller, second)
    assert again.keys() == {CHECK, AT_RISK}, "1 is not live any more"
    said = checked(controller, again)
    assert names(said[REMAINING]) == ["t-0"]
    assert controller.slot.brokers.shutting_down == {1}
