"""What the client of a log's producer is given at once, and what becomes of it when that fails."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from unittest.mock import Mock

import pytest
from kafka.errors import KafkaTimeoutError

from streaming.log import kafka_producer
from streaming.log.group_commit import GROUP_BYTES_MAX
from streaming.log.kafka_producer import Message, TopicProducer
from streaming.log.location import topic_of

TOPIC = topic_of("kafka://127.0.0.1:1/events")
TIMEOUT_MS = 200


class Client:
    """As KafkaProducer; `fails` is asked before each flush, `refusals` before each send."""

    def __init__(self) -> None:
        self.flushed: list[list[int]] = []
        self.given: list[int] = []
        self.fails: Callable[[], bool] = lambda: False
        self.refusals: list[Exception] = []
        self.ended: list[str] = []
        self._sender = Mock(force_close=lambda: self.ended.append("forced"))

    def send(self, _topic: str, *, value: bytes, **_: Any) -> Any:
        if self.refusals:
            raise self.refusals.pop()
        offset = sum(map(len, self.flushed)) + len(self.given)
        self.given.append(len(value))
        return Mock(get=lambda timeout: Mock(offset=offset))

    def flush(self, _timeout_s: float) -> None:
        if self.fails():
            raise KafkaTimeoutError("not in time")
        self.flushed.append(self.given)
        self.given = []

    def close(self, timeout: float) -> None:
        self.ended.append("closed")


@pytest.fixture
def client(monkeypatch: pytest.MonkeyPatch) -> Client:
    made = Client()
    monkeypatch.setattr(kafka_producer, "open_client", lambda *_, **__: made)
    return made


@pytest.fixture
def producer(client: Client) -> TopicProducer:
    return TopicProducer(TOPIC, TIMEOUT_MS, 2 * GROUP_BYTES_MAX)


def messages(*sizes_bytes: int) -> list[Message]:
    return [Message([], b"", bytes(size), 5) for size in sizes_bytes]


def test_a_batch_is_acknowledged_before_the_next_one_is_given(
    producer: TopicProducer, client: Client
) -> None:
    half, large = GROUP_BYTES_MAX // 2 - 1_000, 2 * GROUP_BYTES_MAX
    assert producer.append(messages(half, half, half, large, 1, 2)) == [0, 1, 2, 3, 4, 5]
    assert client.flushed == [[half, half], [half], [large], [1, 2]]
    assert producer.append([]) == []


def test_nothing_is_given_behind_a_batch_that_failed_and_what_was_is_dropped(
    producer: TopicProducer, client: Client
) -> None:
    client.fails = lambda: len(client.flushed) == 1
    large = GROUP_BYTES_MAX
    with pytest.raises(KafkaTimeoutError):
        producer.append(messages(large, large, large))
    assert (client.flushed, client.given) == ([[large]], [large])
    producer.close()
    assert client.ended == ["forced", "closed"]


def test_a_producer_that_appended_everything_is_just_closed(
    producer: TopicProducer, client: Client
) -> None:
    producer.append(messages(1))
    producer.close()
    assert client.ended == ["closed"]


def test_a_topic_that_the_clients_metadata_lost_for_a_moment_is_tried_again(
    producer: TopicProducer, client: Client
) -> None:
    client.refusals = [ValueError("Unrecognized partition 0 for topic events")] * 2
    assert producer.append(messages(1)) == [0]
    client.refusals = [ValueError("never taken")] * 1_000
    with pytest.raises(ValueError, match="never taken"):
        producer.append(messages(1))
