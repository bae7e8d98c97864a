"""A Kafka Streams application whose group and transactions go on while servers die: each record is
counted exactly once.

Its members vote for Streams' own assignor, it has its internal topics created by the controller,
and it commits its offsets in transactions, with the generation of its group.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition

from streaming.demo.cluster import DemoCluster
from streaming.supervisor.processes import FRONT, JOB
from streaming.zk.client import ZkSession
from tests.e2e.demo_cluster import start_again, take_control
from tests.e2e.group_stage import WITH_TRANSACTIONS, taken_over
from tests.e2e.waiting import WAIT_S, wait_for
from tests.fixtures.kafka_tools import NEW, NEWEST
from tests.fixtures.streams_app import StreamsApp

SOURCE, COUNTS = "source", "counts"
PARTITIONS = 6
KEYS = 40
ROUNDS = 50

pytestmark = [
    pytest.mark.timeout(1200),
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),
    pytest.mark.parametrize("demo", [WITH_TRANSACTIONS], indirect=True),
    pytest.mark.usefixtures("plain_job"),
]


class Source:
    """Produces records of each key, each of them once."""

    def __init__(self, brokers: str) -> None:
        self._producer = Producer({"bootstrap.servers": brokers, "enable.idempotence": True})
        self.produced: Counter[str] = Counter()

    def produce(self) -> None:
        for _ in range(ROUNDS):
            for key in range(KEYS):
                self._producer.produce(SOURCE, b"x", f"key-{key}", on_delivery=self._delivered)
        assert not self._producer.flush(WAIT_S)

    def _delivered(self, error: KafkaError | None, message: Any) -> None:
        assert error is None, error
        self.produced[message.key().decode()] += 1


class Counts:
    """Reads what the application has committed, and the last count of each key."""

    def __init__(self, brokers: str) -> None:
        self._consumer = Consumer(
            {
                "bootstrap.servers": brokers,
                "group.id": "nobody",
                "isolation.level": "read_committed",
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
            }
        )
        self._consumer.assign([TopicPartition(COUNTS, one, 0) for one in range(PARTITIONS)])
        self.last: dict[str, int] = {}
        self.went_back: list[str] = []

    def read(self) -> dict[str, int]:
        while message := self._consumer.poll(1.0):
            if message.error() is None:
                key, count = message.key().decode(), int.from_bytes(message.value(), "big")
                if count <= self.last.get(key, 0):
                    self.went_back.append(f"{key}: {count} after {self.last[key]}")
                self.last[key] = count
        return self.last

    def close(self) -> None:
        self._consumer.close()


@pytest.fixture(params=[NEW, NEWEST])
def apps(
    request: pytest.FixtureRequest, demo: DemoCluster, tmp_path: Path
) -> Iterator[list[StreamsApp]]:
    take_control(demo)
    for topic in (SOURCE, COUNTS):
        demo.create_topic(topic, PARTITIONS)
    with ExitStack() as closing:
        made = []
        for number in range(2):
            brokers = demo.embedded.bootstrap_servers
            name, folder = f"app {number}", tmp_path / f"app-{number}"
            app = StreamsApp(name, folder, request.param, brokers, (SOURCE, COUNTS))
            closing.callback(app.kill)
            made.append(app)
        yield made


def test_each_record_is_counted_once(
    demo: DemoCluster, session: ZkSession, apps: list[StreamsApp]
) -> None:
    brokers = ",".join(demo.embedded.bootstrap_servers)
    source, counts = Source(brokers), Counts(brokers)

    def counted() -> bool:
        return counts.read() == source.produced

    for app in apps:
        app.start()
    for app in apps:
        wait_for(f"{app.name} to run", lambda app=app: app.state() == "RUNNING")
    wait_for("our coordination", lambda: taken_over(demo))
    source.produce()
    wait_for("the counts", counted)
    for deaths in ((JOB,), (FRONT, JOB)):
        source.produce()
        for role in deaths:
            demo.supervisor.kill(role)
        source.produce()
        wait_for(f"the counts after {deaths}", counted)
    source.produce()
    apps[0].kill()
    source.produce()
    wait_for("the counts of one instance", counted)
    apps[0].start()
    demo.broker(2).kill()
    source.produce()
    wait_for("the counts without a broker", counted)
    start_again(demo, session, 2, WAIT_S)
    demo.stop_ours()
    source.produce()
    wait_for("the counts with the brokers' coordinator", counted)
    demo.start_ours()
    wait_for("our coordination again", lambda: taken_over(demo))
    source.produce()
    wait_for("the counts in the end", counted)
    for app in apps:
        assert app.state() == "RUNNING"
        app.close()
    counts.close()
    assert not counts.went_back
