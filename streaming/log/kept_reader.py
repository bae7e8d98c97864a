"""A log that is looked into now and then, for as long as a process lives."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from streaming.log.location import KafkaTopic, LogLocation
from streaming.log.recorded import RecordedLog, open_log


class KeptReader:
    """Gives a reader of a log to one at a time.

    A topic's is kept, since it takes connections, unless something fails while it is used. A
    folder's costs nothing, and is opened each time: what another machine writes into a folder is
    certain to be seen by who opens it afterwards.
    """

    def __init__(self, where: LogLocation) -> None:
        """Open nothing yet."""
        self._where = where
        self._kept: RecordedLog | None = None

    @contextmanager
    def opened(self) -> Iterator[RecordedLog]:
        """Give the reader for a while; raises as `open_log`."""
        reader = open_log(self._where) if self._kept is None else self._kept
        self._kept = None
        try:
            yield reader
        except BaseException:
            reader.close()
            raise
        if isinstance(self._where, KafkaTopic):
            self._kept = reader
        else:
            reader.close()

    def close(self) -> None:
        """Let go of what is kept; may be called twice."""
        if self._kept is not None:
            self._kept.close()
            self._kept = None
