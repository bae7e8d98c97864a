"""CreateTopics at every version: what reaches the log, and what the client is told."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from state.limits import PARTITIONS_MAX
from state.protocol_errors import ProtocolError
from state.topic_ids import topic_id_from_text
from streaming.gateway.ports import DecisionTimedOut, NotController
from streaming.image.cluster_image import ClusterImage
from streaming.mint_topic_id import mint_topic_id
from streaming.wire.apis import ApiKey
from tests.fixtures.waiting import wait_on_loop
from tests.unit.gateway.support import DEFAULTS, Rig, running, with_gateway

VERSIONS = range(2, 8)


def topic(name: str, partitions: int = -1, factor: int = -1, **more: Any) -> dict[str, Any]:
    basic = {"name": name, "num_partitions": partitions, "replication_factor": factor}
    return {"assignments": [], "configs": []} | basic | more


def assigned(*replicas: list[int]) -> list[dict[str, Any]]:
    return [{"partition_index": p, "broker_ids": ids} for p, ids in enumerate(replicas)]


async def create(rig: Rig, version: int, *topics: dict[str, Any], **more: Any) -> list[Any]:
    body = {"topics": list(topics), "timeout_ms": 30_000, "validate_only": False} | more
    answer = await rig.ask(ApiKey.CREATE_TOPICS, version, body)
    return answer["topics"]


def told(result: dict[str, Any]) -> tuple[int, str | None]:
    return result["error_code"], result["error_message"]


@pytest.mark.parametrize("version", VERSIONS)
def test_a_created_topic_is_reported_and_in_the_metadata(version: int) -> None:
    async def scenario(rig: Rig) -> None:
        configs = [{"name": "retention.ms", "value": "1000"}]
        (result,) = await create(rig, version, topic("t", 6, 3, configs=configs))
        assert (result["name"], result["error_code"], result["error_message"]) == ("t", 0, None)
        if version >= 5:
            assert (result["num_partitions"], result["replication_factor"]) == (6, 3)
            (config,) = result["configs"]
            assert (config["name"], config["value"]) == ("retention.ms", "1000")
            assert (config["config_source"], config["read_only"]) == (1, False)
        asked = {"topics": [{"name": "t", "topic_id": None}]}
        metadata = await rig.ask(ApiKey.METADATA, 12, asked, "INTERNAL")
        (found,) = metadata["topics"]
        assert [len(p["replica_nodes"]) for p in found["partitions"]] == [3] * 6
        assert result["topic_id"] == (found["topic_id"] if version >= 7 else None)
        (payload,) = rig.cluster.payloads("create_topic_requested")
        assert payload["configs"] == {"retention.ms": "1000"}
        assert uuid.UUID(bytes=topic_id_from_text(payload["topic_id"])) == found["topic_id"]
        assert 0 <= payload["start_index"] < 2**31
        assert payload["start_index"] != payload["shift"]

    with_gateway(scenario)


@pytest.mark.parametrize("version", VERSIONS)
def test_minus_one_takes_the_settings(version: int) -> None:
    async def scenario(rig: Rig) -> None:
        await create(rig, version, topic("t"), topic("p", 5), topic("f", -1, 2))
        payloads = rig.cluster.payloads("create_topic_requested")
        counts = {p["topic"]: (p["partitions"], p["replication_factor"]) for p in payloads}
        assert counts == {"t": (2, 1), "p": (5, 1), "f": (2, 2)}

    with_gateway(scenario)


@pytest.mark.parametrize("version", VERSIONS)
def test_a_manual_assignment_is_kept(version: int) -> None:
    async def scenario(rig: Rig) -> None:
        (result,) = await create(rig, version, topic("t", assignments=assigned([3, 1], [1, 2])))
        assert result["error_code"] == 0
        rows = rig.cluster.known.rows_of("t")
        assert rig.cluster.known.columns["replicas"][rows].tolist() == [[3, 1], [1, 2]]

    with_gateway(scenario)


REFUSED_HERE = {
    "assignment with partitions": (topic("x", 1, assignments=assigned([1])), 42),
    "assignment with factor": (topic("x", -1, 1, assignments=assigned([1])), 42),
    "illegal name": (topic("a/b", 1, 1), 17),
    "empty name": (topic("", 1, 1), 17),
    "name of 250": (topic("n" * 250, 1, 1), 17),
    "KRaft's topic": (topic("__cluster_metadata", 1, 1), 42),
    "null config": (topic("x", 1, 1, configs=[{"name": "a", "value": None}]), 40),
    "unknown config": (topic("x", 1, 1, configs=[{"name": "a", "value": "1"}]), 40),
    "too many partitions": (topic("x", PARTITIONS_MAX + 1, 1), 37),
}
REFUSED_BY_THE_QUERY = {
    "exists": (topic("taken", 1, 1), 36),
    "no partitions": (topic("x", 0, 1), 37),
    "no replicas": (topic("x", 1, 0), 38),
    "too few brokers": (topic("x", 1, 4), 38),
    "gap in assignment": (
        topic("x", assignments=[{"partition_index": 1, "broker_ids": [1]}]),
        39,
    ),
    "no broker": (topic("x", assignments=assigned([-1])), 39),
}


@pytest.mark.parametrize("name", [*REFUSED_HERE, *REFUSED_BY_THE_QUERY])
def test_refusals_concern_one_topic_and_keep_the_order(name: str) -> None:
    async def scenario(rig: Rig) -> None:
        rig.cluster.create("taken", [[1]])
        events = len(rig.cluster.events)
        bad, error = {**REFUSED_HERE, **REFUSED_BY_THE_QUERY}[name]
        results = await create(rig, 7, topic("a", 1, 1), bad, topic("b", 1, 1))
        assert [r["name"] for r in results] == ["a", bad["name"], "b"]
        assert [r["error_code"] for r in results] == [0, error, 0]
        assert results[1]["error_message"]
        assert results[1]["topic_id"] is None
        assert (results[1]["num_partitions"], results[1]["configs"]) == (-1, [])
        appended = len(rig.cluster.events) - events
        assert appended == (2 if name in REFUSED_HERE else 3)

    with_gateway(scenario)


FAULTS = {name: one for name, (one, _) in REFUSED_HERE.items() if one["name"] == "x"}


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("validate_only", [True, False])
def test_of_a_topic_that_exists_that_is_said_whatever_else_is_wrong(
    fault: str, validate_only: bool
) -> None:
    async def scenario(rig: Rig) -> None:
        rig.cluster.create("x", [[1]])
        (result,) = await create(rig, 7, FAULTS[fault], validate_only=validate_only)
        assert told(result) == (ProtocolError.TOPIC_ALREADY_EXISTS, "Topic 'x' already exists.")
        assert result["num_partitions"] == -1
        rows = rig.cluster.known.rows_of("x")
        assert rig.cluster.known.columns["replicas"][rows].tolist() == [[1]]

    with_gateway(scenario)


@pytest.mark.parametrize("held", [True, False])
def test_a_topic_that_is_being_deleted_has_its_name_whatever_else_is_wrong(held: bool) -> None:
    """Held by a reassignment the deletion has not started, and the image has the topic."""

    async def scenario(rig: Rig) -> None:
        rig.cluster.create("x", [[1]])
        asked = {"request_id": "r", "topic": "x"}
        if held:
            move = asked | {"partitions": [0], "targets": [[2]]}
            rig.cluster.happen("alter_reassignments_requested", "x", move)
        rig.cluster.happen("delete_topic_requested", "x", asked | {"topic_id": None})
        assert ("x" in rig.cluster.known.topic_ids) is held
        results = [(await create(rig, 7, one))[0] for one in (topic("x", 1, 1), *FAULTS.values())]
        taken = (ProtocolError.TOPIC_ALREADY_EXISTS, "Topic 'x' is marked for deletion.")
        assert list(map(told, results)) == [taken] * len(results)

    with_gateway(scenario)


def test_a_fault_is_said_of_a_topic_that_has_gone_meanwhile() -> None:
    async def scenario(rig: Rig) -> None:
        rig.cluster.create("x", [[1]])
        image = rig.cluster.known
        rig.cluster.known = ClusterImage()
        rig.cluster.remove("x")
        rig.cluster.known = image
        (result,) = await create(rig, 7, FAULTS["unknown config"])
        assert result["error_code"] == ProtocolError.INVALID_CONFIG
        (_, asked) = rig.cluster.payloads("create_topic_requested")
        assert asked["validate_only"]

    with_gateway(scenario)


def test_who_creates_a_topic_learns_which_names_are_legal() -> None:
    async def scenario(rig: Rig) -> None:
        (result,) = await create(rig, 7, topic("a/b", 1, 1))
        assert result["error_message"].startswith("topic name 'a/b' is illegal: 1 to 249 charact")

    with_gateway(scenario)


def test_a_topic_named_twice_is_refused_both_times() -> None:
    async def scenario(rig: Rig) -> None:
        results = await create(rig, 7, topic("a", 1, 1), topic("b", 1, 1), topic("a", 2, 1))
        assert [(r["name"], r["error_code"]) for r in results] == [
            ("a", ProtocolError.INVALID_REQUEST),
            ("b", 0),
            ("a", ProtocolError.INVALID_REQUEST),
        ]
        assert rig.cluster.known.topic_names() == ["b"]

    with_gateway(scenario)


@pytest.mark.parametrize("version", VERSIONS)
def test_a_dry_run_creates_nothing(version: int) -> None:
    async def scenario(rig: Rig) -> None:
        (result,) = await create(rig, version, topic("t", 4, 2), validate_only=True)
        assert (result["error_code"], result["topic_id"]) == (0, None)
        assert result["num_partitions"] == (4 if version >= 5 else -1)
        assert rig.cluster.known.topic_names() == []

    with_gateway(scenario)


def test_below_protocol_2_8_a_topic_gets_no_id() -> None:
    async def scenario(rig: Rig) -> None:
        (result,) = await create(rig, 7, topic("t", 1, 1))
        assert (result["error_code"], result["topic_id"]) == (0, None)
        (payload,) = rig.cluster.payloads("create_topic_requested")
        assert payload["topic_id"] is None

    with_gateway(scenario, defaults=replace(DEFAULTS, have_ids=False))


@pytest.mark.parametrize("timeout_ms", [0, -1])
def test_without_a_time_for_brokers_only_what_is_done_is_timed_out(timeout_ms: int) -> None:
    async def scenario(rig: Rig) -> None:
        rig.cluster.create("taken", [[1]])
        asked = [topic("t", 1, 1), topic("taken", 1, 1), topic("x", 1, 4), topic("a/b", 1, 1)]
        results = await create(rig, 7, *asked, timeout_ms=timeout_ms)
        assert [r["error_code"] for r in results] == [
            ProtocolError.REQUEST_TIMED_OUT,
            ProtocolError.TOPIC_ALREADY_EXISTS,
            ProtocolError.INVALID_REPLICATION_FACTOR,
            ProtocolError.INVALID_TOPIC_EXCEPTION,
        ]
        assert rig.cluster.known.topic_names() == ["t", "taken"]

    with_gateway(scenario)


def test_a_dry_run_is_answered_whatever_time_it_gives() -> None:
    async def scenario(rig: Rig) -> None:
        rig.cluster.create("taken", [[1]])
        asked = [topic("t", 1, 1), topic("taken", 1, 1)]
        results = await create(rig, 7, *asked, timeout_ms=0, validate_only=True)
        assert [r["error_code"] for r in results] == [
            ProtocolError.NONE,
            ProtocolError.TOPIC_ALREADY_EXISTS,
        ]

    with_gateway(scenario)


@pytest.mark.parametrize(
    ("failure", "error"),
    [
        (NotController("x"), ProtocolError.NOT_CONTROLLER),
        (DecisionTimedOut("x"), ProtocolError.REQUEST_TIMED_OUT),
    ],
)
def test_what_cannot_be_decided(failure: Exception, error: int) -> None:
    async def scenario(rig: Rig) -> None:
        rig.cluster.fail = failure
        results = await create(rig, 7, topic("a", 1, 1), topic("b", 1, 1))
        assert [r["error_code"] for r in results] == [error, error]

    with_gateway(scenario)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("lost", ["controller", "has_image"])
def test_not_the_controller(version: int, lost: str) -> None:
    async def scenario(rig: Rig) -> None:
        setattr(rig.cluster, lost, False)
        results = await create(rig, version, topic("a", 1, 1), topic("bad name", 1, 1))
        assert [r["error_code"] for r in results] == [
            ProtocolError.NOT_CONTROLLER,
            ProtocolError.NOT_CONTROLLER,
        ]
        assert rig.cluster.payloads("create_topic_requested") == []

    with_gateway(scenario)


def test_topics_of_one_request_are_decided_side_by_side() -> None:
    async def scenario(rig: Rig) -> None:
        rig.cluster.gate = asyncio.Event()
        asking = asyncio.create_task(create(rig, 7, *(topic(f"t{n}", 1, 1) for n in range(20))))
        await wait_on_loop(
            "the requests", lambda: len(rig.cluster.payloads("create_topic_requested")) >= 20
        )
        rig.cluster.gate.set()
        results = await asking
        assert [r["name"] for r in results] == [f"t{n}" for n in range(20)]

    with_gateway(scenario)


def test_minted_ids_are_random_uuids_that_znodes_and_command_lines_can_hold(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ids = {mint_topic_id() for _ in range(500)}
    assert len(ids) == 500
    assert all(uuid.UUID(bytes=topic_id_from_text(text)).version == 4 for text in ids)
    dashed = uuid.UUID(bytes=b"\xfb" + bytes(15))
    good = uuid.UUID(int=2)
    draws = iter([uuid.UUID(int=0), uuid.UUID(int=1), dashed, good])
    monkeypatch.setattr(uuid, "uuid4", lambda: next(draws))
    assert topic_id_from_text(mint_topic_id()) == good.bytes


class Policy:
    """Lets no topic have less than two partitions. asked: which ones."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    async def refusal(self, payload: Mapping[str, Any]) -> tuple[int, str | None] | None:
        self.asked.append(payload["topic"])
        partitions = len(payload["assignment"] or ()) or payload["partitions"]
        return (44, "too few") if partitions < 2 else None


@pytest.mark.parametrize("dry", [True, False])
def test_a_policy_is_asked_about_topics_that_could_be_created(dry: bool) -> None:
    policy = Policy()

    async def scenario(rig: Rig) -> None:
        (first,) = await create(rig, 7, topic("there", 3, 1))
        assert first["error_code"] == 0
        policy.asked.clear()
        found = await create(
            rig,
            7,
            topic("there", 1, 1),
            topic("few", 1, 1),
            topic("assigned", assignments=assigned([1])),
            topic("unplaceable", 1, 9),
            topic("default"),
            validate_only=dry,
        )
        codes = [one["error_code"] for one in found]
        assert codes == [36, 44, 44, 38, 0]  # TOPIC_ALREADY_EXISTS, INVALID_REPLICATION_FACTOR
        assert told(found[1]) == (44, "too few")
        assert sorted(policy.asked) == ["assigned", "default", "few"]
        image = rig.cluster.image()
        assert image is not None
        assert set(image.topic_ids) == ({"there"} if dry else {"there", "default"})

    async def run() -> None:
        async with running(topic_policy=policy) as rig:
            await scenario(rig)

    asyncio.run(run())
