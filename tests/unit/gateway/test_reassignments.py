"""AlterPartitionReassignments and ListPartitionReassignments."""

from __future__ import annotations

from typing import Any

import pytest

from state.protocol_errors import ProtocolError
from streaming.gateway.ports import DecisionTimedOut, NotController, Paused
from streaming.wire.apis import ApiKey
from tests.unit.gateway.support import Rig, with_gateway


async def alter(
    rig: Rig, timeout_ms: int = 30_000, **targets: dict[int, list[int] | None]
) -> dict[str, Any]:
    topics = [
        {
            "name": name,
            "partitions": [{"partition_index": p, "replicas": ids} for p, ids in moves.items()],
        }
        for name, moves in targets.items()
    ]
    body = {"timeout_ms": timeout_ms, "topics": topics}
    return await rig.ask(ApiKey.ALTER_PARTITION_REASSIGNMENTS, 0, body)


def told(answer: dict[str, Any]) -> dict[tuple[str, int], tuple[int, str | None]]:
    """Error and message of each partition of an answer that has none of its own."""
    assert (answer["error_code"], answer["error_message"]) == (0, None)
    return {
        (topic["name"], one["partition_index"]): (one["error_code"], one["error_message"])
        for topic in answer["responses"]
        for one in topic["partitions"]
    }


async def in_motion(
    rig: Rig, asked: dict[str, list[int]] | None = None
) -> dict[tuple[str, int], Any]:
    topics = (
        None
        if asked is None
        else [{"name": name, "partition_indexes": numbers} for name, numbers in asked.items()]
    )
    answer = await rig.ask(
        ApiKey.LIST_PARTITION_REASSIGNMENTS, 0, {"timeout_ms": 1000, "topics": topics}
    )
    assert answer["error_code"] == 0
    return {
        (topic["name"], one["partition_index"]): (
            one["replicas"],
            one["adding_replicas"],
            one["removing_replicas"],
        )
        for topic in answer["topics"]
        for one in topic["partitions"]
    }


def test_reassignments_are_answered_listed_and_taken_back() -> None:
    async def scenario(rig: Rig) -> None:
        rig.cluster.create("t", [[1, 2], [2, 1]])
        rig.cluster.create("u", [[1]])
        found = told(await alter(rig, t={0: [3, 2], 7: [1]}, u={0: [2]}, none={0: None}))
        assert {place: error for place, (error, _) in found.items()} == {
            ("t", 0): ProtocolError.NONE,
            ("t", 7): ProtocolError.UNKNOWN_TOPIC_OR_PARTITION,
            ("u", 0): ProtocolError.NONE,
            ("none", 0): ProtocolError.NO_REASSIGNMENT_IN_PROGRESS,
        }
        moving = {("t", 0): ([3, 2, 1], [3], [1]), ("u", 0): ([2, 1], [2], [1])}
        assert await in_motion(rig) == moving
        assert await in_motion(rig, {"t": [0, 1], "none": [0]}) == {("t", 0): moving["t", 0]}
        assert (await alter(rig, t={0: None}))["error_code"] == 0
        assert list(await in_motion(rig)) == [("u", 0)]

    with_gateway(scenario)


def test_reassignments_are_answered_whatever_time_they_give() -> None:
    async def scenario(rig: Rig) -> None:
        rig.cluster.create("t", [[1, 2], [2, 1]])
        answer = await alter(rig, 0, t={0: [3, 2], 7: [3]})
        [entry] = answer["responses"]
        assert [one["error_code"] for one in entry["partitions"]] == [
            ProtocolError.NONE,
            ProtocolError.UNKNOWN_TOPIC_OR_PARTITION,
        ]

    with_gateway(scenario)


def test_nothing_is_in_motion_at_first() -> None:
    async def scenario(rig: Rig) -> None:
        assert await in_motion(rig) == {}
        assert (await alter(rig))["error_code"] == 0

    with_gateway(scenario)


