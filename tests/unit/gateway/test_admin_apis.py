"""CreatePartitions and ElectLeaders at every version."""

from __future__ import annotations

from typing import Any

import pytest

from state.protocol_errors import ProtocolError
from streaming.gateway import admin
from streaming.gateway.ports import DecisionTimedOut, NotController, Paused
from streaming.wire.apis import ApiKey
from tests.fixtures.states import stored
from tests.unit.gateway.support import Rig, with_gateway


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is refused with NOT_CONTROLLER is asked again without a pause."""
    monkeypatch.setattr(admin, "_PAUSE_S", 0.0)


async def grow(rig: Rig, version: int, *topics: dict[str, Any], **more: Any) -> dict[str, Any]:
    body = {"topics": list(topics), "timeout_ms": 30_000, "validate_only": False} | more
    answer = await rig.ask(ApiKey.CREATE_PARTITIONS, version, body)
    return {result["name"]: result for result in answer["results"]}


def more(name: str, count: int, *assigned: list[int]) -> dict[str, Any]:
    lists = [{"broker_ids": ids} for ids in assigned] or None
    return {"name": name, "count": count, "assignments": lists}


async def elect(
    rig: Rig, version: int, asked: Any, kind: int = 0, timeout_ms: int = 30_000
) -> dict[str, Any]:
    listed = None if asked is None else [{"topic": t, "partitions": p} for t, p in asked.items()]
    body = {"election_type": kind, "topic_partitions": listed, "timeout_ms": timeout_ms}
    return await rig.ask(ApiKey.ELECT_LEADERS, version, body)


def errors(answer: dict[str, Any]) -> dict[str, dict[int, int]]:
    return {
        result["topic"]: {
            one["partition_id"]: one["error_code"] for one in result["partition_result"]
        }
        for result in answer["replica_election_results"]
    }


@pytest.mark.parametrize("version", range(4))
def test_partitions_are_added_where_the_client_says(version: int) -> None:
    async def scenario(rig: Rig) -> None:
        rig.cluster.create("t", [[1, 2]])
        found = await grow(rig, version, more("t", 3, [2, 3], [3, 1]), more("none", 2))
        assert (found["t"]["error_code"], found["t"]["error_message"]) == (0, None)
        assert found["none"]["error_code"] == ProtocolError.UNKNOWN_TOPIC_OR_PARTITION
        rows = rig.cluster.known.rows_of("t")
        assert rig.cluster.known.columns["replicas"][rows].tolist() == [[1, 2], [2, 3], [3, 1]]

    with_gateway(scenario)


def test_growth_is_refused_for_topics_named_twice_and_beyond_all_measure() -> None:
    async def scenario(rig: Rig) -> None:
        rig.cluster.create("t", [[1]])
        found = await grow(rig, 3, more("t", 2), more("t", 3), more("u", 50_001))
        assert {name: one["error_code"] for name, one in found.items()} == {
            "t": ProtocolError.INVALID_REQUEST,
            "u": ProtocolError.INVALID_PARTITIONS,
        }
        assert rig.cluster.payloads("create_partitions_requested") == []

    with_gateway(scenario)


@pytest.mark.parametrize("timeout_ms", [0, -1])
def test_without_a_time_for_brokers_only_growth_is_timed_out(timeout_ms: int) -> None:
    async def scenario(rig: Rig) -> None:
        rig.cluster.create("t", [[1, 2]])
        asked = (more("t", 2), more("none", 2))
        found = await grow(rig, 3, *asked, timeout_ms=timeout_ms, validate_only=True)
        assert {name: one["error_code"] for name, one in found.items()} == {
            "t": ProtocolError.NONE,
            "none": ProtocolError.UNKNOWN_TOPIC_OR_PARTITION,
        }
        found = await grow(rig, 3, *asked, timeout_ms=timeout_ms)
        assert {name: one["error_code"] for name, one in found.items()} == {
            "t": ProtocolError.REQUEST_TIMED_OUT,
            "none": ProtocolError.UNKNOWN_TOPIC_OR_PARTITION,
        }
        rows = rig.cluster.known.rows_of("t")
        assert len(rig.cluster.known.columns["replicas"][rows]) == 2

    with_gateway(scenario)


def led_by_the_second(rig: Rig) -> None:
    """Partition 0 of topic t is not led by the broker that is preferred."""
    states = [stored(2, [2, 1], leader_epoch=1, controller_epoch=7, zk_version=1)]
    body = {"topic": "t", "cause": "notification", "partitions": [0], "states": states}
    rig.cluster.happen("partition_states_observed", "t", body)


def test_without_a_time_for_brokers_only_those_that_are_elected_for_are_timed_out() -> None:
    async def scenario(rig: Rig) -> None:
        rig.cluster.create("t", [[1, 2], [2, 1]])
        led_by_the_second(rig)
        answer = await elect(rig, 2, {"t": [0, 1]}, timeout_ms=0)
        assert errors(answer) == {
            "t": {0: ProtocolError.REQUEST_TIMED_OUT, 1: ProtocolError.ELECTION_NOT_NEEDED}
        }
        assert rig.cluster.known.columns["leader"].tolist() == [1, 2]

    with_gateway(scenario)


def test_an_election_of_all_is_of_those_led_by_who_is_to_lead_no_more() -> None:
    async def scenario(rig: Rig) -> None:
        rig.cluster.create("t", [[1, 2], [2, 1]])
        assert errors(await elect(rig, 2, None)) == {}
        rig.cluster.last = (1,)
        config = {"leader.deprioritized.list": "1"}
        rig.cluster.happen("cluster_config_changed", "", {"config": config})
        assert errors(await elect(rig, 2, None)) == {"t": {0: ProtocolError.NONE}}
        assert rig.cluster.known.columns["leader"].tolist() == [2, 2]

    with_gateway(scenario)


@pytest.mark.parametrize(
    ("kind", "error"),
    [
        (0, ProtocolError.PREFERRED_LEADER_NOT_AVAILABLE),
        (1, ProtocolError.ELIGIBLE_LEADERS_NOT_AVAILABLE),
    ],
)
def test_an_election_that_is_not_written_is_answered_as_its_type_is(kind: int, error: int) -> None:
    async def scenario(rig: Rig) -> None:
        rig.cluster.create("t", [[1, 2]])
        led_by_the_second(rig)
        happen = rig.cluster.happen

        def unwritten(*about: Any) -> list[dict[str, Any]]:
            (reply,) = happen(*about)
            refused = {"partition": 0, "error": ProtocolError.PREFERRED_LEADER_NOT_AVAILABLE}
            return [reply | {"partitions": [refused]}]

        rig.cluster.happen = unwritten
        assert errors(await elect(rig, 2, {"t": [0]}, kind)) == {"t": {0: error}}

    with_gateway(scenario)


def test_elections_of_a_controller_that_was_replaced_are_not_answered_as_held() -> None:
    async def scenario(rig: Rig) -> None:
        rig.cluster.create("t", [[1, 2]])
        led_by_the_second(rig)
        happen = rig.cluster.happen
        fenced = {"error": ProtocolError.NOT_CONTROLLER}
        rig.cluster.happen = lambda *about: [reply | fenced for reply in happen(*about)]
        assert errors(await elect(rig, 2, {"t": [0]})) == {"t": {0: ProtocolError.NOT_CONTROLLER}}

    with_gateway(scenario)


@pytest.mark.parametrize(
    ("failure", "error"),
    [
        (NotController("gone"), ProtocolError.NOT_CONTROLLER),
        (DecisionTimedOut("late"), ProtocolError.REQUEST_TIMED_OUT),
    ],
)
def test_what_is_not_decided_is_an_error(failure: Exception, error: int) -> None:
    async def scenario(rig: Rig) -> None:
        rig.cluster.create("t", [[1, 2]])
        rig.cluster.fail = failure
        assert (await grow(rig, 3, more("t", 2)))["t"]["error_code"] == error
        assert errors(await elect(rig, 2, {"t": [0]})) == {"t": {0: error}}

    with_gateway(scenario)


def test_another_controller_is_to_be_asked() -> None:
    async def scenario(rig: Rig) -> None:
        rig.cluster.controller = False
        assert (await grow(rig, 3, more("t", 2)))["t"]["error_code"] == ProtocolError.NOT_CONTROLLER
        answer = await elect(rig, 2, {"t": [0]})
        assert (answer["error_code"], errors(answer)) == (
            ProtocolError.NOT_CONTROLLER,
            {"t": {0: ProtocolError.NOT_CONTROLLER}},
        )

    with_gateway(scenario)


@pytest.mark.parametrize("version", range(3))
def test_elections_answer_every_partition(version: int) -> None:
    async def scenario(rig: Rig) -> None:
        rig.cluster.create("t", [[1, 2], [2, 1]])
        down = {"unregistered": [1]}
        rig.cluster.happen("broker_registrations_changed", "", down)
        answer = await elect(rig, version, {"t": [0, 1, 1, 5], "none": [0]})
        assert errors(answer) == {
            "t": {
                0: ProtocolError.PREFERRED_LEADER_NOT_AVAILABLE,
                1: ProtocolError.ELECTION_NOT_NEEDED,
                5: ProtocolError.UNKNOWN_TOPIC_OR_PARTITION,
            },
            "none": {0: ProtocolError.UNKNOWN_TOPIC_OR_PARTITION},
        }
        (of_t,) = [one for one in answer["replica_election_results"] if one["topic"] == "t"]
        messages = {one["partition_id"]: one["error_message"] for one in of_t["partition_result"]}
        assert "preferred" in messages[0]

    with_gateway(scenario)


@pytest.mark.parametrize("kind", [0, 1])
def test_asked_for_all_partitions_only_those_in_need_are_tried(kind: int) -> None:
    async def scenario(rig: Rig) -> None:
        rig.cluster.create("t", [[1, 2], [2, 1]])
        rig.cluster.create("u", [[1]])
        rig.cluster.happen("broker_registrations_changed", "", {"unregistered": [1]})
        expected = {"t": {0: 80}, "u": {0: 80}} if kind == 0 else {"u": {0: 83}}
        assert errors(await elect(rig, 2, None, kind)) == expected

    with_gateway(scenario)


def test_there_are_two_types_of_elections() -> None:
    async def scenario(rig: Rig) -> None:
        assert (await elect(rig, 2, {"t": [0]}, 7))["error_code"] == ProtocolError.INVALID_REQUEST

    with_gateway(scenario)


def test_a_topic_without_a_name_is_unknown_and_the_others_have_their_answers() -> None:
    async def scenario(rig: Rig) -> None:
        rig.cluster.create("t", [[1, 2]])
        found = await grow(rig, 3, more("", 2), more("t", 2))
        assert {name: one["error_code"] for name, one in found.items()} == {
            "": ProtocolError.UNKNOWN_TOPIC_OR_PARTITION,
            "t": ProtocolError.NONE,
        }
        assert errors(await elect(rig, 2, {"": [0], "t": [0]})) == {
            "": {0: ProtocolError.UNKNOWN_TOPIC_OR_PARTITION},
            "t": {0: ProtocolError.ELECTION_NOT_NEEDED},
        }
        body = {"topics": [{"name": "", "topic_id": None}], "timeout_ms": 30_000}
        [deleted] = (await rig.ask(ApiKey.DELETE_TOPICS, 6, body))["responses"]
        assert (deleted["name"], deleted["error_code"]) == (
            "",
            ProtocolError.UNKNOWN_TOPIC_OR_PARTITION,
        )

    with_gateway(scenario)


def test_a_pause_is_explained_to_administrators_and_reads_go_on() -> None:
    async def scenario(rig: Rig) -> None:
        rig.cluster.create("t", [[1, 2]])
        rig.cluster.fail = Paused("paused, says the operator")
        found = await grow(rig, 3, more("t", 2))
        told = [(found["t"]["error_code"], found["t"]["error_message"])]
        [result] = (await elect(rig, 2, {"t": [0]}))["replica_election_results"]
        [partition] = result["partition_result"]
        told.append((partition["error_code"], partition["error_message"]))
        body = {"topics": [{"name": "t", "topic_id": None}], "timeout_ms": 30_000}
        [deleted] = (await rig.ask(ApiKey.DELETE_TOPICS, 6, body))["responses"]
        told.append((deleted["error_code"], deleted["error_message"]))
        new = {"name": "u", "num_partitions": 1, "replication_factor": 1}
        new |= {"assignments": [], "configs": []}
        body = {"topics": [new], "timeout_ms": 30_000, "validate_only": False}
        [created] = (await rig.ask(ApiKey.CREATE_TOPICS, 7, body))["topics"]
        told.append((created["error_code"], created["error_message"]))
        assert told == [(44, "paused, says the operator")] * 4
        answer = await rig.ask(
            ApiKey.LIST_PARTITION_REASSIGNMENTS, 0, {"timeout_ms": 30_000, "topics": None}
        )
        assert answer["error_code"] == 0

    with_gateway(scenario)
