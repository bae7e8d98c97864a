"""A data folder to explain, and the command that does."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import orjson
import pytest

from streaming.cli import main
from streaming.log.api import NewRecord
from streaming.log.decision_writer import IdempotentLogWriter, IdentifiedRecord, RecordId
from streaming.log.embedded import EmbeddedLogReader, EmbeddedLogWriter
from streaming.paths import DataDir
from streaming.sinks.batch import decided_batch
from tests.fixtures.story import Fold, Story

PORTS = {1: 11, 2: 12, 3: 13}
_OUTCOMES_OF_A_BATCH = 5


class Recording:
    """A data folder as front and job leave it; each batch is an event."""

    def __init__(self, root: Path) -> None:
        self.folders = DataDir(root)
        self.story = Story()
        self.fold = Fold()
        self.now_ms = 0
        self._events = EmbeddedLogWriter(self.folders.events)
        self._decisions = EmbeddedLogWriter(self.folders.decisions)
        self._outcomes = EmbeddedLogWriter(
            self.folders.outcomes, clock=lambda: self.now_ms, segment_bytes=1
        )
        reader = EmbeddedLogReader(self.folders.decisions)
        self._decided = IdempotentLogWriter(self._decisions, reader)
        self._folded = 0

    def decide(self, **persisted: Any) -> int:
        """Fold what was written to the story, batch by batch, and return the last event's offset.

        persisted: more of the last batch's outcome.
        """
        for event in self.story.events[self._folded :]:
            self._events.append([NewRecord(event.kind, event.key, event.payload, event.time_ms)])
            batch = decided_batch(event.offset, self.fold.folded([event]))
            self._decided.append(
                [
                    IdentifiedRecord(
                        RecordId(one.offset, one.merged.ordinal),
                        one.kind,
                        one.merged.body,
                        event.time_ms,
                    )
                    for one in batch.decisions
                ]
            )
            self.now_ms = event.time_ms + 5
            self.outcome(
                "persisted",
                batch_id=event.offset,
                end_offset=event.offset + 1,
                first_event_ms=event.time_ms,
                written_at_ms=self.now_ms,
                **({"lost": [], "fenced_until": 0} | persisted),
            )
            for broker in (1, 2):
                for kind, at_ms in (("delivered", 7), ("confirmed", 9)):
                    self.outcome(
                        kind,
                        broker_id=broker,
                        end_offset=event.offset + 1,
                        at_ms=event.time_ms + at_ms,
                    )
        self._folded = len(self.story.events)
        return self._folded - 1

    def decided_as_it_is(self, kind: str, payload: bytes) -> None:
        """Append a decision that nobody has made, about event 99."""
        self._decided.append([IdentifiedRecord(RecordId(99, 0), kind, payload, 0)])

    def outcome(self, kind: str, **body: Any) -> None:
        self._outcomes.append([NewRecord(kind, "", orjson.dumps(body))])

    def cut_outcomes(self, batches: int = 0) -> None:
        """Let go of all but what the last batches left, and of all but the last record."""
        end = self._outcomes.end_offset()
        self._outcomes.truncate_before(end - batches * _OUTCOMES_OF_A_BATCH)

    def close(self) -> None:
        for log in (self._events, self._decisions, self._outcomes):
            log.close()


def run(recording: Recording, *arguments: str) -> int:
    with pytest.raises(SystemExit) as left:
        main(["explain", *arguments, "--data-dir", str(recording.folders.root)])
    return int(left.value.code or 0)


def explained(
    recording: Recording, capsys: pytest.CaptureFixture[str], *arguments: str
) -> list[dict[str, Any]]:
    assert run(recording, "my-topic-0", "--json", *arguments) == 0
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]
