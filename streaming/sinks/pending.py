"""Which brokers have not confirmed everything that was queued for them, kept across a crash.

A broker is marked before anything is sent and cleared when its queue is empty. After a restart the
marked ones are told everything again; that costs traffic and nothing else, since brokers ignore
what they know by epoch.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable
from pathlib import Path

import orjson


class PendingBrokers:
    """The marked brokers with the offset up to which they have something to confirm, mirrored in
    a small file.
    """

    def __init__(self, path: Path) -> None:
        """Read the file; one that is missing or broken leaves it unknown who is marked."""
        self._path = path
        self._lock = threading.Lock()
        self._known = True
        try:
            stored = orjson.loads(path.read_bytes())["pending"]
            self._marked: dict[int, int] = {int(broker): end for broker, end in stored.items()}
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            self._marked = {}
            self._known = False

    def marked(self, broker_id: int) -> bool:
        """Return whether a broker may have missed something."""
        return not self._known or broker_id in self._marked

    def mark(self, broker_ids: Iterable[int], end_offset: int) -> None:
        """Mark brokers durably, until they confirm up to end_offset."""
        with self._lock:
            marks = {broker: max(end_offset, self._marked.get(broker, 0)) for broker in broker_ids}
            fresh = marks.keys() - self._marked.keys()
            self._marked.update(marks)
            if fresh or not self._known:
                self._known = True
                self._save(sync=True)

    def clear(self, broker_id: int, end_offset: int) -> None:
        """Clear a broker that has confirmed all it was marked for; losing this in a crash costs
        a repetition.
        """
        with self._lock:
            if self._marked.get(broker_id, end_offset + 1) <= end_offset:
                del self._marked[broker_id]
                self._save(sync=False)

    def _save(self, *, sync: bool) -> None:
        temporary = self._path.with_suffix(".tmp")
        marks = {str(broker): end for broker, end in sorted(self._marked.items())}
        with temporary.open("wb") as file:
            file.write(orjson.dumps({"pending": marks}))
            file.flush()
            if sync:
                os.fsync(file.fileno())
        temporary.replace(self._path)
