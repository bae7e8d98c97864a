"""The one writer of a log in a Kafka topic: what is appended at once goes as one batch."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import replace

from kafka.errors import KafkaError

from streaming.log.api import LogError, LogUnavailable, NewRecord
from streaming.log.embedded_format import checked_texts
from streaming.log.group_commit import Append, GroupCommit, time_of
from streaming.log.kafka_producer import FRAME_BYTES, Message, TopicProducer
from streaming.log.kafka_reader import TIMEOUT_MS, KafkaLogReader
from streaming.log.kafka_topic import (
    MESSAGE_BYTES_MAX,
    open_admin,
    partition_of,
    record_bytes_max,
    to_headers,
    told_as_unavailable,
)
from streaming.log.location import KafkaTopic
from streaming.log.recorded import time_before
from streaming.process.wall_clock import wall_clock_ms

logger = logging.getLogger(__name__)

_TIMEOUT_MIN_MS = 1_000
_RECORD_BYTES_MAX = 64 * 1024 * 1024  # within a broker's largest request


class KafkaLogWriter:
    """The one writer of a topic (a `LogWriter`).

    A group is a batch, or several where it is large, and one is in flight: what was appended is
    there whole, or a prefix of batches is. `timeout_ms` is how long a batch waits for a log cluster
    that is away; then it is not known what the topic holds, and the writer gives up. It also gives
    up when an append gets another offset than the next one, since then somebody else appends too:
    Kafka keeps nobody out. `clock` as for the embedded log.

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
            self._time_ms = time_before(reader, self._start, self._end)
        admin = open_admin(topic, timeout_ms)
        with told_as_unavailable(topic):
            try:
                message_bytes_max = min(record_bytes_max(topic, admin), MESSAGE_BYTES_MAX)
            finally:
                admin.close()
            self._record_bytes_max = min(_RECORD_BYTES_MAX, message_bytes_max - FRAME_BYTES)
            self._producer = TopicProducer(topic, timeout_ms, message_bytes_max)
        self._groups = GroupCommit(
            str(topic), self._commit, self._message, lambda one: one.size_bytes
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
            self._producer.close()

    def __enter__(self) -> KafkaLogWriter:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _message(self, record: NewRecord) -> Message:
        _, key = checked_texts(record, self._record_bytes_max)
        return Message(to_headers(record.kind), key, record.payload, record.time_ms)

    def _commit(self, group: list[Append[Message]]) -> None:
        """Send the group, wait until all replicas in sync have it, tell: in this order."""
        messages, time_ms = self._timed(group)
        try:
            offsets = self._producer.append(messages)
        except Exception as error:  # noqa: BLE001 - whatever it is, it belongs to who waits
            self._groups.give_up(group, _said(error))
            return
        first = self._end
        if offsets != list(range(first, first + len(messages))):
            other = f"offset {offsets[0]} is not {first}: somebody else appends to the topic too"
            self._groups.give_up(group, LogError(other))
            return
        self._time_ms, self._end = time_ms, first + len(messages)
        for waiting in group:
            waiting.future.set_result(range(first, first + len(waiting.records)))
            first += len(waiting.records)

    def _timed(self, group: list[Append[Message]]) -> tuple[list[Message], int]:
        """Return the group's messages with their times, and the last one of these."""
        time_ms = self._time_ms
        messages = []
        for waiting in group:
            now_ms = self._clock()
            for one in waiting.records:
                time_ms = time_of(one.time_ms, now_ms, time_ms)
                messages.append(replace(one, time_ms=time_ms))
        return messages, time_ms

    def _delete_before(self, offset: int) -> int:
        admin = open_admin(self._topic, self._timeout_ms)
        try:
            with told_as_unavailable(self._topic):
                admin.delete_records({self._partition: offset}, self._timeout_ms)
        finally:
            admin.close()
        return offset


def _said(error: Exception) -> Exception:
    """Return the error with the name of its class, which some of the client's have in place of a
    message.
    """
    return LogError(f"{type(error).__name__} {error}") if isinstance(error, KafkaError) else error
