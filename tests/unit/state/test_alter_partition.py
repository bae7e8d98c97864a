"""AlterPartition: what is accepted, and each error with the versions it differs in."""

from __future__ import annotations

from typing import Any

import pytest

from state.decisions import Action, DecisionKind, Rule
from state.protocol_errors import ProtocolError
from tests.fixtures.states import stored
from tests.unit.state.support import Controller, actions

CHANGE, REPLY = DecisionKind.CHANGE_PARTITIONS, DecisionKind.REPLY


@pytest.fixture
def controller() -> Controller:
    """Topic t, led by 1 at leader epoch 1 with version 1; ISR 1 and 3 of 1, 2, 3."""
    controller = Controller()
    controller.topic("t", [[1, 2, 3]])
    controller.brokers(unregistered=[2])
    return controller


def errors(said: dict[DecisionKind, Any]) -> tuple[str, list[str]]:
    reply = said[REPLY]
    of_partitions = [ProtocolError(row["error"]).name for row in reply["partitions"]]
    return ProtocolError(reply["error"]).name, of_partitions


def test_an_accepted_isr_keeps_its_order_and_the_leader_epoch(controller: Controller) -> None:
    said = controller.alter([3, 1])
    [row] = said[CHANGE]
    assert (row["isr"], row["leader_epoch"], row["partition_epoch"]) == ([3, 1], 1, 2)
    assert actions(row) == Action.WRITE | Action.UPDATE_METADATA
    assert row["rule"] == Rule.ISR_ALTERED_BY_LEADER
    assert said[REPLY]["partitions"] == [
        {
            "partition": 0,
            "error": 0,
            "leader": 1,
            "leader_epoch": 1,
            "isr": [3, 1],
            "recovery": 0,
            "partition_epoch": 2,
        }
    ]


def test_asking_again_for_what_is_so_already_writes_nothing(controller: Controller) -> None:
    said = controller.alter([1, 3], partition_epoch=0)
    assert CHANGE not in said
    assert errors(said) == ("NONE", ["NONE"])


@pytest.mark.parametrize(
    ("wrong", "top", "partition"),
    [
        ({"broker_epoch": 100}, "STALE_BROKER_EPOCH", None),
        ({"broker_id": 9, "broker_epoch": 100}, "STALE_BROKER_EPOCH", None),
        ({"recovery": 25}, "UNKNOWN_SERVER_ERROR", None),
        ({"partition": 7}, "NONE", "UNKNOWN_TOPIC_OR_PARTITION"),
        ({"leader_epoch": 2}, "NONE", "NOT_CONTROLLER"),
        ({"partition_epoch": 2}, "NONE", "NOT_CONTROLLER"),
        ({"leader_epoch": 0}, "NONE", "FENCED_LEADER_EPOCH"),
        ({"partition_epoch": 0}, "NONE", "INVALID_UPDATE_VERSION"),
        ({"recovery": 1}, "NONE", "INVALID_REQUEST"),
        ({"broker_id": 3, "broker_epoch": 103}, "NONE", "INVALID_REQUEST"),
    ],
)
def test_a_change_by_who_may_not_make_it_or_knows_older_state_is_refused(
    controller: Controller, wrong: dict[str, Any], top: str, partition: str | None
) -> None:
    said = controller.alter([1], **wrong)
    assert errors(said) == (top, [] if partition is None else [partition])
    assert CHANGE not in said


@pytest.mark.parametrize("isr", [[], [3], [1, 7]])
def test_an_isr_no_leader_could_mean_is_refused(controller: Controller, isr: list[int]) -> None:
    assert errors(controller.alter(isr)) == ("NONE", ["INVALID_REQUEST"])


@pytest.mark.parametrize(
    ("version", "error"),
    [
        (3, "INELIGIBLE_REPLICA"),
        (2, "INELIGIBLE_REPLICA"),
        (1, "OPERATION_NOT_ATTEMPTED"),
        (0, "INVALID_UPDATE_VERSION"),
    ],
)
def test_a_replica_that_is_not_live_may_not_join(
    controller: Controller, version: int, error: str
) -> None:
    said = controller.alter([1, 3, 2], version=version)
    assert errors(said) == ("NONE", [error])
    assert (CHANGE in said) == (version == 0)


