"""A producer with acks=all that runs throughout and keeps the books on what was acked."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from kafka import KafkaProducer
from kafka.errors import KafkaError

# As Java's clients. kafka-python asks for new metadata only when a connection to the old leader
# fails, and by default it waits up to 30 s before it tries that again.
RECONNECT_BACKOFF_MAX_MS = 1_000

_PAUSE_S = 1 / 60
_FLUSH_TIMEOUT_S = 30.0
_UNKNOWN_OFFSET = -1


@dataclass(frozen=True, slots=True)
class Acked:
    """A record that the cluster promised to keep.

    offset is -1 when the broker recognised a repetition and acked it without saying where the
    record is.
    """

    partition: int
    offset: int
    value: bytes


class Producer:
    """Sends numbered records to all partitions in turn, on a thread of its own.

    The client is kafka-python's, with acks=all and idempotence. An ack gap is the time between two
    acks of one partition, the time since the last one included.
    """

    def __init__(
        self, bootstrap_servers: Sequence[str], topic: str, partitions: int, prefix: str = ""
    ) -> None:
        """Connect; values are the prefix and a number. Raises KafkaError."""
        self._prefix = prefix.encode()
        self._client: Any = KafkaProducer(
            bootstrap_servers=list(bootstrap_servers),
            client_id="demo-producer",
            acks="all",
            enable_idempotence=True,
            reconnect_backoff_max_ms=RECONNECT_BACKOFF_MAX_MS,
        )
        self._topic = topic
        self._partitions = partitions
        self._stopped = threading.Event()
        self._lock = threading.Lock()
        self._acked: list[Acked] = []
        self._last_ack_s: dict[int, float] = {}
        self._newest_acked_sent_s = dict.fromkeys(range(partitions), 0.0)
        self._longest_gap_s = 0.0
        self._longest_gap_in_step_s = 0.0
        self._thread = threading.Thread(target=self._run, name="demo-producer", daemon=True)
        self.sent = 0
        self.failed = 0
        self.last_error: BaseException | None = None

    def start(self) -> None:
        """Start sending."""
        self._thread.start()

    def stop(self) -> None:
        """Stop sending, wait for the last acks, and close the client; once only."""
        if self._stopped.is_set():
            return
        self._stopped.set()
        if self._thread.is_alive():
            self._thread.join(_FLUSH_TIMEOUT_S)
        self._quietly(lambda: self._client.flush(timeout=_FLUSH_TIMEOUT_S))
        self._quietly(lambda: self._client.close(timeout=5))  # which flushes what is left, too

    def _quietly(self, end: Callable[[], object]) -> None:
        try:
            end()
        except KafkaError as error:
            self.last_error = error

    @property
    def acked(self) -> list[Acked]:
        """What was acked so far, in order of acks."""
        with self._lock:
            return list(self._acked)

    @property
    def acked_count(self) -> int:
        """How many records were acked so far."""
        return len(self._acked)

    def begin_step(self) -> None:
        """Start a new measurement of `longest_gap_in_step_s`."""
        with self._lock:
            self._longest_gap_in_step_s = 0.0

    def longest_gap_s(self) -> float:
        """Return the longest ack gap so far."""
        with self._lock:
            return max(self._longest_gap_s, self._open_gap_s())

    def longest_gap_in_step_s(self) -> float:
        """Return the longest ack gap that ended since `begin_step` or is still open."""
        with self._lock:
            return max(self._longest_gap_in_step_s, self._open_gap_s())

    def partitions_without_ack(self, sent_after_s: float) -> list[int]:
        """Return the partitions of which nothing sent after a time.monotonic() was acked yet."""
        with self._lock:
            newest = self._newest_acked_sent_s.items()
            return [partition for partition, sent_s in newest if sent_s < sent_after_s]

    def _open_gap_s(self) -> float:
        if not self._last_ack_s or not self._thread.is_alive():
            return 0.0
        return time.monotonic() - min(self._last_ack_s.values())

    def _run(self) -> None:
        while not self._stopped.wait(_PAUSE_S):
            value = b"%s%d" % (self._prefix, self.sent)
            partition = self.sent % self._partitions
            self.sent += 1
            try:
                self._send(partition, value)
            except (KafkaError, ValueError) as error:
                # kafka-python says ValueError where a broker that was not told of the topic yet
                # answered between two of its looks at the metadata.
                self._failed(error)

    def _send(self, partition: int, value: bytes) -> None:
        sent_s = time.monotonic()
        promise = self._client.send(self._topic, value=value, partition=partition)
        promise.add_callback(lambda metadata: self._acknowledged(metadata, value, sent_s))
        promise.add_errback(self._failed)

    def _acknowledged(self, metadata: Any, value: bytes, sent_s: float) -> None:
        now_s = time.monotonic()
        partition = metadata.partition
        offset = _UNKNOWN_OFFSET if metadata.offset is None else metadata.offset
        with self._lock:
            self._acked.append(Acked(partition, offset, value))
            gap_s = now_s - self._last_ack_s.get(partition, now_s)
            self._last_ack_s[partition] = now_s
            self._longest_gap_s = max(self._longest_gap_s, gap_s)
            self._longest_gap_in_step_s = max(self._longest_gap_in_step_s, gap_s)
            newest_s = self._newest_acked_sent_s[partition]
            self._newest_acked_sent_s[partition] = max(newest_s, sent_s)

    def _failed(self, error: BaseException) -> None:
        self.failed += 1
        self.last_error = error
