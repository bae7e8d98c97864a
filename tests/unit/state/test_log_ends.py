"""Unclean elections of the replica whose log ends last."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from state.decisions import DecisionKind, Rule
from state.errors import MalformedEvent
from state.events import Event, parse_payload
from state.partitions.refusals import RefusalReason
from state.protocol_errors import ProtocolError
from state.step import fold
from tests.fixtures.states import stored
from tests.unit.state.support import Controller, broker

ASK, CHANGE = DecisionKind.ASK_LOG_ENDS, DecisionKind.CHANGE_PARTITIONS
REFUSE, REPLY = DecisionKind.REFUSE_TRANSITION, DecisionKind.REPLY


def recovering(replicas: list[list[int]], **config: Any) -> Controller:
    """Partitions of topic t without a leader: broker 9, which is not there, was alone in sync."""
    enabled = {"unclean_leader_election_enable": True, "unclean_recovery_manager_enabled": True}
    controller = Controller((1, 2, 3), **enabled | config)
    controller.topic("t", replicas, [stored(-1, [9])] * len(replicas))
    return controller


def reported(controller: Controller, *logs: list[list[int]], **other: Any) -> Any:
    """Tell of partitions 0, 1, ... where logs end: [replica, last epoch, end] each."""
    partitions = [*range(len(logs))]
    epochs = [epoch_of(controller, partition) for partition in partitions]
    body = {"partitions": partitions, "leader_epochs": epochs, "logs": logs}
    return controller.happen("log_ends_reported", "t", topic="t", **body | other)


def epoch_of(controller: Controller, partition: int = 0) -> int:
    return int(controller.row("t", partition)["leader_epoch"])


def names(rows: Any) -> list[str]:
    return [row["name"] for row in rows]


def test_nobody_is_elected_before_it_is_known_whose_log_ends_last() -> None:
    controller = Controller(
        (1, 2, 3), unclean_leader_election_enable=True, unclean_recovery_manager_enabled=True
    )
    controller.topic("t", [[1, 2], [1, 2], [1, 9]], [stored(1, [1]), stored(2, [2]), None])
    said = controller.brokers(unregistered=[1])
    assert names(said[ASK]) == ["t-0"], "t-1 has a leader, and of t-2 nobody is there"
    assert controller.row("t", 0)["leader"] == -1
    assert [(row["name"], row["reason"]) for row in said[REFUSE]] == [
        ("t-0", RefusalReason.NO_CANDIDATE),
        ("t-2", RefusalReason.NO_CANDIDATE),
    ]
    clean = controller.brokers(registered=[broker(1, 201)])
    assert ASK not in clean
    assert controller.row("t", 0)["leader"] == 1, "who was in sync is back"


@pytest.mark.parametrize(
    "key", ["unclean_leader_election_enable", "unclean_recovery_manager_enabled"]
)
def test_nobody_is_asked_unless_both_settings_say_so(key: str) -> None:
    controller = recovering([[1, 2, 9]], **{key: False})
    said = controller.brokers(unregistered=[3])
    assert ASK not in said
    led = controller.row("t", 0)["leader"]
    assert led == (-1 if key == "unclean_leader_election_enable" else 1)


def test_a_partition_of_which_no_replica_is_live_has_nobody_to_ask() -> None:
    controller = recovering([[8, 9], [3, 9]])
    said = controller.brokers(registered=[broker(4, 104)])
    assert names(said[ASK]) == ["t-1"]


@pytest.mark.parametrize(
    ("logs", "leader"),
    [
        ([[1, 2, 70], [2, 2, 80], [3, 2, 75]], 2),
        ([[1, 3, 60], [2, 2, 80], [3, 1, 90]], 1),
        ([[3, 2, 80], [1, 2, 80]], 3),
        ([[1, -1, 0], [2, 0, 1]], 2),
        ([[1, -1, 60], [2, -1, 80]], 2),
        ([[9, 3, 900], [7, 3, 950], [3, 2, 1]], 3),
    ],
    ids=[
        "the last offset",
        "a later leader epoch goes before a larger offset",
        "of two the first that is named",
        "an empty log",
        "brokers that cannot say the epoch",
        "who is not live, or no replica, cannot lead",
    ],
)
def test_the_replica_is_elected_whose_log_ends_last(logs: list[list[int]], leader: int) -> None:
    controller = recovering([[1, 2, 3, 9]])
    before = epoch_of(controller)
    said = reported(controller, logs)
    (row,) = said[CHANGE]
    assert (row["leader"], row["isr"], row["rule"]) == (leader, [leader], Rule.UNCLEAN_ELECTED)
    assert ASK not in said
    assert epoch_of(controller) == before + 1


def test_each_partition_has_its_own_longest_log() -> None:
    controller = recovering([[1, 2], [1, 2], [1, 2]])
    said = reported(controller, [[1, 1, 5], [2, 1, 6]], [], [[1, 1, 5]])
    assert [(row["name"], row["leader"]) for row in said[CHANGE]] == [("t-0", 2), ("t-2", 1)]
    assert names(said[ASK]) == ["t-1"], "nobody answered: they are asked again"


def test_who_was_asked_under_an_earlier_leader_epoch_is_asked_again() -> None:
    controller = recovering([[1, 2, 9]])
    said = reported(controller, [[2, 1, 5]], leader_epochs=[epoch_of(controller) - 1])
    assert names(said[ASK]) == ["t-0"]
    assert CHANGE not in said


def test_a_report_about_what_has_a_leader_or_does_not_exist_changes_nothing() -> None:
    controller = recovering([[1, 2]])
    reported(controller, [[2, 1, 5]])
    assert CHANGE not in reported(controller, [[1, 9, 99]])
    gone = reported(controller, [[1, 1, 1]], partitions=[7], leader_epochs=[1])
    assert {ASK, CHANGE}.isdisjoint(gone)
    body = {"topic": "u", "partitions": [0], "leader_epochs": [1], "logs": [[]]}
    assert controller.happen("log_ends_reported", "u", **body) == {}
    controller.happen("controller_paused", reason="test")
    assert reported(controller, [[1, 1, 1]]) == {}


def test_a_topic_that_is_being_deleted_gets_no_leader() -> None:
    controller = recovering([[1, 2, 9]])
    controller.happen("topic_deletion_requested", "t", topic="t")
    said = reported(controller, [[2, 1, 5]])
    assert {ASK, CHANGE}.isdisjoint(said)


def test_an_administrator_gets_the_longest_log_too() -> None:
    controller = recovering([[1, 2, 9], [1, 2, 9]], unclean_leader_election_enable=False)
    said = controller.happen(
        "elect_leaders_requested",
        "t",
        request_id="r",
        topic="t",
        election_type="unclean",
        partitions=[0, 1, 5],
        logs=[[[1, 1, 5], [2, 1, 6]], [], [[1, 1, 1]]],
    )
    assert [(row["name"], row["leader"]) for row in said[CHANGE]] == [("t-0", 2), ("t-1", 1)]
    assert [one["error"] for one in said[REPLY]["partitions"]] == [
        ProtocolError.NONE,
        ProtocolError.NONE,
        ProtocolError.UNKNOWN_TOPIC_OR_PARTITION,
    ]


def test_what_each_replica_was_found_to_be_tells_of_shorter_logs() -> None:
    controller = recovering([[1, 2, 3, 9]])
    slot, epoch = controller.slot, epoch_of(controller)
    slot.ballots = []
    body = {"topic": "t", "partitions": [0], "leader_epochs": [epoch], "logs": [[[2, 1, 6]]]}
    fold(slot, [Event(99, 0, "log_ends_reported", "t", orjson.dumps(body))])
    (ballot,) = slot.ballots
    assert [finding.name for _, finding in ballot.candidates] == [
        "SHORTER_LOG",
        "ELECTED",
        "SHORTER_LOG",
        "NOT_REGISTERED",
    ]


@pytest.mark.parametrize(
    ("logs", "why"),
    [
        ("x", "not a list of lists"),
        ([3], "not a list of lists"),
        ([], "logs of 0 partitions for 1"),
        ([[[1, 2]]], "unpack"),
        ([[[1, 1, 5], [1, 1, 6]]], "not distinct broker ids"),
        ([[[-1, 1, 5]]], "not distinct broker ids"),
        ([[[1, -2, 5]]], "-2 is neither a leader epoch nor an offset"),
        ([[[1, "a", 5]]], "'a'"),
    ],
)
def test_logs_that_say_something_else_are_refused(logs: Any, why: str) -> None:
    body = {"topic": "t", "partitions": [0], "leader_epochs": [1], "logs": logs}
    with pytest.raises(MalformedEvent, match=why):
        parse_payload(Event(0, 0, "log_ends_reported", "t", orjson.dumps(body)))
