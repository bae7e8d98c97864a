"""The broker that leads __consumer_offsets dies with records that nobody else has, and comes back:
what others acknowledged since is what it hands out when it leads again.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import orjson
import pytest
from kafka import KafkaConsumer, TopicPartition
from kafka.errors import KafkaError
from kafka.structs import OffsetAndMetadata

from streaming.demo.cluster import DemoCluster
from streaming.demo.metadata import ask_metadata
from streaming.embedded.broker import KafkaBroker
from streaming.internal_topics import GROUP_TOPIC
from streaming.zk.client import ZkSession
from streaming.zk.znodes import partition_state_path
from tests.e2e.demo_cluster import brokers_of
from tests.e2e.group_clients import TOPIC
from tests.e2e.group_stage import (
    TAKING_GROUPS_OVER,
    committed,
    coordinators,
    start_with_topic,
    taken_over,
)
from tests.e2e.waiting import wait_for

GROUP = "by hand"
START_S = 240.0
TAIL = range(101, 110)
"""What the first leader alone has been told of partition 0."""

KEEPING_TAILS = {
    **TAKING_GROUPS_OVER,
    "broker_config": {
        "offsets.topic.replication.factor": "3",
        "offsets.topic.num.partitions": "1",
        "offsets.commit.required.acks": "1",  # a leader answers for what nobody else has
        "zookeeper.session.timeout.ms": "18000",  # followers that stand still stay in the ISR
    },
}

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(900),
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),
    pytest.mark.usefixtures("plain_job"),
    pytest.mark.parametrize(
        "demo",
        [
            brokers_of("3.9.2", "3.9", cluster=KEEPING_TAILS),
            brokers_of("2.2.2", "2.2", cluster=KEEPING_TAILS),
            brokers_of("2.4.1", "2.4", cluster=KEEPING_TAILS),
            brokers_of("2.7.2", "2.7", cluster=KEEPING_TAILS),
        ],
        indirect=True,
    ),
]


class Commits:
    """Commits of a group without members, on a connection of its own. acked: the newest by
    partition.
    """

    def __init__(self, broker: KafkaBroker) -> None:
        self._consumer: Any = KafkaConsumer(
            group_id=GROUP, bootstrap_servers=[broker.bootstrap_server], enable_auto_commit=False
        )
        self.acked: dict[int, int] = {}

    def commit(self, partition: int, offset: int) -> bool:
        try:
            wanted = {TopicPartition(TOPIC, partition): OffsetAndMetadata(offset, "", -1)}
            self._consumer.commit(wanted)
        except KafkaError:
            return False
        self.acked[partition] = offset
        return True

    def commit_all(self, partition: int, offsets: range) -> None:
        for offset in offsets:
            wait_for(f"commit {offset}", lambda at=offset: self.commit(partition, at))

    def close(self) -> None:
        self._consumer.close()


@pytest.fixture
def brokers(demo: DemoCluster) -> Iterator[dict[int, KafkaBroker]]:
    start_with_topic(demo)
    yield demo.embedded.brokers
    for broker in demo.embedded.brokers.values():
        if broker.running:
            broker.resume()


def leader(asked: KafkaBroker) -> int:
    return ask_metadata(asked.client_port).leaders.get((GROUP_TOPIC, 0), -1)


def stored(broker: KafkaBroker) -> bytes:
    """What a broker has of the partition, byte by byte."""
    folder = broker.data_dir / "logs" / f"{GROUP_TOPIC}-0"
    return b"".join(one.read_bytes() for one in sorted(folder.glob("*.log")))


def same(*brokers: KafkaBroker) -> bool:
    return len({stored(broker) for broker in brokers}) == 1


def isr(session: ZkSession) -> list[int]:
    znode = session.get(partition_state_path(GROUP_TOPIC, 0))
    return [] if znode is None else sorted(orjson.loads(znode.data)["isr"])


def test_a_tail_that_was_never_safe_is_cut_off_when_its_broker_comes_back(
    demo: DemoCluster, session: ZkSession, brokers: dict[int, KafkaBroker]
) -> None:
    first = Commits(brokers[1])
    first.commit_all(0, range(1, 10))
    wait_for("all replicas", lambda: isr(session) == [1, 2, 3] and same(*brokers.values()))
    leading = brokers[leader(brokers[1])]
    others = [broker for broker in brokers.values() if broker is not leading]

    dies_with_a_tail(leading, others, first)
    first.close()
    wait_for("another leader", lambda: leader(others[0]) in {one.broker_id for one in others})
    kept = committed([others[0].bootstrap_server], GROUP)[0]
    assert kept < TAIL.stop - 1, "they lack the end of the tail"
    commits = Commits(others[0])
    commits.commit_all(1, range(200, 220))
    wait_for("both replicas", lambda: same(*others))
    assert not stored(others[0]).startswith(stored(leading)), "it has what nobody else has"

    demo.start_ours()
    wait_for("our leadership", lambda: taken_over(demo), START_S)
    commits.commit_all(2, range(300, 303))
    leading.start()
    wait_for("all replicas", lambda: isr(session) == [1, 2, 3], START_S)
    commits.commit_all(2, range(303, 306))
    wait_for("the same everywhere", lambda: same(*brokers.values()))

    for broker in others:
        broker.kill()
    wait_for("the first leader alone", lambda: isr(session) == [leading.broker_id], START_S)
    commits.commit_all(2, range(306, 309))
    commits.close()
    demo.kill_ours()
    wait_for("the first leader", lambda: coordinators(demo) == {leading.broker_id}, START_S)
    found = committed([leading.bootstrap_server], GROUP)
    assert {1: found[1], 2: found[2]} == commits.acked, "LOST"
    assert found[0] == kept


def dies_with_a_tail(leading: KafkaBroker, others: list[KafkaBroker], commits: Commits) -> None:
    """The leader answers commits while its followers stand still, and dies.

    The fetches that it has from them already take the first of these commits along, or some.
    """
    for broker in others:
        broker.pause()
    commits.commit_all(0, range(TAIL.start - 1, TAIL.stop))
    leading.kill()
    for broker in others:
        broker.resume()
