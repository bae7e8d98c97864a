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
from kafka import TopicPartition
from kafka.errors import KafkaConnectionError, KafkaTimeoutError, UnknownTopicOrPartitionError

from streaming.log import kafka_reader, kafka_tail
from streaming.log.api import LogUnavailable
from streaming.log.kafka_reader import KafkaLogReader
from streaming.log.kafka_tail import KafkaTail
from streaming.log.kafka_topic import UnusableTopic, open_admin
from streaming.log.location import KafkaTopic, topic_of
from tests.fixtures.waiting import wait_for

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
    consumer.beginning_offsets.side_effect = KafkaConnectionError("gone")
    monkeypatch.setattr(kafka_reader, "open_consumer", Mock(return_value=consumer))
    with pytest.raises(LogUnavailable, match="gone"):
        KafkaLogReader(away)
    consumer.close.assert_called_once()


def consumer_of(topic: str, asked: list[object], *, known: bool) -> Mock:
    """One whose log cluster knows the topic, or never does; asked: what it is asked about."""
    consumer = Mock(partitions={})

    def beginning_offsets(partitions: list[TopicPartition], _: int) -> dict[TopicPartition, int]:
        asked.append("its offsets")
        if not known:
            raise KafkaTimeoutError("nothing")
        consumer.partitions[topic] = {0}
        return dict.fromkeys(partitions, 0)

    def partitions_for_topic(name: str) -> set[int]:
        if name not in consumer.partitions:
            asked.append("all topics")
        return consumer.partitions.get(name, set())

    consumer.assign.side_effect = lambda partitions: asked.append(partitions[0].topic)
    consumer.beginning_offsets.side_effect = beginning_offsets
    consumer.partitions_for_topic.side_effect = partitions_for_topic
    return consumer


def test_a_reader_asks_about_its_own_topic_alone(
    away: KafkaTopic, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[object] = []
    consumer = consumer_of(away.name, asked, known=True)
    monkeypatch.setattr(kafka_reader, "open_consumer", Mock(return_value=consumer))
    assert KafkaLogReader(away).start_offset() == 0
    assert asked == ["events", "its offsets", "its offsets"]


def test_a_topic_is_missing_only_when_it_was_waited_for(
    away: KafkaTopic, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[object] = []
    consumer = consumer_of(away.name, asked, known=False)
    monkeypatch.setattr(kafka_reader, "open_consumer", Mock(return_value=consumer))
    with pytest.raises(UnusableTopic, match="there is no such topic"):
        KafkaLogReader(away)
    assert asked[:2] == ["events", "its offsets"]
    consumer.close.assert_called_once()


def test_a_client_that_is_told_so_in_an_error_says_the_same(
    away: KafkaTopic, monkeypatch: pytest.MonkeyPatch
) -> None:
    """kafka-python ends an update of all topics with the answer about the one that it asked for
    just before.
    """
    consumer = consumer_of(away.name, [], known=False)
    consumer.partitions_for_topic.side_effect = UnknownTopicOrPartitionError("events")
    monkeypatch.setattr(kafka_reader, "open_consumer", Mock(return_value=consumer))
    with pytest.raises(UnusableTopic, match="there is no such topic"):
        KafkaLogReader(away)


def test_a_topic_without_a_leader_is_not_missing(
    away: KafkaTopic, monkeypatch: pytest.MonkeyPatch
) -> None:
    consumer = consumer_of(away.name, [], known=False)
    consumer.partitions[away.name] = {0}
    monkeypatch.setattr(kafka_reader, "open_consumer", Mock(return_value=consumer))
    with pytest.raises(LogUnavailable, match="nothing"):
        KafkaLogReader(away)


def test_a_tail_that_rests_takes_no_records_until_it_is_asked_again(
    away: KafkaTopic, monkeypatch: pytest.MonkeyPatch
) -> None:
    consumers: list[Mock] = []

    def open_consumer(*_: object) -> Mock:
        consumers.append(consumer_of(away.name, [], known=True))
        consumers[-1].end_offsets.side_effect = lambda partitions, _: dict.fromkeys(partitions, 7)
        consumers[-1].poll.return_value = {}
        return consumers[-1]

    monkeypatch.setattr(kafka_reader, "open_consumer", open_consumer)
    monkeypatch.setattr(kafka_tail, "open_consumer", open_consumer)
    with KafkaTail(away, TIMEOUT_MS) as tail:
        for opened in (2, 3):
            assert tail.end_offset() == 7
            wait_for("its end", lambda opened=opened: len(consumers) == opened)
            tail.rest()
            wait_for("rest", lambda: consumers[-1].close.called)
        assert not consumers[0].close.called
    consumers[0].close.assert_called_once()


def test_why_another_client_does_not_connect_is_not_told(away: KafkaTopic) -> None:
    begun, ended = threading.Event(), threading.Event()

    def another() -> None:
        while not ended.is_set():
            error = KafkaConnectionError("of another one")
            logging.getLogger("kafka.net.manager").warning("failed: %s", error)
            begun.set()
            ended.wait(0.001)

    thread = threading.Thread(target=another)
    thread.start()
    try:
        assert begun.wait(20.0)
        with pytest.raises(LogUnavailable) as caught:
            open_admin(away, TIMEOUT_MS)
    finally:
        ended.set()
        thread.join()
    said = str(caught.value)
    assert "ECONNREFUSED" in said and "another" not in said
