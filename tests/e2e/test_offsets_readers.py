"""Consumers of all three clients read __consumer_offsets, as monitors of lag do, while we lead it
and while it goes over to the brokers and back.

Everything is real but Spark.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer
from confluent_kafka import TopicPartition as RdPartition
from kafka import KafkaConsumer, TopicPartition

from streaming.demo.cluster import DemoCluster
from streaming.internal_topics import GROUP_TOPIC
from streaming.supervisor.processes import FRONT
from tests.e2e.group_deaths import START_S
from tests.e2e.group_stage import (
    GROUP_PARTITIONS,
    TAKING_GROUPS_OVER,
    Stage,
    coordinators,
    taken_over,
)
from tests.e2e.waiting import wait_for

LINES = 20
PATIENCE_MS = 60_000

Records = dict[tuple[int, int], tuple[bytes | None, bytes | None]]
"""Key and value by partition and offset."""

pytestmark = [
    pytest.mark.timeout(900),
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),
    pytest.mark.usefixtures("plain_job"),
    pytest.mark.parametrize("demo", [TAKING_GROUPS_OVER], indirect=True),
]


class Following(threading.Thread):
    """librdkafka reads on and on from the beginning."""

    def __init__(self, brokers: Sequence[str], **config: str) -> None:
        super().__init__(name="following", daemon=True)
        self._consumer = Consumer(
            {
                "bootstrap.servers": ",".join(brokers),
                "group.id": "unused",
                "enable.auto.commit": False,
                "log_level": 0,
                **config,
            }
        )
        numbers = range(GROUP_PARTITIONS)
        self._consumer.assign([RdPartition(GROUP_TOPIC, n, OFFSET_BEGINNING) for n in numbers])
        self._ended = threading.Event()
        self.read: Records = {}
        self.twice = 0

    def run(self) -> None:
        while not self._ended.is_set():
            one = self._consumer.poll(0.2)
            if one is not None and one.error() is None:
                at = (one.partition(), one.offset())
                self.twice += at in self.read
                self.read[at] = (one.key(), one.value())

    def stop(self) -> None:
        self._ended.set()
        self.join(PATIENCE_MS / 1000)
        self._consumer.close()


def read_all(brokers: Sequence[str]) -> Records:
    """All that kafka-python finds from the beginning to the end as of now."""
    consumer: Any = KafkaConsumer(bootstrap_servers=list(brokers), enable_auto_commit=False)
    partitions = [TopicPartition(GROUP_TOPIC, number) for number in range(GROUP_PARTITIONS)]
    found: Records = {}
    try:
        consumer.assign(partitions)
        ends = consumer.end_offsets(partitions)
        consumer.seek_to_beginning()

        def all_read() -> bool:
            for records in consumer.poll(timeout_ms=500).values():
                found.update({(one.partition, one.offset): (one.key, one.value) for one in records})
            return all(consumer.position(one) >= ends[one] for one in partitions)

        wait_for("the end of all partitions", all_read)
    finally:
        consumer.close()
    return found


def test_the_topic_of_offsets_is_read_while_we_lead_it(demo: DemoCluster, stage: Stage) -> None:
    demo.start_ours()
    wait_for("our leadership", lambda: taken_over(demo), START_S)
    stage.join_others()
    stage.check()
    followers = [
        Following(stage.brokers, **{"isolation.level": level})
        for level in ("read_uncommitted", "read_committed")
    ]
    for one in followers:
        one.start()
    with_us = read_all(stage.brokers)
    assert with_us
    printed = stage.tools(
        "kafka-console-consumer",
        *("--topic", GROUP_TOPIC, "--from-beginning", "--max-messages", str(LINES)),
        *("--formatter", "org.apache.kafka.tools.consumer.OffsetsMessageFormatter"),
    )
    assert '"commitTimestamp"' in printed and f"total of {LINES} messages" in printed, printed

    demo.supervisor.kill(FRONT)
    stage.check()
    wait_for("our leadership", lambda: taken_over(demo), START_S)
    demo.kill_ours()
    wait_for("the brokers' leadership", lambda: coordinators(demo) == {1, 2, 3})
    stage.check()
    with_brokers = read_all(stage.brokers)
    assert with_us.items() <= with_brokers.items(), "LOST: with us it was another one, or more"
    demo.start_ours()
    wait_for("our leadership", lambda: taken_over(demo), START_S)
    stage.check()
    now = read_all(stage.brokers)
    assert with_brokers.items() <= now.items(), "LOST: with brokers it was another one, or more"
    for one in followers:
        wait_for("what follows", lambda one=one: now.items() <= one.read.items())
        one.stop()
        assert not one.twice, "DUPLICATES"
