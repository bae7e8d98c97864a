"""The Admin client of Kafka's own Java library, from a broker's jars, against the gateway."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import py4j.java_gateway
import py4j.protocol
import pytest
from py4j.java_gateway import GatewayParameters, JavaGateway, launch_gateway
from py4j.protocol import Py4JJavaError

from streaming.embedded.java import find_java
from streaming.embedded.kafka_jars import kafka_jars
from tests.unit.gateway.support import CLUSTER_ID

_TIMEOUT_MS = 30_000


@pytest.fixture(scope="module")
def java() -> Iterator[Any]:
    """A JVM with Kafka's jars on its class path; it ends with its standard input."""
    port, token, process = launch_gateway(
        classpath=f"{kafka_jars()}/*",
        javaopts=["-Xmx256m"],
        die_on_exit=True,
        java_path=str(find_java().executable),
        enable_auth=True,
        return_proc=True,
    )
    parameters = GatewayParameters(port=port, auth_token=token, auto_convert=True)
    gateway = JavaGateway(gateway_parameters=parameters)
    with pytest.MonkeyPatch.context() as patch:
        # A Spark session in this process has py4j ask Spark's classes about every exception.
        patch.setattr(py4j.java_gateway, "get_return_value", py4j.protocol.get_return_value)
        yield gateway
    gateway.shutdown()
    process.stdin.close()
    process.wait(30)


@pytest.fixture
def admin(java: Any, gateway: Any) -> Iterator[Any]:
    properties = java.jvm.java.util.Properties()
    properties.setProperty("bootstrap.servers", gateway.bootstrap)
    properties.setProperty("default.api.timeout.ms", str(_TIMEOUT_MS))
    client = java.jvm.org.apache.kafka.clients.admin.Admin.create(properties)
    yield client
    client.close()


def get(java: Any, future: Any) -> Any:
    return future.get(_TIMEOUT_MS, java.jvm.java.util.concurrent.TimeUnit.MILLISECONDS)


def new_topic(java: Any, name: str, partitions: int, factor: int) -> Any:
    return java.jvm.org.apache.kafka.clients.admin.NewTopic(name, partitions, factor)


def test_describe_cluster(java: Any, admin: Any) -> None:
    result = admin.describeCluster()
    found = get(java, result.nodes())
    nodes = {node.id(): node.rack() for node in java.jvm.java.util.ArrayList(found)}
    assert nodes == {1: "r1", 2: "r2", 3: "r3", 1000: "r1"}
    assert get(java, result.controller()).id() == 1000
    assert get(java, result.clusterId()) == CLUSTER_ID


def test_create_list_and_describe_topics(java: Any, admin: Any) -> None:
    created = admin.createTopics([new_topic(java, "orders", 3, 2), new_topic(java, "wide", 1, 9)])
    assert get(java, created.numPartitions("orders")) == 3
    assert get(java, created.replicationFactor("orders")) == 2
    with pytest.raises(Py4JJavaError, match="InvalidReplicationFactorException"):
        get(java, created.values().get("wide"))
    assert list(get(java, admin.listTopics().names())) == ["orders"]
    described = get(java, admin.describeTopics(["orders"]).allTopicNames())["orders"]
    assert described.topicId().toString() == get(java, created.topicId("orders")).toString()
    partitions = described.partitions()
    assert [partition.replicas().size() for partition in partitions] == [2, 2, 2]
    assert sorted(partition.leader().id() for partition in partitions) == [1, 2, 3]


def test_topics_are_described_by_id(java: Any, admin: Any) -> None:
    created = admin.createTopics([new_topic(java, "t", 1, 1)])
    topic_id = get(java, created.topicId("t"))
    ids = java.jvm.org.apache.kafka.common.TopicCollection.ofTopicIds([topic_id])
    described = get(java, admin.describeTopics(ids).allTopicIds())
    assert [described[key].name() for key in described] == ["t"]


def test_topics_are_deleted_by_name_and_by_id(java: Any, admin: Any) -> None:
    created = admin.createTopics([new_topic(java, name, 1, 1) for name in ("a", "b", "c")])
    topic_id = get(java, created.topicId("b"))
    get(java, admin.deleteTopics(["a"]).all())
    ids = java.jvm.org.apache.kafka.common.TopicCollection.ofTopicIds([topic_id])
    get(java, admin.deleteTopics(ids).all())
    assert list(get(java, admin.listTopics().names())) == ["c"]
    with pytest.raises(Py4JJavaError, match="UnknownTopicOrPartitionException"):
        get(java, admin.deleteTopics(["none"]).all())
