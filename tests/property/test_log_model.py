"""Any interleaving of appends, restarts, truncations and reads behaves as a list does."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from streaming.log.api import LogRecord, NewRecord, OffsetOutOfRange
from streaming.log.embedded import EmbeddedLogReader, EmbeddedLogWriter
from streaming.log.embedded_format import list_segments

new_records = st.lists(
    st.builds(
        NewRecord,
        kind=st.sampled_from(["topic_observed", "timer_due", ""]),
        key=st.text(max_size=8),
        payload=st.binary(max_size=120),
        time_ms=st.none() | st.none() | st.integers(0, 2_000),
    ),
    max_size=6,
)


class LogAgainstList(RuleBasedStateMachine):
    """`model` holds every record ever appended; `start` is what retention has left."""

    @initialize(segment_bytes=st.sampled_from([1, 150, 600, 100_000]))
    def open_first(self, segment_bytes: int) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="log-model-"))
        self.segment_bytes = segment_bytes
        self.now_ms = 1_000
        self.model: list[LogRecord] = []
        self.start = 0
        self.open()

    def open(self) -> None:
        self.writer = EmbeddedLogWriter(
            self.folder, clock=lambda: self.now_ms, segment_bytes=self.segment_bytes
        )
        self.reader = EmbeddedLogReader(self.folder)

    @rule(new=new_records)
    def append(self, new: list[NewRecord]) -> None:
        first = len(self.model)
        assert self.writer.append(new) == range(first, first + len(new))
        for record in new:
            last_ms = self.model[-1].time_ms if self.model else 0
            time_ms = max(self.now_ms, last_ms) if record.time_ms is None else record.time_ms
            self.model.append(
                LogRecord(len(self.model), time_ms, record.kind, record.key, record.payload)
            )

    @rule(now_ms=st.integers(0, 2_000))
    def clock_jumps(self, now_ms: int) -> None:
        self.now_ms = now_ms

    @rule(segment_bytes=st.sampled_from([1, 150, 600, 100_000]))
    def restart(self, segment_bytes: int) -> None:
        self.close()
        self.segment_bytes = segment_bytes
        self.open()

    @rule()
    def new_reader(self) -> None:
        self.reader.close()
        self.reader = EmbeddedLogReader(self.folder)

    @rule(offset=st.integers(0, 60))
    def truncate(self, offset: int) -> None:
        bases = list_segments(self.folder)
        allowed = [base for base in bases if base <= max(offset, bases[0])]
        start = self.writer.truncate_before(offset)
        last_record = len(self.model) - 1
        assert start == max(b for b in allowed if b <= max(last_record, bases[0]))
        self.start = start

    @rule(data=st.data())
    def read(self, data: st.DataObject) -> None:
        start = data.draw(st.integers(0, len(self.model) + 2))
        end = data.draw(st.integers(start, len(self.model) + 2))
        if start < self.start or end > len(self.model):
            with pytest.raises(OffsetOutOfRange):
                self.reader.read(start, end)
            return
        assert list(self.reader.read(start, end)) == self.model[start:end]
        rows = [row for chunk in self.reader.event_rows(start, end) for row in chunk]
        assert [LogRecord(*row) for row in rows] == self.model[start:end]

    @invariant()
    def the_retained_range_is_known(self) -> None:
        if hasattr(self, "model"):
            assert self.reader.start_offset() == self.start
            assert self.reader.end_offset() == len(self.model)

    def close(self) -> None:
        self.reader.close()
        self.writer.close()

    def teardown(self) -> None:
        if hasattr(self, "folder"):
            self.close()
            shutil.rmtree(self.folder)


LogAgainstList.TestCase.settings = settings(stateful_step_count=30)
TestLogAgainstList = LogAgainstList.TestCase
