"""What brokers ask: AlterPartition, ControlledShutdown and AllocateProducerIds at every version."""

from __future__ import annotations

import asyncio
import uuid
from typing import Any

import pytest

from state.limits import REPLICAS_MAX
from state.protocol_errors import ProtocolError
from state.topic_ids import topic_id_from_text
from streaming.gateway.ports import DecisionTimedOut, NotController
from streaming.image.cluster_image import ClusterImage
from streaming.wire.apis import ApiKey
from tests.fixtures.waiting import wait_on_loop
from tests.unit.gateway.support import Rig, with_gateway

EPOCH = 101  # of broker 1


def partition(version: int, number: int, isr: list[int], **more: Any) -> dict[str, Any]:
    members: dict[str, Any] = {"new_isr": isr}
    if version >= 3:
        with_epochs = [{"broker_id": b, "broker_epoch": 100 + b} for b in isr]
        members = {"new_isr_with_epochs": with_epochs}
    return {"partition_index": number, "leader_epoch": 0, "partition_epoch": 0} | members | more


def named(rig: Rig, version: int, name: str, partitions: list[Any]) -> dict[str, Any]:
    topic_id = rig.cluster.known.topic_ids.get(name) if version >= 2 else None
    if version < 2:
        return {"topic_name": name, "partitions": partitions}
    known = uuid.uuid5(uuid.NAMESPACE_DNS, name)
    found = known if topic_id is None else uuid.UUID(bytes=topic_id_from_text(topic_id))
    return {"topic_id": found, "partitions": partitions}


async def alter(rig: Rig, version: int, *topics: Any, epoch: int = EPOCH) -> dict[str, Any]:
    body = {"broker_id": 1, "broker_epoch": epoch, "topics": list(topics)}
    return await rig.ask(ApiKey.ALTER_PARTITION, version, body, "INTERNAL")


@pytest.mark.parametrize("version", range(4))
def test_alter_partition_of_several_topics(version: int) -> None:
    async def scenario(rig: Rig) -> None:
        for name in ("a", "b"):
            rig.cluster.create(name, [[1, 2], [1, 3], [2, 1]])
        asked = [
            named(rig, version, "b", [partition(version, 1, [1])]),
            named(rig, version, "a", [partition(version, p, [1]) for p in (2, 0)]),
        ]
        answer = await alter(rig, version, *asked)
        assert answer["error_code"] == 0
        second, first = answer["topics"]
        if version < 2:
            assert (second["topic_name"], first["topic_name"]) == ("b", "a")
        else:
            assert [t["topic_id"] for t in answer["topics"]] == [t["topic_id"] for t in asked]
        (shrunk,) = second["partitions"]
        assert shrunk == {
            "partition_index": 1,
            "error_code": 0,
            "leader_id": 1,
            "leader_epoch": 0,
            "isr": [1],
            "leader_recovery_state": 0,
            "partition_epoch": 1,
        }
        # Broker 1 does not lead partition 2; brokers of version 0 know no such error.
        found = {p["partition_index"]: p["error_code"] for p in first["partitions"]}
        assert found == {2: 42 if version >= 1 else 95, 0: 0}
        events = rig.cluster.payloads("alter_partition_requested")
        assert [(e["topic"], e["version"]) for e in events] == [("b", version), ("a", version)]
        (row,) = events[0]["partitions"]
        assert row["isr"] == [1]

    with_gateway(scenario)


@pytest.mark.parametrize("version", range(4))
def test_alter_partition_of_unknown_topics_and_partitions(version: int) -> None:
    async def scenario(rig: Rig) -> None:
        rig.cluster.create("a", [[1, 2]])
        asked = [
            named(rig, version, "gone", [partition(version, 0, [1])]),
            named(rig, version, "a", [partition(version, p, [1]) for p in (-1, 7, 0)]),
        ]
        answer = await alter(rig, version, *asked)
        errors = [
            {p["partition_index"]: p["error_code"] for p in topic["partitions"]}
            for topic in answer["topics"]
        ]
        assert errors == [
            {
                0: ProtocolError.UNKNOWN_TOPIC_OR_PARTITION
                if version < 2
                else ProtocolError.UNKNOWN_TOPIC_ID
            },
            {
                -1: ProtocolError.UNKNOWN_TOPIC_OR_PARTITION,
                7: ProtocolError.UNKNOWN_TOPIC_OR_PARTITION,
                0: ProtocolError.NONE,
            },
        ]
        keys = [e.key for e in rig.cluster.events if e.kind == "alter_partition_requested"]
        assert keys == ["gone" if version < 2 else "", "a"]

    with_gateway(scenario)


