"""Clients of a log cluster that is away leave nothing behind."""

from __future__ import annotations

import gc
import logging
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from unittest.mock import Mock

import pytest
from kafka.errors import KafkaConnectionError

from streaming.log import kafka_reader
from streaming.log.api import LogUnavailable
from streaming.log.kafka_reader import KafkaLogReader
from streaming.log.kafka_topic import open_admin
from streaming.log.location import KafkaTopic, topic_of

TIMEOUT_MS = 50


@pytest.fixture
def away() -> Iterator[KafkaTopic]:
    """A topic at a port that nobody listens on and nobody else gets."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        yield topic_of(f"kafka://127.0.0.1:{bound.getsockname()[1]}/events")


def held() -> tuple[set[threading.Thread], int]:
    gc.collect()  # kafka-python leaves it the sockets of refused connections
    return set(threading.enumerate()), len(list(Path("/proc/self/fd").iterdir()))


@pytest.mark.parametrize("opened", [KafkaLogReader, open_admin])
def test_what_cannot_connect_leaves_neither_threads_nor_descriptors(
    opened: Callable[[KafkaTopic, int], object],
    away: KafkaTopic,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.CRITICAL, "kafka")  # pytest would keep sockets with the records
    before = held()
    for _ in range(3):
        with pytest.raises(LogUnavailable):
            opened(away, TIMEOUT_MS)
    assert held() == before


def test_a_reader_that_is_not_told_of_its_topic_leaves_no_consumer(
    away: KafkaTopic, monkeypatch: pytest.MonkeyPatch
) -> None:
    consumer = Mock()
    consumer.partitions_for_topic.side_effect = KafkaConnectionError("gone")
    monkeypatch.setattr(kafka_reader, "open_consumer", Mock(return_value=consumer))
    with pytest.raises(LogUnavailable, match="gone"):
        KafkaLogReader(away)
    consumer.close.assert_called_once()
