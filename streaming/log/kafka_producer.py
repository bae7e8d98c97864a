"""The producer behind a log in a Kafka topic: idempotent, acks=all, one batch after the other."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from kafka import KafkaProducer
from kafka.errors import KafkaError

from streaming.log.group_commit import GROUP_BYTES_MAX
from streaming.log.kafka_topic import client_options, open_client, partition_of
from streaming.log.location import KafkaTopic
from streaming.process.polling import polls

logger = logging.getLogger(__name__)

FRAME_BYTES = 512
"""More than what Kafka puts around a record that is alone in its batch."""
_POLL_S = 0.05


@dataclass(frozen=True, slots=True)
class Message:
    """What becomes a record of the topic; time_ms: None for when it is sent."""

    headers: list[tuple[str, bytes]]
    key: bytes
    payload: bytes
    time_ms: int | None

    @property
    def size_bytes(self) -> int:
        """What it takes in a batch, at most."""
        return FRAME_BYTES + len(self.key) + len(self.payload)


class TopicProducer:
    """Appends to the topic of a log; for one thread. Raises KafkaError when it cannot connect.

    timeout_ms: how long a batch waits for a log cluster that is away. message_bytes_max: of the
    topic.
    """

    def __init__(self, topic: KafkaTopic, timeout_ms: int, message_bytes_max: int) -> None:
        self._topic = topic
        self._partition = partition_of(topic).partition
        self._timeout_s = timeout_ms / 1000
        self._failed = False
        self._client: Any = open_client(
            KafkaProducer,
            **client_options(topic, timeout_ms),
            **_options(timeout_ms, message_bytes_max),
        )

    def append(self, messages: Sequence[Message]) -> list[int]:
        """Return the messages' offsets, once all replicas in sync have them.

        When it raises (KafkaError, ValueError), a prefix of batches is in the topic, and of the
        first one that is not, it is not known. Then nothing must be appended any more.
        """
        offsets: list[int] = []
        self._failed = True
        for batch in _batches(messages):
            # The next one is not given to the client before: it would send it also where it has
            # given this one up, and the log would have a gap.
            sent = [self._send(one) for one in batch]
            self._client.flush(self._timeout_s + 1)
            offsets += [int(one.get(timeout=0).offset) for one in sent]
        self._failed = False
        return offsets

    def close(self) -> None:
        """Close the connections; what was not appended by now never is."""
        try:
            if self._failed:
                # A close waits for what is not sent, and gives up when that takes long: the thread
                # would go on, and send it later. There is no public way to have it dropped.
                self._client._sender.force_close()
            self._client.close(timeout=self._timeout_s)
        except KafkaError as error:
            logger.warning("%s: a producer did not end in time: %r", self._topic, error)

    def _send(self, message: Message) -> Any:
        """Give a message to the client; raises KafkaError, ValueError when it does not take it."""
        refused = ValueError("it was not tried")
        for _ in polls(self._timeout_s, _POLL_S):
            try:
                return self._client.send(
                    self._topic.name,
                    value=message.payload,
                    key=message.key,
                    headers=message.headers,
                    partition=self._partition,
                    timestamp_ms=message.time_ms,
                )
            except ValueError as error:
                # It looks at its metadata several times; in between a broker that was started
                # again, and was not told of the topic yet, may have answered.
                refused = error
        raise refused


def _batches(messages: Sequence[Message]) -> Iterator[list[Message]]:
    """Cut messages into what fits into one batch of the producer; a large one is alone in its."""
    batch: list[Message] = []
    size_bytes = 0
    for one in messages:
        if batch and size_bytes + one.size_bytes > GROUP_BYTES_MAX:
            yield batch
            batch, size_bytes = [], 0
        batch.append(one)
        size_bytes += one.size_bytes
    if batch:
        yield batch


def _options(timeout_ms: int, message_bytes_max: int) -> dict[str, Any]:
    return {
        "acks": "all",
        "enable_idempotence": True,
        "max_in_flight_requests_per_connection": 1,
        # A flush ends each batch, nothing else does.
        "linger_ms": timeout_ms // 4,
        "batch_size": min(2 * GROUP_BYTES_MAX, message_bytes_max),
        "max_request_size": message_bytes_max,
        "delivery_timeout_ms": timeout_ms,
        "request_timeout_ms": timeout_ms // 2,
        "max_block_ms": timeout_ms,
        "reconnect_backoff_max_ms": 1_000,
    }
