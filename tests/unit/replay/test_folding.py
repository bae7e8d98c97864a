"""A range of a log folded in this process, and the rows in which the query says the same."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from checkpoints.replay import States, fold_batch
from state.events import Event
from state.routing import GROUP_SLOTS, Layout
from streaming.decided_rows import folded_batch, said
from streaming.folding import fold_range
from streaming.log.api import NewRecord, OffsetOutOfRange
from streaming.log.embedded import EmbeddedLogReader, EmbeddedLogWriter
from tests.fixtures.story import SCHEMA, Fold
from tests.logs.state_logs import long_log

SLOTS = 4
LAYOUT = Layout(SLOTS, GROUP_SLOTS)


@pytest.fixture(scope="module")
def log() -> list[Event]:
    return long_log(11, plausible=True)


@pytest.fixture
def reader(tmp_path, log):
    with EmbeddedLogWriter(tmp_path / "events") as writer:
        writer.append([NewRecord(e.kind, e.key, e.payload, e.time_ms) for e in log])
        with EmbeddedLogReader(tmp_path / "events") as reader:
            yield reader


@pytest.mark.parametrize("size", [1, 7, 10_000])
def test_a_range_is_folded_from_where_the_states_are(reader, log, size):
    middle = len(log) // 2
    states: States = {}
    fold_batch(states, log[:middle], LAYOUT)
    wanted = dict(states)
    decided = fold_batch(wanted, log[middle:], LAYOUT)
    events = range(middle, len(log))
    found = list(fold_range(states, reader, events, LAYOUT, batch=size))
    assert [one for batch in found for one in batch.decisions] == decided
    assert states == wanted
    ends = [batch.end_offset for batch in found]
    assert ends == [*range(middle + size, len(log), size), len(log)]
    times = {offset: time for batch in found for offset, time in batch.time_ms.items()}
    assert times == {one.offset: one.time_ms for one in log[middle:]}


def test_the_states_are_those_of_the_batch_that_is_yielded(reader, log):
    """Whoever stops in between goes on from there."""
    states: States = {}
    first = next(fold_range(states, reader, range(len(log)), LAYOUT, batch=20))
    wanted: States = {}
    assert first.decisions == fold_batch(wanted, log[:20], LAYOUT)
    assert (first.end_offset, states) == (20, wanted)


def test_settings_are_changed_in_the_events(reader, log):
    elected = next(one.offset for one in log if one.kind == "controller_elected")
    chosen = {"auto.leader.rebalance.enable": b"true" not in log[elected].payload}
    states, changed = {}, {}
    list(fold_range(states, reader, range(elected + 1), LAYOUT))
    list(fold_range(changed, reader, range(elected + 1), LAYOUT, what_if=chosen))
    assert states.keys() == changed.keys()
    assert states != changed


def test_an_empty_range_yields_nothing_and_one_beyond_the_log_is_refused(reader, log):
    end = len(log)
    assert list(fold_range({}, reader, range(end, end), LAYOUT)) == []
    with pytest.raises(OffsetOutOfRange):
        list(fold_range({}, reader, range(end, end + 1), LAYOUT))


def test_the_querys_rows_say_what_a_fold_here_yields(reader, log):
    [wanted] = fold_range({}, reader, range(len(log)), LAYOUT)
    found: Any = folded_batch(Fold(SLOTS).batch(log))
    assert (found.decisions, found.end_offset) == (wanted.decisions, wanted.end_offset)
    assert found.time_ms.items() <= wanted.time_ms.items()
    assert {one.offset for one in found.decisions} <= found.time_ms.keys()


def test_a_batch_may_fold_nothing_or_decide_nothing():
    assert folded_batch(SCHEMA.empty_table()) is None
    events = [Event(4, 9, "timer_due", "", b"{}"), Event(3, 8, "timer_due", "", b"{}")]
    rows = pa.table({"said": [said([one], []) for one in events]}, SCHEMA)
    found: Any = folded_batch(rows)
    assert (found.decisions, found.time_ms, found.end_offset) == ([], {4: 9, 3: 8}, 5)
