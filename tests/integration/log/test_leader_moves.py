"""A log cluster of two brokers, of which now the one and now the other leads the log."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from kafka import TopicPartition
from kafka.admin import KafkaAdminClient, NewTopic

from streaming.embedded.broker import KafkaBroker
from streaming.embedded.zookeeper import EmbeddedZooKeeper
from streaming.log.kafka_reader import KafkaLogReader
from streaming.log.location import KafkaTopic
from tests.fixtures.waiting import wait_for

pytestmark = pytest.mark.timeout(300)

NAME = "moving"
IN_TIME_S = 20
PREFERRED = 0


@pytest.fixture
def topic(tmp_path: Path) -> Iterator[KafkaTopic]:
    """The log's topic, which broker 1 leads."""
    zookeeper = EmbeddedZooKeeper(tmp_path / "zookeeper")
    connect = zookeeper.start()
    brokers = [KafkaBroker(id_, connect, tmp_path / f"broker-{id_}") for id_ in (1, 2)]
    try:
        for broker in brokers:
            broker.start()
        servers = ",".join(broker.bootstrap_server for broker in brokers)
        yield KafkaTopic(servers, NAME)
    finally:
        for broker in brokers:
            broker.kill()
        zookeeper.stop()


def test_where_a_log_ends_is_known_wherever_it_is_led(topic: KafkaTopic) -> None:
    """kafka-python goes on to ask the broker that led, until it asks for metadata anyway."""
    admin = KafkaAdminClient(bootstrap_servers=topic.bootstrap_servers.split(","))
    partition = TopicPartition(NAME, 0)
    admin.create_topics([NewTopic(NAME, replica_assignments={0: [1, 2]})])
    with KafkaLogReader(topic) as reader:
        assert reader.end_offset() == 0
        for replicas in ([2, 1], [1, 2]):
            admin.alter_partition_reassignments({partition: replicas})

            def moved(leader: int = replicas[0]) -> bool:
                admin.elect_leaders(PREFERRED, {NAME: [0]}, raise_errors=False)
                (described,) = admin.describe_topics([NAME])
                return bool(described["partitions"][0]["leader_id"] == leader)

            wait_for("another leader", moved)
            began_s = time.monotonic()
            assert reader.end_offset() == 0
            assert time.monotonic() - began_s < IN_TIME_S
    admin.close()