@pytest.mark.parametrize("version", range(4))
def test_alter_partition_of_a_topic_that_the_image_gets_before_the_answer(version: int) -> None:
    """A job that starts again tells an image without its last batch, which runs again first."""

    async def scenario(rig: Rig) -> None:
        rig.cluster.create("a", [[1, 2]])
        asked = named(rig, version, "a", [partition(version, 0, [1])])
        whole, rig.cluster.known = rig.cluster.known, ClusterImage()
        rig.cluster.gate = asyncio.Event()
        answering = asyncio.create_task(alter(rig, version, asked))
        await wait_on_loop("the request", lambda: rig.cluster.payloads("alter_partition_requested"))
        rig.cluster.known = whole
        rig.cluster.gate.set()
        [answer] = (await answering)["topics"]
        [found] = answer["partitions"]
        assert (found["error_code"], found.get("isr")) == (0, [1])

    with_gateway(scenario)


@pytest.mark.parametrize("version", range(4))
def test_an_isr_that_cannot_be_is_refused_here(version: int) -> None:
    """It would make every row of the event as wide, or name a broker twice."""

    async def scenario(rig: Rig) -> None:
        rig.cluster.create("a", [[1, 2]] * 4)
        isrs = [list(range(REPLICAS_MAX + 1)), [1, 1], [1, -1], [1]]
        asked = [partition(version, number, isr) for number, isr in enumerate(isrs)]
        answer = await alter(rig, version, named(rig, version, "a", asked))
        [found] = [topic["partitions"] for topic in answer["topics"]]
        refused = (
            ProtocolError.INVALID_REQUEST if version >= 1 else ProtocolError.INVALID_UPDATE_VERSION
        )
        errors = {p["partition_index"]: p["error_code"] for p in found}
        assert errors == {3: 0, 0: refused, 1: refused, 2: refused}
        [event] = rig.cluster.payloads("alter_partition_requested")
        assert [row["partition"] for row in event["partitions"]] == [3]
        answer = await alter(rig, version, named(rig, version, "a", asked[:2]), epoch=1)
        assert answer["error_code"] == ProtocolError.STALE_BROKER_EPOCH

    with_gateway(scenario)


def test_of_a_partition_named_twice_the_last_counts() -> None:
    async def scenario(rig: Rig) -> None:
        rig.cluster.create("a", [[1, 2, 3]])
        asked = named(rig, 3, "a", [partition(3, 0, [1, 2]), partition(3, 0, [1, 3])])
        answer = await alter(rig, 3, asked, asked)
        ((found,),) = [topic["partitions"] for topic in answer["topics"]]
        assert found["isr"] == [1, 3]

    with_gateway(scenario)


@pytest.mark.parametrize("version", range(4))
def test_a_stale_broker_epoch_concerns_the_whole_request(version: int) -> None:
    async def scenario(rig: Rig) -> None:
        rig.cluster.create("a", [[1, 2]])
        asked = named(rig, version, "a", [partition(version, 0, [1])])
        for topics in ((asked,), ()):
            answer = await alter(rig, version, *topics, epoch=EPOCH - 1)
            assert (answer["error_code"], answer["topics"]) == (
                ProtocolError.STALE_BROKER_EPOCH,
                [],
            )
        assert (await alter(rig, version))["error_code"] == 0

    with_gateway(scenario)


@pytest.mark.parametrize("version", range(1, 4))
def test_leader_recovery_state_is_told_from_version_1_on(version: int) -> None:
    async def scenario(rig: Rig) -> None:
        rig.cluster.create("a", [[1, 2]])
        recovering = partition(version, 0, [1, 2], leader_recovery_state=1)
        answer = await alter(rig, version, named(rig, version, "a", [recovering]))
        assert answer["topics"][0]["partitions"][0]["error_code"] == ProtocolError.INVALID_REQUEST
        strange = partition(version, 0, [1, 2], leader_recovery_state=9)
        answer = await alter(rig, version, named(rig, version, "a", [strange]))
        assert answer["error_code"] == ProtocolError.UNKNOWN_SERVER_ERROR

    with_gateway(scenario)


