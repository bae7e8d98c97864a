"""The demo's producer goes on whatever its client says of one record."""

from __future__ import annotations

import time
from typing import Any

import pytest

from streaming.demo import producer as module
from streaming.demo.producer import Producer


class _Client:
    """As kafka-python's where the topic left its metadata between two looks at it, twice."""

    def __init__(self, **_settings: object) -> None:
        self.asked = 0

    def send(self, topic: str, value: bytes, partition: int) -> Any:
        self.asked += 1
        if self.asked <= 2:
            raise ValueError(f"Unrecognized partition {partition} for topic {topic}")
        return self

    def add_callback(self, _callback: object) -> None: ...

    def add_errback(self, _errback: object) -> None: ...

    def flush(self, timeout: float) -> None: ...

    def close(self, timeout: float) -> None: ...


def test_a_topic_that_left_the_clients_metadata_for_a_moment_is_sent_to_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "KafkaProducer", _Client)
    producer = Producer(["localhost:1"], "demo", 3)
    producer.start()
    try:
        end_s = time.monotonic() + 10
        while producer.sent < 5 and time.monotonic() < end_s:
            time.sleep(0.01)
    finally:
        producer.stop()
    assert producer.sent >= 5
    assert producer.failed == 2
