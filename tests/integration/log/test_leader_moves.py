"""A log cluster of two brokers, of which now the one and now the other leads the log."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from kafka import TopicPartition
from kafka.admin import KafkaAdminClient

from streaming.embedded.broker import KafkaBroker
from streaming.embedded.zookeeper import EmbeddedZooKeeper
from streaming.log.api import NewRecord
from streaming.log.kafka_reader import KafkaLogReader
from streaming.log.kafka_topic import create_topic
from streaming.log.kafka_writer import KafkaLogWriter
from streaming.log.location import KafkaTopic
from tests.fixtures.waiting import wait_for

pytestmark = pytest.mark.timeout(300)

NAME = "moving"
IN_TIME_S = 20
PREFERRED = 0
AWAY_MS = 60_000


@pytest.fixture
def brokers(tmp_path: Path) -> Iterator[dict[int, KafkaBroker]]:
    zookeeper = EmbeddedZooKeeper(tmp_path / "zookeeper")
    connect = zookeeper.start()
    brokers = {id_: KafkaBroker(id_, connect, tmp_path / f"broker-{id_}") for id_ in (1, 2)}
    try:
        for broker in brokers.values():
            broker.launch()
        for broker in brokers.values():
            broker.wait_until_ready()
        yield brokers
    finally:
        for broker in brokers.values():
            broker.kill()
        zookeeper.stop()


@pytest.fixture
def topic(brokers: dict[int, KafkaBroker]) -> KafkaTopic:
    servers = ",".join(broker.bootstrap_server for broker in brokers.values())
    topic = KafkaTopic(servers, NAME)
    create_topic(topic, 2)
    return topic


class Admin:
    """Moves the log."""

    def __init__(self, topic: KafkaTopic) -> None:
        self._client = KafkaAdminClient(bootstrap_servers=topic.bootstrap_servers.split(","))

    def move_to(self, *replicas: int) -> None:
        """Have the first of two brokers lead."""
        self._client.alter_partition_reassignments({TopicPartition(NAME, 0): [*replicas]})
        wait_for("another leader", lambda: self._leads(replicas[0]))

    def _leads(self, broker: int) -> bool:
        self._client.elect_leaders(PREFERRED, {NAME: [0]}, raise_errors=False)
        (described,) = self._client.describe_topics([NAME])
        (partition,) = described["partitions"]
        return len(partition["isr_nodes"]) == 2 and bool(partition["leader_id"] == broker)

    def close(self) -> None:
        self._client.close()


@pytest.fixture
def admin(topic: KafkaTopic) -> Iterator[Admin]:
    with closing(Admin(topic)) as admin:
        yield admin


def test_a_log_is_written_and_read_wherever_it_is_led(topic: KafkaTopic, admin: Admin) -> None:
    """kafka-python goes on to ask the broker that led, until it asks for metadata anyway."""
    with KafkaLogWriter(topic) as writer, KafkaLogReader(topic) as reader:
        for end, replicas in enumerate(((1, 2), (2, 1), (1, 2)), 1):
            admin.move_to(*replicas)
            began_s = time.monotonic()
            assert reader.end_offset() == end - 1
            assert writer.append([NewRecord("k", "", b"", 1_000)]) == range(end - 1, end)
            assert [one.offset for one in reader.read(0, end)] == list(range(end))
            assert time.monotonic() - began_s < IN_TIME_S


def test_a_log_is_written_and_read_when_the_broker_that_led_is_dead(
    topic: KafkaTopic, admin: Admin, brokers: dict[int, KafkaBroker]
) -> None:
    with (
        KafkaLogWriter(topic, timeout_ms=AWAY_MS) as writer,
        KafkaLogReader(topic, AWAY_MS) as reader,
    ):
        admin.move_to(1, 2)
        assert writer.append([NewRecord("k", "", b"", 1_000)]) == range(1)
        assert reader.end_offset() == 1
        brokers[1].kill()
        assert writer.append([NewRecord("k", "", b"", 1_000)]) == range(1, 2)
        assert reader.end_offset() == 2
        assert [one.offset for one in reader.read(0, 2)] == [0, 1]
