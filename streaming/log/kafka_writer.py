"""The one writer of a log in a Kafka topic: an idempotent producer, acks=all, a batch a group."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any

from kafka import KafkaProducer
from kafka.errors import KafkaError

from streaming.log.api import LogError, LogUnavailable, NewRecord
from streaming.log.embedded_format import checked_texts
from streaming.log.group_commit import GROUP_BYTES_MAX, Append, GroupCommit, time_of
from streaming.log.kafka_reader import TIMEOUT_MS, KafkaLogReader
from streaming.log.kafka_topic import (
    MESSAGE_BYTES_MAX,
    client_options,
    open_admin,
    open_client,
    partition_of,
    record_bytes_max,
    to_headers,
    told_as_unavailable,
)
from streaming.log.location import KafkaTopic
from streaming.process.wall_clock import wall_clock_ms

logger = logging.getLogger(__name__)

_FRAME_BYTES = 512  # more than what Kafka puts around a record that is alone in its batch
_TIMEOUT_MIN_MS = 1_000
_RECORD_BYTES_MAX = 64 * 1024 * 1024  # within a broker's largest request


@dataclass(frozen=True, slots=True)
class _Message:
    """A record that was checked."""

    headers: list[tuple[str, bytes]]
    key: bytes
    payload: bytes
    time_ms: int | None


class KafkaLogWriter:
    """The one writer of a topic (a `LogWriter`).

    A group is one batch of the producer, and one is in flight: what was appended is there whole, or
    a prefix of batches is. `timeout_ms` is how long an append waits for a log cluster that is
    away; then it is not known what the topic holds, and the writer gives up. It also gives up when
    an append gets another offset than the next one, since then somebody else appends too: Kafka
    keeps nobody out. `clock` as for the embedded log.

    Raises:
        UnusableTopic: the topic is not there, or cannot hold a log as it is.
        LogUnavailable: the log cluster cannot be reached in time.
    """

    def __init__(
        self,
        topic: KafkaTopic,
        *,
        clock: Callable[[], int] = wall_clock_ms,
        timeout_ms: int = TIMEOUT_MS,
    ) -> None:
        if timeout_ms < _TIMEOUT_MIN_MS:
            raise ValueError(f"timeout_ms={timeout_ms} is less than {_TIMEOUT_MIN_MS}")
        self._topic = topic
        self._partition = partition_of(topic)
        self._clock = clock
        self._timeout_ms = timeout_ms
        with KafkaLogReader(topic, timeout_ms) as reader:
            self._start, self._end = reader.start_offset(), reader.end_offset()
            self._time_ms = _last_time_ms(reader, self._start, self._end)
        admin = open_admin(topic, timeout_ms)
        with told_as_unavailable(topic):
            try:
                message_bytes_max = min(record_bytes_max(topic, admin), MESSAGE_BYTES_MAX)
            finally:
                admin.close()
            self._record_bytes_max = min(_RECORD_BYTES_MAX, message_bytes_max - _FRAME_BYTES)
            self._producer = open_client(
                KafkaProducer,
                **client_options(topic, timeout_ms),
                **_producer_options(timeout_ms, message_bytes_max),
            )
        self._groups = GroupCommit(
            str(topic), self._commit, self._message, lambda message: len(message.payload)
        )

    def append(self, records: Sequence[NewRecord]) -> range:
        return self.append_async(records).result()

    def append_async(self, records: Sequence[NewRecord]) -> Future[range]:
        return self._groups.submit(records)

    def start_offset(self) -> int:
        return self._start

    def end_offset(self) -> int:
        return self._end

    def last_time_ms(self) -> int:
        return self._time_ms

    def truncate_before(self, offset: int) -> int:
        """Have the records before `offset` deleted; while the log cluster is away nothing is."""
        offset = min(offset, self._end - 1)
        if offset > self._start:
            try:
                self._start = self._delete_before(offset)
            except LogUnavailable as error:
                logger.warning("nothing before offset %d is let go of: %s", offset, error)
        return self._start

    def close(self) -> None:
        if self._groups.close():
            self._producer.close(timeout=self._timeout_ms / 1000)

    def __enter__(self) -> KafkaLogWriter:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _message(self, record: NewRecord) -> _Message:
        _, key = checked_texts(record, self._record_bytes_max)
        return _Message(to_headers(record.kind), key, record.payload, record.time_ms)

    def _commit(self, group: list[Append[_Message]]) -> None:
        """Send the group, wait until all replicas in sync have it, tell: in this order."""
        time_ms = self._time_ms
        sent: list[Any] = []
        try:
            for waiting in group:
                now_ms = self._clock()
                for message in waiting.records:
                    time_ms = time_of(message.time_ms, now_ms, time_ms)
                    sent.append(self._send(message, time_ms))
            self._producer.flush(self._timeout_ms / 1000 + 1)
            offsets = [int(one.get(timeout=0).offset) for one in sent]
        except Exception as error:  # noqa: BLE001 - whatever it is, it belongs to who waits
            self._groups.give_up(group, _said(error))
            return
        first = self._end
        if offsets != list(range(first, first + len(sent))):
            other = f"offset {offsets[0]} is not {first}: somebody else appends to the topic too"
            self._groups.give_up(group, LogError(other))
            return
        self._time_ms, self._end = time_ms, first + len(sent)
        for waiting in group:
            waiting.future.set_result(range(first, first + len(waiting.records)))
            first += len(waiting.records)

    def _send(self, message: _Message, time_ms: int) -> Any:
        return self._producer.send(
            self._topic.name,
            value=message.payload,
            key=message.key,
            headers=message.headers,
            partition=self._partition.partition,
            timestamp_ms=time_ms,
        )

    def _delete_before(self, offset: int) -> int:
        admin = open_admin(self._topic, self._timeout_ms)
        try:
            with told_as_unavailable(self._topic):
                admin.delete_records({self._partition: offset}, self._timeout_ms)
        finally:
            admin.close()
        return offset


def _producer_options(timeout_ms: int, message_bytes_max: int) -> dict[str, Any]:
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


def _last_time_ms(reader: KafkaLogReader, start: int, end: int) -> int:
    return next(iter(reader.read(end - 1, end))).time_ms if start < end else 0


def _said(error: Exception) -> Exception:
    """Return the error with the name of its class, which some of the client's have in place of a
    message.
    """
    return LogError(f"{type(error).__name__} {error}") if isinstance(error, KafkaError) else error
