"""Metadata at every version: nodes by listener, topics by name and id, and Kafka's error rules."""

from __future__ import annotations

import uuid
from typing import Any

import pytest

from state.protocol_errors import ProtocolError
from state.topic_ids import topic_id_from_text
from streaming.image.cluster_image import ClusterImage
from streaming.wire.apis import ApiKey
from tests.unit.gateway.support import BROKERS, CLUSTER_ID, FakeCluster, Rig, with_gateway

VERSIONS = range(13)
NOT_ASKED = -(2**31)


def body(version: int, names: list[str] | None, **more: Any) -> dict[str, Any]:
    topics = None if names is None else [{"name": name, "topic_id": None} for name in names]
    return {"topics": [] if version == 0 and names is None else topics, **more}


def three_topics(cluster: FakeCluster) -> None:
    """t: two partitions; led: leaders 1 and 3; __consumer_offsets."""
    cluster.create("t", [[1, 2], [2, 1]])
    cluster.create("led", [[1, 3], [3, 1]])
    cluster.create("__consumer_offsets", [[2]])


def by_name(answer: dict[str, Any]) -> dict[str, Any]:
    return {topic["name"]: topic for topic in answer["topics"]}


@pytest.mark.parametrize("version", VERSIONS)
def test_all_topics_and_the_nodes_of_the_listener(version: int) -> None:
    async def scenario(rig: Rig) -> None:
        three_topics(rig.cluster)
        answer = await rig.ask(ApiKey.METADATA, version, body(version, None))
        nodes = [(n["node_id"], n["host"], n["port"]) for n in answer["brokers"]]
        assert nodes == [(1, "b1", 29101), (2, "b2", 29102), (1000, "127.0.0.1", rig.port())]
        racks = [node["rack"] for node in answer["brokers"]]
        assert racks == (["a", "b", "a"] if version >= 1 else [None] * 3)
        assert answer["controller_id"] == (1000 if version >= 1 else -1)
        assert answer["cluster_id"] == (CLUSTER_ID if version >= 2 else None)
        topics = by_name(answer)
        assert list(topics) == ["t", "led", "__consumer_offsets"]
        internal = [topic["is_internal"] for topic in topics.values()]
        assert internal == [False, False, version >= 1]
        ids = [topic["topic_id"] for topic in topics.values()]
        known = [
            uuid.UUID(bytes=topic_id_from_text(rig.cluster.known.topic_ids[name]))
            for name in topics
        ]
        assert ids == (known if version >= 10 else [None] * 3)
        assert topics["t"]["partitions"] == [
            {
                "error_code": 0,
                "partition_index": partition,
                "leader_id": leader,
                "leader_epoch": 0 if version >= 7 else -1,
                "replica_nodes": replicas,
                "isr_nodes": replicas,
                "offline_replicas": [],
            }
            for partition, leader, replicas in ((0, 1, [1, 2]), (1, 2, [2, 1]))
        ]

    with_gateway(scenario)


@pytest.mark.parametrize("version", VERSIONS)
def test_a_leader_without_the_listener(version: int) -> None:
    async def scenario(rig: Rig) -> None:
        three_topics(rig.cluster)
        outside = await rig.ask(ApiKey.METADATA, version, body(version, ["led"]))
        first, second = outside["topics"][0]["partitions"]
        assert second["error_code"] == (
            ProtocolError.LISTENER_NOT_FOUND if version >= 6 else ProtocolError.LEADER_NOT_AVAILABLE
        )
        assert second["leader_id"] == -1
        # Version 0 leaves out what cannot be reached, and says so.
        assert first["error_code"] == (
            ProtocolError.REPLICA_NOT_AVAILABLE if version == 0 else ProtocolError.NONE
        )
        assert first["replica_nodes"] == ([1] if version == 0 else [1, 3])
        assert first["isr_nodes"] == ([1] if version == 0 else [1, 3])
        inside = await rig.ask(ApiKey.METADATA, version, body(version, ["led"]), "INTERNAL")
        assert [n["node_id"] for n in inside["brokers"]] == [1, 2, 3, 1000]
        assert inside["brokers"][3]["port"] == rig.port("INTERNAL")
        leaders = [(p["error_code"], p["leader_id"]) for p in inside["topics"][0]["partitions"]]
        assert leaders == [(0, 1), (0, 3)]

    with_gateway(scenario)


