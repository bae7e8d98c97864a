"""Consumers of __consumer_offsets, as monitors of lag are."""

from __future__ import annotations

import logging
import threading
import time
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
_FIGURES_EVERY_S = 5.0
_FROZEN_AFTER_S = 30.0

Records = dict[tuple[int, int], tuple[bytes | None, bytes | None]]
"""Key and value by partition and offset."""


class Following(threading.Thread):
    """librdkafka reads on and on from the beginning; what it does and why may go to a file.

    A client that waits for itself for ever (librdkafka's issue 5476) is told by that it has no more
    figures of itself; another one goes on where it has ended. frozen: how many did so.
    """

    def __init__(self, brokers: Sequence[str], log: Path | None = None, **config: str) -> None:
        super().__init__(name="following", daemon=True)
        self._config: dict[str, Any] = {
            "bootstrap.servers": ",".join(brokers),
            "group.id": "unused",
            "enable.auto.commit": False,
            "auto.offset.reset": "error",  # what it reads is never cut off
            "statistics.interval.ms": int(_FIGURES_EVERY_S * 1000),
            "stats_cb": self._lives,
            **({"log_level": 0} if log is None else _told_in(log)),
            **config,
        }
        self._next = dict.fromkeys(range(GROUP_PARTITIONS), OFFSET_BEGINNING)
        self._ended = threading.Event()
        self.read: Records = {}
        self.twice = self.frozen = 0
        self.errors: list[str] = []
        self._consumer = self._opened()

    def run(self) -> None:
        while not self._ended.is_set():
            if time.monotonic() - self._lived_s > _FROZEN_AFTER_S:
                self.frozen += 1
                self._leave()
                self._consumer = self._opened()
            one = self._consumer.poll(0.2)
            if one is not None and one.error() is not None:
                self.errors.append(f"{one.partition()}, {one.offset()}: {one.error()}")
            elif one is not None:
                at = (one.partition(), one.offset())
                self.twice += at in self.read
                self.read[at] = (one.key(), one.value())
                self._next[one.partition()] = one.offset() + 1

    def stop(self) -> None:
        """End; a frozen client stays behind."""
        self._ended.set()
        self.join(PATIENCE_S)
        self._leave().join(PATIENCE_S)

    def _opened(self) -> Consumer:
        self._lived_s = time.monotonic()
        consumer = Consumer(self._config)
        consumer.assign([RdPartition(GROUP_TOPIC, *place) for place in self._next.items()])
        return consumer

    def _leave(self) -> threading.Thread:
        closing = threading.Thread(target=self._consumer.close, daemon=True)
        closing.start()
        return closing

    def _lives(self, _: str) -> None:
        self._lived_s = time.monotonic()


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
