"""The decision stream: a copy of the decision log in a topic, for whoever subscribes.

It follows the decision log on a thread of its own, so a log cluster that is away holds nobody up;
the copy goes on where the last id in the topic says, when it is back and when the job is. What a
process had under way when it ended may still arrive after that was looked up, so a decision can be
there twice: `streaming.log.decision_reader` gives each once.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from streaming.errors import ConfigurationError
from streaming.log.api import LogError, LogReader, LogWriter
from streaming.log.copying import next_records
from streaming.log.decision_writer import IdempotentLogWriter, IdentifiedRecord, record_id
from streaming.log.embedded import EmbeddedLogReader
from streaming.log.kafka_reader import TIMEOUT_MS, KafkaLogReader
from streaming.log.kafka_writer import KafkaLogWriter
from streaming.log.location import KafkaTopic, topic_of
from streaming.log.log_clock import LogClock
from streaming.log.recorded import first_where, kept_from, oldest_kept_ms

logger = logging.getLogger(__name__)

_POLL_S = 0.05
_RETRY_S = 2.0
_CUT_EVERY_S = 60.0
_END_TIMEOUT_S = 2.0
"""A job has to end within what its supervisor waits for, also while the log cluster is away."""


@contextmanager
def published(decisions: Path, url: str, retention_ms: int) -> Iterator[None]:
    """Copy a decision log to the topic of a URL meanwhile; "" is none. retention_ms: how long the
    topic keeps what it has.
    """
    if not url:
        yield
        return
    publisher = DecisionPublisher(decisions, topic_of(url), retention_ms)
    try:
        yield
    finally:
        publisher.close()


class DecisionPublisher:
    """Copies one decision log to one topic until it is closed; the log's folder must be there.

    It alone writes to the topic, so it is also who deletes what is older than the retention.
    """

    def __init__(
        self, decisions: Path, topic: KafkaTopic, retention_ms: int, timeout_ms: int = TIMEOUT_MS
    ) -> None:
        """Start the thread."""
        self._decisions = decisions
        self._topic = topic
        self._retention_ms = retention_ms
        self._timeout_ms = timeout_ms
        self._clock = LogClock()
        self._next_cut_s = time.monotonic() + _CUT_EVERY_S
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="decision-stream", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop after what is under way, unless that takes long; what is not copied yet is copied by
        the next one.
        """
        self._stopped.set()
        self._thread.join(_END_TIMEOUT_S)
        if self._thread.is_alive():
            logger.info("the decision stream ends without an answer of %s", self._topic)

    def _run(self) -> None:
        while not self._stopped.is_set():
            try:
                with (
                    KafkaLogWriter(self._topic, timeout_ms=self._timeout_ms) as log,
                    KafkaLogReader(self._topic, self._timeout_ms) as reader,
                    EmbeddedLogReader(self._decisions) as decisions,
                ):
                    self._copy(decisions, log, reader)
            except (LogError, ConfigurationError) as error:
                logger.warning("the decision stream waits: %s", error)
            except Exception:
                logger.exception("the decision stream is opened again")
            self._stopped.wait(_RETRY_S)

    def _copy(self, decisions: LogReader, log: LogWriter, reader: LogReader) -> None:
        writer = IdempotentLogWriter(log, reader)
        at = self._start(decisions, writer)
        while not self._stopped.is_set():
            self._cut(log, reader)
            end = decisions.end_offset()
            if end <= at:
                self._stopped.wait(_POLL_S)
                continue
            found = next_records(decisions, at, end)
            writer.append(
                [
                    IdentifiedRecord(record_id(one), one.kind, one.payload, one.time_ms)
                    for one in found
                ]
            )
            at += len(found)

    def _cut(self, log: LogWriter, reader: LogReader) -> None:
        """Delete from the topic, now and then."""
        if time.monotonic() >= self._next_cut_s:
            self._next_cut_s = time.monotonic() + _CUT_EVERY_S
            oldest_ms = oldest_kept_ms(reader, self._clock.now_ms(), self._retention_ms)
            log.truncate_before(kept_from(reader, oldest_ms))

    def _start(self, decisions: LogReader, writer: IdempotentLogWriter) -> int:
        """Return the offset of the first decision that the topic does not have."""
        start, end = decisions.start_offset(), decisions.end_offset()
        last = writer.last_id
        at = start if last is None else first_where(decisions, lambda one: record_id(one) > last)
        if at == start > 0:
            logger.warning(
                "%s may lack decisions between %s and the oldest one that is retained",
                self._topic,
                "the first" if last is None else last,
            )
        elif at == end > start and record_id(next(iter(decisions.read(end - 1, end)))) != last:
            logger.warning(
                "%s has decisions up to %s, later than any here: nothing is copied until then;"
                " a topic is for the decisions about one event log",
                self._topic,
                last,
            )
        return at