def test_reassignments_are_for_the_controller() -> None:
    async def scenario(rig: Rig) -> None:
        rig.cluster.controller = False
        assert (await alter(rig, t={0: [1]}))["error_code"] == ProtocolError.NOT_CONTROLLER
        assert (await alter(rig))["error_code"] == ProtocolError.NOT_CONTROLLER
        body = {"timeout_ms": 1000, "topics": None}
        answer = await rig.ask(ApiKey.LIST_PARTITION_REASSIGNMENTS, 0, body)
        assert answer["error_code"] == ProtocolError.NOT_CONTROLLER

    with_gateway(scenario)


def test_a_topic_without_a_name_is_unknown_and_the_others_are_set_in_motion() -> None:
    async def scenario(rig: Rig) -> None:
        rig.cluster.create("t", [[1, 2]])
        found = told(await alter(rig, **{"": {0: [1], 4: None}, "t": {0: [3, 2]}}))
        assert {place: error for place, (error, _) in found.items()} == {
            ("", 0): ProtocolError.UNKNOWN_TOPIC_OR_PARTITION,
            ("", 4): ProtocolError.UNKNOWN_TOPIC_OR_PARTITION,
            ("t", 0): ProtocolError.NONE,
        }

    with_gateway(scenario)


@pytest.mark.parametrize(
    ("failure", "error", "message"),
    [
        (Paused("paused by an operator"), ProtocolError.POLICY_VIOLATION, "paused by an operator"),
        (DecisionTimedOut("late"), ProtocolError.REQUEST_TIMED_OUT, None),
    ],
)
def test_what_is_not_decided_is_said_of_each_partition(
    failure: Exception, error: int, message: str | None
) -> None:
    async def scenario(rig: Rig) -> None:
        rig.cluster.fail = failure
        places = [("t", 0), ("t", 1), ("u", 0)]
        found = told(await alter(rig, t={0: [2], 1: None}, u={0: [2]}))
        assert found == dict.fromkeys(places, (error, message))

    with_gateway(scenario)


def reply_to(rig: Rig, topic: str, instead: dict[str, Any]) -> None:
    """What is asked about a topic is decided, and answered otherwise."""
    happen = rig.cluster.happen

    def answered(kind: str, key: str, payload: dict[str, Any]) -> list[dict[str, Any]]:
        replies = happen(kind, key, payload)
        return [reply | instead for reply in replies] if key == topic else replies

    rig.cluster.happen = answered


def test_what_zookeeper_rejects_of_one_topic_is_not_said_of_the_others() -> None:
    async def scenario(rig: Rig) -> None:
        for topic in ("good", "bad"):
            rig.cluster.create(topic, [[1, 2]])
        error, why = ProtocolError.UNKNOWN_SERVER_ERROR, "ZooKeeper rejects it: no permission"
        reply_to(rig, "bad", {"error": error, "message": why})
        assert told(await alter(rig, bad={0: [2, 1], 7: [1]}, good={0: [2, 1]})) == {
            ("bad", 0): (error, why),
            ("bad", 7): (error, why),
            ("good", 0): (ProtocolError.NONE, None),
        }

    with_gateway(scenario)


def test_another_controller_is_to_be_asked_whatever_became_of_other_topics() -> None:
    async def scenario(rig: Rig) -> None:
        for topic in ("t", "u"):
            rig.cluster.create(topic, [[1, 2]])
        reply_to(rig, "t", {"error": ProtocolError.UNKNOWN_SERVER_ERROR})
        reply_to(rig, "u", {"error": ProtocolError.NOT_CONTROLLER})
        answer = await alter(rig, t={0: [2, 1]}, u={0: [2, 1]})
        assert answer["error_code"] == ProtocolError.NOT_CONTROLLER
        rig.cluster.fail = NotController("gone")
        answer = await alter(rig, t={0: [2, 1]})
        assert answer["error_code"] == ProtocolError.NOT_CONTROLLER

    with_gateway(scenario)


def test_a_refusal_that_repeats_a_long_list_of_replicas_fits_into_the_answer() -> None:
    async def scenario(rig: Rig) -> None:
        rig.cluster.create("t", [[1, 2]])
        found = told(await alter(rig, t={0: [1] * 12_000}))
        error, message = found["t", 0]
        assert error == ProtocolError.INVALID_REPLICA_ASSIGNMENT
        assert message is not None and message.startswith("Duplicate replica ids")
        assert message.endswith("...")

    with_gateway(scenario)