@pytest.mark.parametrize("version", VERSIONS)
def test_brokers_that_left(version: int) -> None:
    async def scenario(rig: Rig) -> None:
        rig.cluster.create("alone", [[2]])
        rig.cluster.create("pair", [[2, 1]])
        rig.cluster.happen("broker_registrations_changed", "", {"unregistered": [2]})
        answer = await rig.ask(ApiKey.METADATA, version, body(version, ["alone", "pair"]))
        assert [node["node_id"] for node in answer["brokers"]] == [1, 1000]
        topics = by_name(answer)
        (alone,), (pair,) = (topics[name]["partitions"] for name in ("alone", "pair"))
        assert (alone["error_code"], alone["leader_id"]) == (ProtocolError.LEADER_NOT_AVAILABLE, -1)
        assert alone["isr_nodes"] == ([] if version == 0 else [2])
        assert (pair["error_code"], pair["leader_id"]) == (
            ProtocolError.REPLICA_NOT_AVAILABLE if version == 0 else ProtocolError.NONE,
            1,
        )
        assert pair["leader_epoch"] == (1 if version >= 7 else -1)
        assert pair["isr_nodes"] == [1]
        assert pair["offline_replicas"] == ([2] if version >= 5 else [])

    with_gateway(scenario)


@pytest.mark.parametrize("version", VERSIONS)
def test_topics_by_name_keep_their_order_and_unknown_ones_are_not_created(version: int) -> None:
    async def scenario(rig: Rig) -> None:
        three_topics(rig.cluster)
        events = len(rig.cluster.events)
        names = ["led", "nowhere", "t", "bad name", "led", "__transaction_state"]
        asked = body(version, names, allow_auto_topic_creation=True)
        answer = await rig.ask(ApiKey.METADATA, version, asked)
        found = [(t["name"], t["error_code"], len(t["partitions"])) for t in answer["topics"]]
        assert found == [
            ("led", 0, 2),
            ("nowhere", 3, 0),
            ("t", 0, 2),
            ("bad name", 17, 0),
            ("__transaction_state", 3, 0),
        ]
        assert [t["is_internal"] for t in answer["topics"]][-1] is (version >= 1)
        assert len(rig.cluster.events) == events

    with_gateway(scenario)


@pytest.mark.parametrize("version", range(1, 13))
def test_no_topics_from_version_1_on(version: int) -> None:
    async def scenario(rig: Rig) -> None:
        three_topics(rig.cluster)
        answer = await rig.ask(ApiKey.METADATA, version, {"topics": []})
        assert (answer["topics"], len(answer["brokers"])) == ([], 3)

    with_gateway(scenario)


def test_topics_by_id() -> None:
    async def scenario(rig: Rig) -> None:
        topic_id = uuid.UUID(bytes=topic_id_from_text(rig.cluster.create("t", [[1], [2]])))
        unknown = uuid.uuid4()
        asked = [{"topic_id": i, "name": None} for i in (unknown, topic_id, unknown)]
        answer = await rig.ask(ApiKey.METADATA, 12, {"topics": asked})
        first, second = answer["topics"]
        assert (first["error_code"], first["name"], first["topic_id"]) == (
            ProtocolError.UNKNOWN_TOPIC_ID,
            None,
            unknown,
        )
        assert (second["error_code"], second["name"], second["topic_id"]) == (0, "t", topic_id)
        assert len(second["partitions"]) == 2

    with_gateway(scenario)


@pytest.mark.parametrize(
    ("version", "topic"),
    [
        (10, {"name": None, "topic_id": None}),
        (11, {"name": "t", "topic_id": uuid.UUID(int=5)}),
        (12, {"name": None, "topic_id": None}),
    ],
)
def test_topics_that_a_version_cannot_ask_for(version: int, topic: dict[str, Any]) -> None:
    async def scenario(rig: Rig) -> None:
        answer = await rig.ask(ApiKey.METADATA, version, {"topics": [topic]})
        (answered,) = answer["topics"]
        assert (answered["error_code"], answered["name"]) == (
            ProtocolError.INVALID_REQUEST,
            topic["name"] or "",
        )
        assert answered["topic_id"] == topic["topic_id"]

    with_gateway(scenario)


@pytest.mark.parametrize("version", range(8, 13))
def test_authorized_operations_are_told_only_when_asked(version: int) -> None:
    async def scenario(rig: Rig) -> None:
        rig.cluster.create("t", [[1]])
        quiet = await rig.ask(ApiKey.METADATA, version, body(version, ["t"]))
        assert quiet["topics"][0]["topic_authorized_operations"] == NOT_ASKED
        assert quiet["cluster_authorized_operations"] == NOT_ASKED
        asked = {
            "include_topic_authorized_operations": True,
            "include_cluster_authorized_operations": version <= 10,
        }
        told = await rig.ask(ApiKey.METADATA, version, body(version, ["t"], **asked))
        # Bits by AclOperation's codes: topic 3-8, 10, 11; cluster 5, 7-12.
        assert told["topics"][0]["topic_authorized_operations"] == 0b1101_1111_1000
        cluster_bits = 0b1_1111_1010_0000 if version <= 10 else NOT_ASKED
        assert told["cluster_authorized_operations"] == cluster_bits

    with_gateway(scenario)


