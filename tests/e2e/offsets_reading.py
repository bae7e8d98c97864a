"""Consumers of __consumer_offsets, as monitors of lag are."""

from __future__ import annotations

import logging
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from confluent_kafka import OFFSET_BEGINNING, Consumer
from confluent_kafka import TopicPartition as RdPartition
from kafka import KafkaConsumer, TopicPartition

from streaming.demo.verdict import end_offsets
from streaming.internal_topics import GROUP_TOPIC
from tests.e2e.group_stage import GROUP_PARTITIONS
from tests.e2e.waiting import wait_for

PATIENCE_S = 60.0

Records = dict[tuple[int, int], tuple[bytes | None, bytes | None]]
"""Key and value by partition and offset."""


class Following(threading.Thread):
    """librdkafka reads on and on from the beginning; what it does and why may go to a file."""

    def __init__(self, brokers: Sequence[str], log: Path | None = None, **config: str) -> None:
        super().__init__(name="following", daemon=True)
        self._consumer = Consumer(
            {
                "bootstrap.servers": ",".join(brokers),
                "group.id": "unused",
                "enable.auto.commit": False,
                "auto.offset.reset": "error",  # what it reads is never cut off
                **({"log_level": 0} if log is None else _told_in(log)),
                **config,
            }
        )
        numbers = range(GROUP_PARTITIONS)
        self._consumer.assign([RdPartition(GROUP_TOPIC, n, OFFSET_BEGINNING) for n in numbers])
        self._ended = threading.Event()
        self.read: Records = {}
        self.twice = 0
        self.errors: list[str] = []

    def run(self) -> None:
        while not self._ended.is_set():
            one = self._consumer.poll(0.2)
            if one is not None and one.error() is not None:
                self.errors.append(f"{one.partition()}, {one.offset()}: {one.error()}")
            elif one is not None:
                at = (one.partition(), one.offset())
                self.twice += at in self.read
                self.read[at] = (one.key(), one.value())

    def stop(self) -> None:
        """End; a client that waits for itself for ever (librdkafka's issue 5476) stays behind."""
        self._ended.set()
        self.join(PATIENCE_S)
        closing = threading.Thread(target=self._consumer.close, daemon=True)
        closing.start()
        closing.join(PATIENCE_S)


def _told_in(log: Path) -> dict[str, Any]:
    """How a client tells a file what it does."""
    teller = logging.Logger("following", logging.DEBUG)
    told = logging.FileHandler(log)
    told.setFormatter(logging.Formatter("%(asctime)s %(message)s"))
    teller.addHandler(told)
    return {"debug": "broker,topic,metadata,fetch", "logger": teller}


def read_all(brokers: Sequence[str]) -> Records:
    """All that kafka-python finds from the beginning to the end as of now."""
    consumer: Any = KafkaConsumer(bootstrap_servers=list(brokers), enable_auto_commit=False)
    partitions = [TopicPartition(GROUP_TOPIC, number) for number in range(GROUP_PARTITIONS)]
    found: Records = {}
    try:
        consumer.assign(partitions)
        ends = end_offsets(brokers, partitions)
        consumer.seek_to_beginning()

        def all_read() -> bool:
            for records in consumer.poll(timeout_ms=500).values():
                found.update({(one.partition, one.offset): (one.key, one.value) for one in records})
            return all(consumer.position(one) >= ends[one] for one in partitions)

        wait_for("the end of all partitions", all_read)
    finally:
        consumer.close()
    return found
