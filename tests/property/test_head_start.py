"""Head starts, the query behind them and any number of crashes: each decision is carried out, none
otherwise than the query decides it, and only what a crash interrupted twice.
"""

from __future__ import annotations

import random
import shutil
import tempfile
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from checkpoints.replay import States
from state.events import Event
from state.merge import MergedDecision
from streaming.decided_rows import FoldedBatch
from streaming.log.api import NewRecord
from streaming.log.embedded import EmbeddedLogWriter
from streaming.log.source import HelmstreamLogStreamReader
from streaming.paths import DataDir
from streaming.settings_loader import load_settings
from streaming.starting import beginning, head_starts
from streaming.starting.beginning import begin
from streaming.starting.head_start import HeadStart
from streaming.starting.head_starts import HeadStarts
from tests.fixtures.folding import fold_log
from tests.fixtures.job_checkpoints import note_state_format
from tests.fixtures.story import Fold
from tests.logs.state_logs import long_log

SLOTS = 3
BATCH_EVENTS = 12


class Killed(Exception):
    """The job ends here."""


class Sinks:
    """A pipeline that keeps what it is given. It may die in one of the next batches, before or
    after it has carried that out. The first batch of a life may be the last one of the life before
    again, and has to be if that died in it.
    """

    def __init__(self) -> None:
        self.carried_out: list[MergedDecision] = []
        self.ends = [0, 0]
        self.is_first = self.was_interrupted = False
        self.dies_in: int | None = None
        self.dies_early = False

    def carry_out(self, batch_id: int | None, folded: FoldedBatch) -> None:
        again = self.is_first and folded.end_offset == self.ends[-1]
        assert again or not self.was_interrupted, "with the same end as before"
        if again:
            self.ends.pop()
        assert all(one.offset >= self.ends[-1] for one in folded.decisions)
        self.ends.append(folded.end_offset)
        dies = self.dies_in == 0
        self.dies_in = None if self.dies_in is None else self.dies_in - 1
        self.is_first, self.was_interrupted = False, dies
        if not (dies and self.dies_early):
            self.carried_out += folded.decisions
        if dies:
            raise Killed

    def pass_over(self, end_offset: int) -> None:
        assert end_offset <= self.ends[-1]


class Query:
    """What Spark keeps of a query, and its next batch."""

    def __init__(self, folders: DataDir, log: list[Event]) -> None:
        self.checkpoint, self.log = folders.checkpoint, log
        self.committed, self.states, self.batches = 0, States(), 0
        self.written = -1, States()
        self.dies_in: int | None = None

    def pass_by(self) -> None:
        """Die here, if it is time to: a batch is planned, or taken and not committed."""
        self.dies_in = None if self.dies_in is None else self.dies_in - 1
        if self.dies_in == 0:
            raise Killed

    def run(self, head_starts: HeadStarts, end: int) -> None:
        planned = self.checkpoint / "offsets" / str(self.batches)
        if planned.exists():
            end = int(planned.read_text().split(":")[1].strip("}"))
        if end <= self.committed:
            return
        note_state_format(self.checkpoint)
        self._write("offsets", f'v1\n{{}}\n{{"offset":{end}}}')
        self.pass_by()
        fold = Fold(SLOTS, self.states)
        rows = fold.batch(self.log[self.committed : end])
        self.written = self.batches, fold.states
        head_starts.process_batch(self.batches, rows)
        self.pass_by()
        self._write("commits", "v1\n{}")
        self.committed, self.states, self.batches = end, fold.states, self.batches + 1

    def written_by(self, batch_id: int) -> States:
        """What its tasks have written of a batch that is not committed yet."""
        batch, states = self.written
        assert batch == batch_id
        return dict(states)

    def _write(self, folder: str, text: str) -> None:
        path = self.checkpoint / folder / str(self.batches)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


class Story:
    """A data folder, a log that grows, and one life of a job after the other."""

    def __init__(self, root: Path, log: list[Event], chance: random.Random) -> None:
        chosen = [f"data.dir={root}", f"slots={SLOTS}", "shuffle.partitions=1"]
        chosen += [f"event.log.batch.max.events={BATCH_EVENTS}"]
        self.settings = load_settings(overrides=chosen, environment={})
        self.folders = DataDir(root)
        self.log, self.chance = log, chance
        self.writer = EmbeddedLogWriter(self.folders.events)
        self.sinks, self.query = Sinks(), Query(self.folders, log)
        self.written = 0

    def grow(self, events: int) -> None:
        new = self.log[self.written : self.written + events]
        if new:
            self.writer.append([NewRecord(e.kind, e.key, e.payload, e.time_ms) for e in new])
            self.written += len(new)

    def live(self, *, to_the_end: bool) -> None:
        """Live until killed, or until the query has everything."""
        pipeline: Any = self.sinks
        started = begin(self.settings, self.folders, pytest.fail)
        every = HeadStarts(self.settings, self.folders, pipeline, started, threading.Event())
        reader = HelmstreamLogStreamReader(
            str(self.folders.events), self.settings.layout, BATCH_EVENTS, None
        )
        self.sinks.is_first = True
        if not to_the_end:
            self.sinks.dies_in = self.chance.randrange(4)
            self.sinks.dies_early = self.chance.random() < 0.5
            self.query.dies_in = self.chance.choice([None, 1, 2, 3, 4])
        else:
            self.sinks.dies_in = self.query.dies_in = None
        while self.query.committed < len(self.log):
            self.grow(self.chance.choice([0, 1, 3, 30]))
            head_start = every._last
            redo = head_start._first_end is not None
            ahead_can = not head_start._is_over and head_start._done < self.written
            if ahead_can and (redo or self.chance.random() < 0.6):
                head_start._step(reader)
            elif self.written and not redo:
                self.query.run(every, min(self.written, self.query.committed + BATCH_EVENTS))
        if every._last.passed:
            assert not every._last._fold_check.differs()


@given(seed=st.integers(0, 1 << 32), lives=st.integers(0, 6))
@settings(deadline=None, max_examples=15)
def test_every_decision_is_carried_out_as_the_query_decides_it(seed: int, lives: int) -> None:
    chance = random.Random(seed)
    log = long_log(chance.randrange(50), plausible=True)
    root = Path(tempfile.mkdtemp(prefix="hs-"))
    story = Story(root, log, chance)
    story.grow(1)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(beginning, "restored", lambda *_: dict(story.query.states))
        patched.setattr(beginning, "_has_election", lambda *_: False)
        patched.setattr(
            head_starts, "read_state_files", lambda _, batch, **__: story.query.written_by(batch)
        )
        patched.setattr(HeadStart, "start", lambda _: None)
        patched.setattr(HeadStart, "await_load", lambda _: None)
        try:
            for _ in range(lives):
                with suppress(Killed):
                    story.live(to_the_end=False)
            story.live(to_the_end=True)
        finally:
            story.writer.close()
            shutil.rmtree(root)
    _, wanted = fold_log(log, SLOTS)
    found = {(one.offset, one.ordinal): one for one in story.sinks.carried_out}
    assert [found[at] for at in sorted(found)] == wanted
