"""Reads a log out of a Kafka topic, from any process."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from typing import Any, Self

from kafka import KafkaConsumer
from kafka.errors import (
    KafkaTimeoutError,
    OffsetOutOfRangeError,
    UnknownTopicOrPartitionError,
)

from streaming.log.api import LogError, LogRecord, LogUnavailable, OffsetOutOfRange
from streaming.log.event_rows import EventRow
from streaming.log.kafka_topic import (
    check_partitions,
    client_options,
    open_client,
    partition_of,
    to_record,
    told_as_unavailable,
)
from streaming.log.location import KafkaTopic

TIMEOUT_MS = 10_000
_RECORDS_AT_ONCE = 10_000
_FETCH_BYTES = 8 * 1024 * 1024
_METADATA_MS = 2_000
"""Whoever led when metadata came last, kafka-python (3.0.12) goes on to ask where a log ends."""


def open_consumer(topic: KafkaTopic, timeout_ms: int, fetch_bytes: int) -> KafkaConsumer:
    """Return a consumer without a group; raises KafkaError."""
    return open_client(
        KafkaConsumer,
        **client_options(topic, timeout_ms),
        group_id=None,
        enable_auto_commit=False,
        auto_offset_reset="none",
        fetch_max_bytes=fetch_bytes,
        max_partition_fetch_bytes=fetch_bytes,
        reconnect_backoff_max_ms=1_000,
        metadata_max_age_ms=_METADATA_MS,
    )


class KafkaLogReader:
    """Exact, repeatable reads of what is durable (a `LogReader`); safe to share between threads.

    The log's offsets are the partition's. `timeout_ms` is how long the log cluster may be away: it
    is waited for, and then told as LogUnavailable.

    Raises:
        UnusableTopic: the topic is not there, or has not one partition.
        LogUnavailable: the log cluster cannot be reached in time.
    """

    def __init__(self, topic: KafkaTopic, timeout_ms: int = TIMEOUT_MS) -> None:
        self._topic = topic
        self._partition = partition_of(topic)
        self._timeout_ms = timeout_ms
        self._lock = threading.Lock()
        with told_as_unavailable(topic):
            self._consumer = open_consumer(topic, timeout_ms, _FETCH_BYTES)
            self._position = -1
            try:
                check_partitions(topic, self._partitions())
            except BaseException:
                self._consumer.close()
                raise

    def start_offset(self) -> int:
        with self._lock, told_as_unavailable(self._topic):
            found = self._consumer.beginning_offsets([self._partition], self._timeout_ms)
            return int(found[self._partition])

    def end_offset(self) -> int:
        with self._lock, told_as_unavailable(self._topic):
            found = self._consumer.end_offsets([self._partition], self._timeout_ms)
            return int(found[self._partition])

    def first_at(self, time_ms: int) -> int:
        """The offset of the first record of this time or later, the end when there is none.

        It holds for records whose times do not go back. The client refuses times before 1970.
        """
        at, time_ms = self._partition, max(0, time_ms)
        with self._lock, told_as_unavailable(self._topic):
            found = self._consumer.offsets_for_times({at: time_ms}, self._timeout_ms)[at]
        return self.end_offset() if found is None else int(found.offset)

    def read(self, start: int, end: int) -> Iterator[LogRecord]:
        """As `LogReader.read`; the range is checked at once, records are read as they are taken.

        Raises:
            OffsetOutOfRange: the range is not retained, or is not any more.
            LogError: there is no record of a log at an offset; those before it were given.
            LogUnavailable: the log cluster is away for too long; those before were given.
        """
        return (record for records in self._chunks(start, end) for record in records)

    def event_rows(self, start: int, end: int) -> Iterator[list[EventRow]]:
        """As `read`, in plain rows; the range is not checked before, so one that is not retained is
        told where it is reached.
        """
        return (
            [(r.offset, r.time_ms, r.kind, r.key, r.payload) for r in records]
            for records in self._fetched(start, end)
        )

    def close(self) -> None:
        with self._lock:
            self._consumer.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _partitions(self) -> set[int]:
        """Return the topic's partitions; none when it is not there until the timeout: the brokers
        of a log cluster that has just started do not know of all topics at once.
        """
        # Of others the client would ask for all topics there.
        self._consumer.assign([self._partition])
        try:
            self._consumer.beginning_offsets([self._partition], self._timeout_ms)
        except KafkaTimeoutError:
            if self._known():
                raise
        return self._known()

    def _known(self) -> set[int]:
        """Return what the client knows, or is told, of the topic's partitions."""
        try:
            found: set[int] = self._consumer.partitions_for_topic(self._topic.name)
        except (
            UnknownTopicOrPartitionError
        ):  # where it is told so by an answer it waited for before
            return set()
        return found

    def _chunks(self, start: int, end: int) -> Iterator[list[LogRecord]]:
        first, last = self.start_offset(), self.end_offset()
        for offset in (start, end):
            if not first <= offset <= last:
                raise OffsetOutOfRange(offset, first, last)
        if start > end:
            raise OffsetOutOfRange(end, start, last)
        return self._fetched(start, end)

    def _fetched(self, start: int, end: int) -> Iterator[list[LogRecord]]:
        while start < end:
            records = [
                to_record(self._topic, message) for message in self._fetch(start, end - start)
            ]
            for offset, record in enumerate(records, start):
                if record.offset != offset:
                    raise LogError(f"{self._topic}: offset {record.offset} is where {offset} goes")
            yield records
            start += len(records)

    def _fetch(self, offset: int, count: int) -> list[Any]:
        """Return at least one message, from an offset on that the log has."""
        deadline = time.monotonic() + self._timeout_ms / 1000
        with self._lock, told_as_unavailable(self._topic):
            if self._position != offset:
                self._consumer.seek(self._partition, offset)
            self._position = -1
            try:
                while time.monotonic() < deadline:
                    most = min(count, _RECORDS_AT_ONCE)
                    found = self._consumer.poll(timeout_ms=1_000, max_records=most)
                    messages: list[Any] = found.get(self._partition, [])
                    if messages:
                        self._position = int(messages[-1].offset) + 1
                        return messages
            except OffsetOutOfRangeError:
                gone = True
            else:
                gone = False
        if gone:
            raise OffsetOutOfRange(offset, self.start_offset(), self.end_offset())
        raise LogUnavailable(
            f"the log cluster of {self._topic} gave nothing from offset {offset} on"
            f" for {self._timeout_ms / 1000:g} s"
        )
