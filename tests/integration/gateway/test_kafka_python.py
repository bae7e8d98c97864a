"""kafka-python's own clients against the gateway, unmodified."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from kafka import KafkaAdminClient, KafkaConsumer
from kafka.errors import InvalidReplicationFactorError, TopicAlreadyExistsError


@pytest.fixture
def admin(gateway: Any) -> Any:
    client = KafkaAdminClient(bootstrap_servers=gateway.bootstrap, request_timeout_ms=20_000)
    yield client
    client.close()


def test_describe_cluster(admin: Any, gateway: Any) -> None:
    cluster = admin.describe_cluster()
    assert cluster["cluster_id"] == gateway.rig.cluster.cluster_id
    assert cluster["controller_id"] == 1000
    assert sorted(broker["broker_id"] for broker in cluster["brokers"]) == [1, 2, 3, 1000]


def test_create_list_and_describe_topics(admin: Any) -> None:
    wanted = {"num_partitions": 3, "replication_factor": 2}
    admin.create_topics({"orders": wanted, "payments": wanted})
    assert sorted(admin.list_topics()) == ["orders", "payments"]
    (orders,) = admin.describe_topics(["orders"])
    assert [len(partition["replica_nodes"]) for partition in orders["partitions"]] == [2, 2, 2]
    assert sorted(partition["leader_id"] for partition in orders["partitions"]) == [1, 2, 3]
    with pytest.raises(TopicAlreadyExistsError):
        admin.create_topics({"orders": wanted})
    with pytest.raises(InvalidReplicationFactorError):
        admin.create_topics({"wide": wanted | {"replication_factor": 9}})


def test_a_client_that_comes_before_the_first_image_waits_for_it(gateway: Any) -> None:
    gateway.do(lambda rig: setattr(rig.cluster, "has_image", False))
    appears = threading.Timer(
        0.7, gateway.do, [lambda rig: setattr(rig.cluster, "has_image", True)]
    )
    appears.start()
    admin = KafkaAdminClient(bootstrap_servers=gateway.bootstrap, request_timeout_ms=20_000)
    assert admin.describe_cluster()["controller_id"] == 1000
    admin.close()
    appears.join()


def test_a_consumer_reads_the_partitions_of_a_topic(gateway: Any) -> None:
    gateway.do(lambda rig: rig.cluster.create("t", [[1], [2], [3]]) and None)
    consumer = KafkaConsumer(bootstrap_servers=gateway.bootstrap)
    assert consumer.partitions_for_topic("t") == {0, 1, 2}
    assert consumer.topics() == {"t"}
    consumer.close()
