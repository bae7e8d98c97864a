"""The embedded durable log: a folder of segments with one writer and any number of readers.

Files of a folder: `%020d.log` (segments, named by their first offset), `head` (the durable end, for
readers in other processes), `lock` (who writes). docs/event-log.md is the specification.
"""

from __future__ import annotations

from streaming.log.embedded_format import CorruptLog
from streaming.log.embedded_reader import EmbeddedLogReader
from streaming.log.embedded_writer import EmbeddedLogWriter
from streaming.log.writer_lock import LogLocked

__all__ = ["CorruptLog", "EmbeddedLogReader", "EmbeddedLogWriter", "LogLocked"]