def test_a_replica_on_a_failed_disk_may_not_join_until_it_is_known_to_work_again(
    controller: Controller,
) -> None:
    answer = {"broker_id": 3, "broker_epoch": 103, "topic": "t", "partitions": [0]}
    controller.happen(
        "leader_and_isr_answered", "t", **answer, errors=[ProtocolError.KAFKA_STORAGE_ERROR]
    )
    assert controller.row("t", 0)["isr"] == [1]
    assert errors(controller.alter([1, 3])) == ("NONE", ["INELIGIBLE_REPLICA"])
    assert controller.row("t", 0)["isr"] == [1]
    controller.happen("leader_and_isr_answered", "t", **answer, errors=[0])
    assert errors(controller.alter([1, 3])) == ("NONE", ["NONE"])


def test_a_leader_of_version_0_gets_a_new_epoch_instead_of_an_error_it_cannot_handle(
    controller: Controller,
) -> None:
    [row] = controller.alter([1, 3, 2], version=0)[CHANGE]
    assert (row["leader_epoch"], row["isr"], row["recipients"]) == (2, [1, 3], [1, 3])
    assert row["rule"] == Rule.LEADER_EPOCH_BUMPED


@pytest.mark.parametrize("version", [0, 1, 2, 3])
def test_a_leader_that_was_told_another_replica_is_told_again_with_a_higher_epoch(
    version: int,
) -> None:
    """By another controller: a leader that is refused waits, and ignores the epoch it knows."""
    controller = Controller((1, 2, 3, 4))
    controller.topic("t", [[1, 2, 3]])
    said = controller.alter([1, 2, 3, 4], version=version)
    assert errors(said) == ("NONE", ["INVALID_REQUEST" if version else "INVALID_UPDATE_VERSION"])
    [row] = said[CHANGE]
    assert (row["leader_epoch"], row["isr"], row["recipients"]) == (1, [1, 2, 3], [1, 2, 3])


def test_a_leader_that_is_not_listed_is_refused_under_the_epoch_it_has() -> None:
    """Its followers fetch from it under no other one."""
    controller = Controller((1, 2, 3))
    controller.topic("t", [[2, 3]], [stored(1, [1])])
    said = controller.alter([1, 2])
    assert errors(said) == ("NONE", ["INVALID_REQUEST"])
    assert CHANGE not in said


def test_recovery_ends_with_the_leaders_word() -> None:
    controller = Controller(unclean_leader_election_enable=True)
    controller.topic("t", [[2, 1]], [stored(2, [2])])
    controller.brokers(unregistered=[2])
    assert controller.row("t", 0)["recovery"] == 1
    assert errors(controller.alter([1], recovery=0)) == ("NONE", ["NONE"])
    assert controller.row("t", 0)["recovery"] == 0
    assert errors(controller.alter([1], recovery=1)) == ("NONE", ["INVALID_REQUEST"])


def test_a_topic_id_nobody_knows_is_answered_by_the_cluster_machine(controller: Controller) -> None:
    asked = {"request_id": "r", "broker_id": 1, "broker_epoch": 101, "version": 3}
    partition = {"partition": 4, "leader_epoch": 0, "partition_epoch": 0, "isr": [1]}
    topic = {"topic": "", "topic_id": "x" * 22, "partitions": [partition]}
    said = controller.happen("alter_partition_requested", "", **asked, **topic)
    assert errors(said) == ("NONE", ["UNKNOWN_TOPIC_ID"])


def test_a_slot_without_partitions_answers_too() -> None:
    asked = {"request_id": "r", "broker_id": 1, "broker_epoch": 101, "version": 1}
    partition = {"partition": 4, "leader_epoch": 0, "partition_epoch": 0, "isr": [1]}
    topic = {"topic": "x", "partitions": [partition]}
    said = Controller().happen("alter_partition_requested", "x", **asked, **topic)
    assert errors(said) == ("NONE", ["UNKNOWN_TOPIC_OR_PARTITION"])