@pytest.mark.parametrize("version", range(4))
@pytest.mark.parametrize(
    ("failure", "error"),
    [
        (NotController("x"), ProtocolError.NOT_CONTROLLER),
        (DecisionTimedOut("x"), ProtocolError.REQUEST_TIMED_OUT),
    ],
)
def test_alter_partition_that_cannot_be_decided(
    version: int, failure: Exception, error: int
) -> None:
    async def scenario(rig: Rig) -> None:
        rig.cluster.create("a", [[1, 2]])
        rig.cluster.fail = failure
        answer = await alter(rig, version, named(rig, version, "a", [partition(version, 0, [1])]))
        assert (answer["error_code"], answer["topics"]) == (error, [])

    with_gateway(scenario)


@pytest.mark.parametrize("lost", ["controller", "has_image"])
def test_alter_partition_without_the_role_or_an_image(lost: str) -> None:
    async def scenario(rig: Rig) -> None:
        setattr(rig.cluster, lost, False)
        assert (await alter(rig, 3))["error_code"] == ProtocolError.NOT_CONTROLLER

    with_gateway(scenario)


@pytest.mark.parametrize("version", range(4))
def test_controlled_shutdown(version: int) -> None:
    async def scenario(rig: Rig) -> None:
        rig.cluster.create("a", [[1, 2], [2, 1]])
        rig.cluster.create("b", [[1, 3]])
        rig.cluster.happen("broker_registrations_changed", "", {"unregistered": [3]})
        body = {"broker_id": 1} | ({"broker_epoch": EPOCH} if version >= 2 else {})
        key = ApiKey.CONTROLLED_SHUTDOWN
        answer = await rig.ask(key, version, body, "INTERNAL")
        remaining = [{"topic_name": "b", "partition_index": 0}]
        assert answer == {"error_code": 0, "remaining_partitions": remaining}
        (payload,) = rig.cluster.payloads("controlled_shutdown_requested")
        assert payload["broker_epoch"] == (EPOCH if version >= 2 else -1)
        assert payload["version"] == version
        answer = await rig.ask(key, version, {"broker_id": 77}, "INTERNAL")
        assert answer["error_code"] == ProtocolError.BROKER_NOT_AVAILABLE
        if version >= 2:
            answer = await rig.ask(key, version, body | {"broker_epoch": 1}, "INTERNAL")
            assert answer["error_code"] == ProtocolError.STALE_BROKER_EPOCH
        for failure, error in (
            (NotController("x"), ProtocolError.NOT_CONTROLLER),
            (DecisionTimedOut("x"), ProtocolError.REQUEST_TIMED_OUT),
        ):
            rig.cluster.fail = failure
            answer = await rig.ask(key, version, body, "INTERNAL")
            assert answer == {"error_code": error, "remaining_partitions": []}

    with_gateway(scenario)


def test_allocate_producer_ids() -> None:
    async def scenario(rig: Rig) -> None:
        async def ask(broker_id: int, epoch: int) -> tuple[int, int, int]:
            body = {"broker_id": broker_id, "broker_epoch": epoch}
            answer = await rig.ask(ApiKey.ALLOCATE_PRODUCER_IDS, 0, body, "INTERNAL")
            return (answer["error_code"], answer["producer_id_start"], answer["producer_id_len"])

        await rig.ask(ApiKey.INIT_PRODUCER_ID, 4, {"transactional_id": None})
        assert await ask(1, 101) == (0, 1000, 1000)
        assert await ask(2, 102) == (0, 2000, 1000)
        assert await ask(2, 101) == (77, 0, 0)
        for failure, error in (
            (NotController("x"), ProtocolError.NOT_CONTROLLER),
            (DecisionTimedOut("x"), ProtocolError.REQUEST_TIMED_OUT),
        ):
            rig.cluster.fail = failure
            assert await ask(1, 101) == (error, 0, 0)

    with_gateway(scenario)
