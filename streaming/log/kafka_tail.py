"""A reader for whoever asks for the end of a topic all the time, as a streaming query does."""

from __future__ import annotations

import logging
import threading
from contextlib import closing

from kafka import KafkaConsumer
from kafka.errors import KafkaError

from streaming.log.kafka_reader import KafkaLogReader, open_consumer
from streaming.log.kafka_topic import partition_of
from streaming.log.location import KafkaTopic

logger = logging.getLogger(__name__)

_LONG_POLL_MS = 1_000
_FETCH_BYTES = 1024 * 1024


class KafkaTail(KafkaLogReader):
    """A `KafkaLogReader` that is told of new records instead of asking.

    `end_offset` costs no request: a thread waits at the end of the topic and notes each new one. It
    may be behind what another process knows by a moment, and stands still while the log cluster
    is away.
    """

    def __init__(self, topic: KafkaTopic, timeout_ms: int) -> None:
        super().__init__(topic, timeout_ms)
        self._at = topic
        self._watcher: _Watcher | None = None
        self._changing = threading.Lock()

    def end_offset(self) -> int:
        return self._watching().end_offset

    def wait_beyond(self, offset: int, timeout_s: float) -> int:
        """Return the end: once it is not `offset`, at the latest after `timeout_s`."""
        return self._watching().wait_beyond(offset, timeout_s)

    def rest(self) -> None:
        """Take no more records until the end is asked for again; for who does not for long."""
        with self._changing:
            if self._watcher is not None:
                self._watcher.end()

    def close(self) -> None:
        self.rest()
        if self._watcher is not None:
            self._watcher.join()
        super().close()

    def _watching(self) -> _Watcher:
        with self._changing:
            if self._watcher is None or self._watcher.ends or not self._watcher.is_alive():
                self._watcher = _Watcher(self._at, super().end_offset(), self._timeout_ms)
            return self._watcher


class _Watcher(threading.Thread):
    """Waits for records from an offset on; ends when it is stopped, or cannot."""

    def __init__(self, topic: KafkaTopic, end_offset: int, timeout_ms: int) -> None:
        super().__init__(name=f"end-of-{topic}", daemon=True)
        self.end_offset = end_offset
        self._topic = topic
        self._timeout_ms = timeout_ms
        self._ending = threading.Event()
        self._moved = threading.Condition()
        self.start()

    def wait_beyond(self, offset: int, timeout_s: float) -> int:
        with self._moved:
            self._moved.wait_for(lambda: self.end_offset != offset, timeout_s)
        return self.end_offset

    @property
    def ends(self) -> bool:
        """Whether it notes no new end any more."""
        return self._ending.is_set()

    def end(self) -> None:
        """Let it end, within a poll."""
        self._ending.set()

    def run(self) -> None:
        try:
            with closing(open_consumer(self._topic, self._timeout_ms, _FETCH_BYTES)) as consumer:
                self._follow(consumer)
        except KafkaError as error:
            logger.warning("the end of %s has to be asked for: %s", self._topic, error)

    def _follow(self, consumer: KafkaConsumer) -> None:
        partition = partition_of(self._topic)
        consumer.assign([partition])
        consumer.seek(partition, self.end_offset)
        while not self._ending.is_set():
            found = consumer.poll(timeout_ms=_LONG_POLL_MS)
            for message in found.get(partition, []):
                with self._moved:
                    self.end_offset = message.offset + 1
                    self._moved.notify_all()