@pytest.mark.parametrize("names", [None, ["t"]])
def test_while_no_node_is_known_clients_are_hung_up_on(names: list[str] | None) -> None:
    async def scenario(rig: Rig) -> None:
        async def refused() -> None:
            with pytest.raises(EOFError):
                await rig.ask(ApiKey.METADATA, 12, body(12, names))

        rig.cluster.has_image = False
        await refused()
        rig.cluster.has_image = True
        rig.cluster.controller = False
        known, rig.cluster.known = rig.cluster.known, ClusterImage()
        await refused()
        rig.cluster.known = known
        answer = await rig.ask(ApiKey.METADATA, 12, body(12, names))
        assert [node["node_id"] for node in answer["brokers"]] == [1, 2, 1000]
        assert rig.gateway.counters["closed_not_ready"] == 2

    with_gateway(scenario)


def test_without_the_role_we_are_a_node_and_not_the_controller() -> None:
    async def scenario(rig: Rig) -> None:
        three_topics(rig.cluster)
        rig.cluster.controller = False
        answer = await rig.ask(ApiKey.METADATA, 12, body(12, None))
        assert [node["node_id"] for node in answer["brokers"]] == [1, 2, 1000]
        assert answer["controller_id"] == -1
        assert len(answer["topics"]) == 3

    with_gateway(scenario)


@pytest.mark.parametrize("key", [ApiKey.METADATA, ApiKey.DESCRIBE_CLUSTER])
def test_after_another_controller_we_are_a_node_and_not_the_controller(key: ApiKey) -> None:
    async def scenario(rig: Rig) -> None:
        rig.cluster.overtaken = True
        asked = body(12, None) if key is ApiKey.METADATA else {}
        answer = await rig.ask(key, 12 if key is ApiKey.METADATA else 0, asked)
        name = "node_id" if key is ApiKey.METADATA else "broker_id"
        assert [node[name] for node in answer["brokers"]] == [1, 2, 1000]
        assert answer["controller_id"] == -1

    with_gateway(scenario)


def test_our_own_id_among_the_registrations_is_not_named_twice() -> None:
    async def scenario(rig: Rig) -> None:
        ours = BROKERS[0] | {"id": 1000}
        rig.cluster.happen("broker_registrations_changed", "", {"registered": [ours]})
        answer = await rig.ask(ApiKey.METADATA, 12, body(12, None))
        nodes = [(node["node_id"], node["port"]) for node in answer["brokers"]]
        assert nodes == [(1, 29101), (2, 29102), (1000, rig.port())]

    with_gateway(scenario)


def test_a_deleted_topic_is_unknown_again_and_an_empty_cluster_has_none() -> None:
    async def scenario(rig: Rig) -> None:
        topic_id = uuid.UUID(bytes=topic_id_from_text(rig.cluster.create("t", [[1]])))
        rig.cluster.remove("t")
        answer = await rig.ask(ApiKey.METADATA, 12, body(12, ["t"]))
        assert [t["error_code"] for t in answer["topics"]] == [
            ProtocolError.UNKNOWN_TOPIC_OR_PARTITION
        ]
        asked = {"topics": [{"topic_id": topic_id, "name": None}]}
        answer = await rig.ask(ApiKey.METADATA, 12, asked)
        assert [t["error_code"] for t in answer["topics"]] == [ProtocolError.UNKNOWN_TOPIC_ID]
        answer = await rig.ask(ApiKey.METADATA, 12, body(12, None))
        assert answer["topics"] == []

    with_gateway(scenario)


class _CountingImage(ClusterImage):
    """Counts how many topics a reader looks up, and refuses to list all."""

    looked_up: list[str]

    def rows_of(self, topic: str) -> slice:
        self.looked_up.append(topic)
        return super().rows_of(topic)

    def topic_of_rows(self) -> Any:
        raise AssertionError("listed all topics")


def test_metadata_of_one_topic_touches_no_other() -> None:
    async def scenario(rig: Rig) -> None:
        for number in range(50):
            rig.cluster.create(f"topic-{number}", [[1, 2]])
        known: Any = rig.cluster.known
        known.__class__ = _CountingImage
        known.looked_up = []
        answer = await rig.ask(ApiKey.METADATA, 12, body(12, ["topic-7"]))
        assert len(answer["topics"]) == 1
        assert known.looked_up == ["topic-7"]

    with_gateway(scenario)
