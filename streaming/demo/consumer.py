"""A consumer that reads all partitions throughout and keeps the books on what it saw."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

from kafka import KafkaConsumer, TopicPartition
from kafka.errors import KafkaError

from streaming.demo.producer import RECONNECT_BACKOFF_MAX_MS

_POLL_MS = 200
_PAUSE_AFTER_ERROR_S = 0.5
_STOP_TIMEOUT_S = 15.0


class Consumer:
    """Reads a topic from the start, partitions assigned by hand, on a thread of its own.

    values: (partition, offset) -> value of what came; again: records that came more than once.
    """

    def __init__(self, bootstrap_servers: Sequence[str], topic: str, partitions: int) -> None:
        """Connect; raises KafkaError."""
        self._client: Any = KafkaConsumer(
            bootstrap_servers=list(bootstrap_servers),
            client_id="demo-consumer",
            group_id=None,
            enable_auto_commit=False,
            auto_offset_reset="earliest",
            reconnect_backoff_max_ms=RECONNECT_BACKOFF_MAX_MS,
        )
        self._client.assign([TopicPartition(topic, number) for number in range(partitions)])
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="demo-consumer", daemon=True)
        self.values: dict[tuple[int, int], bytes] = {}
        self.again = 0
        self.last_error: BaseException | None = None

    def start(self) -> None:
        """Start reading."""
        self._thread.start()

    def stop(self) -> None:
        """Stop reading and close the client; once only."""
        if self._stopped.is_set():
            return
        self._stopped.set()
        if self._thread.is_alive():
            self._thread.join(_STOP_TIMEOUT_S)
        self._client.close(autocommit=False)

    def _run(self) -> None:
        while not self._stopped.is_set():
            try:
                polled = self._client.poll(timeout_ms=_POLL_MS)
            except KafkaError as error:
                self.last_error = error
                self._stopped.wait(_PAUSE_AFTER_ERROR_S)
                continue
            for records in polled.values():
                for record in records:
                    self._take((record.partition, record.offset), record.value)

    def _take(self, place: tuple[int, int], value: bytes) -> None:
        self.again += place in self.values
        self.values[place] = value
