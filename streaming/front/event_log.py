"""The front's door to the event log: the one writer, and who is told how it fares."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future

from streaming.log.api import LogWriter, NewRecord, RecordRefused


class EventLog:
    """Appends to the event log from any thread, and tells listeners, on the log's own thread.

    on_grown(end offset) after each durable append. on_failed(error) when the storage failed: who
    cannot append what happens must not be the controller.
    """

    def __init__(
        self,
        writer: LogWriter,
        on_grown: Callable[[int], None],
        on_failed: Callable[[Exception], None],
    ) -> None:
        """Take the open writer and the listeners."""
        self._writer = writer
        self._on_grown = on_grown
        self._on_failed = on_failed
        self._lock = threading.Lock()
        self._unanswered = 0
        self._silent_since_s: float | None = None

    @property
    def silent_since_s(self) -> float | None:
        """Since when no append was answered though some wait, in s of time.monotonic; None: none
        waits.
        """
        return self._silent_since_s

    def append(self, records: Sequence[NewRecord]) -> range:
        """Append events and return their offsets once all are durable; raises LogError."""
        return self.append_async(records).result()

    def append_async(self, records: Sequence[NewRecord]) -> Future[range]:
        """Append events without waiting; order of calls is order of offsets."""
        future = self._writer.append_async(records)
        with self._lock:
            self._unanswered += 1
            if self._silent_since_s is None:
                self._silent_since_s = time.monotonic()
        future.add_done_callback(self._tell)
        return future

    def start_offset(self) -> int:
        """Return the first offset still retained."""
        return self._writer.start_offset()

    def end_offset(self) -> int:
        """Return one past the last durable event."""
        return self._writer.end_offset()

    def truncate_before(self, offset: int) -> int:
        """Let go of what is before an offset; return the new start."""
        return self._writer.truncate_before(offset)

    def _tell(self, future: Future[range]) -> None:
        with self._lock:
            self._unanswered -= 1
            self._silent_since_s = time.monotonic() if self._unanswered else None
        if future.cancelled():
            return
        error = future.exception()
        if error is None:
            if future.result():
                self._on_grown(future.result().stop)
        elif isinstance(error, Exception) and not isinstance(error, RecordRefused):
            self._on_failed(error)
