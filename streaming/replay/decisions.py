"""The decision log that a replay writes, and the digest over it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from checkpoints.replay import Digest
from streaming.decided_rows import FoldedBatch
from streaming.log.decision_reader import read_decisions
from streaming.log.decision_writer import IdempotentLogWriter, IdentifiedRecord, RecordId
from streaming.log.embedded import EmbeddedLogReader, EmbeddedLogWriter

Progress = Callable[[int], None]
"""Called with the offset up to which events are folded."""


class DecisionLog:
    """Takes decisions in batches; what is there already, of a replay that was interrupted, is
    dropped. Use as a context manager. log: what is written, for who cuts it.

    Raises LogLocked when another process writes it.
    """

    def __init__(self, folder: Path) -> None:
        """Open the log, or make it."""
        self.log = EmbeddedLogWriter(folder)
        self._writer = IdempotentLogWriter(self.log, EmbeddedLogReader(folder))

    def append(self, batch: FoldedBatch) -> None:
        """Append a batch's decisions with the times of their events."""
        self._writer.append(
            [
                IdentifiedRecord(
                    RecordId(one.offset, one.ordinal), one.kind, one.body, batch.time_ms[one.offset]
                )
                for one in batch.decisions
            ]
        )

    def __enter__(self) -> DecisionLog:
        return self

    def __exit__(self, *_: object) -> None:
        self.log.close()


def digest_of(folder: Path) -> Digest:
    """Return the digest over a decision log."""
    digest = Digest()
    with EmbeddedLogReader(folder) as reader:
        records = reader.read(reader.start_offset(), reader.end_offset())
        digest.update(one.decision for one in read_decisions(records))
    return digest
