"""Which events a decision log covers."""

from __future__ import annotations

from dataclasses import replace

import pytest

from state.decisions import DecisionKind
from state.merge import MergedDecision
from streaming.log.api import LogRecord, NewRecord
from streaming.log.decision_reader import OpenDecisions
from streaming.log.embedded import EmbeddedLogWriter
from streaming.log.json_lines import write_json_lines
from streaming.replay.covered import CommonEvents, NothingInCommon, covered_events

KIND = DecisionKind.ARM_TIMER


def covered(path, *keys):
    with path.open("w", encoding="utf-8") as out:
        records = (LogRecord(at, 5, str(KIND), key, b"{}") for at, key in enumerate(keys))
        write_json_lines(records, out)
    with OpenDecisions(path) as log:
        return covered_events(path, log)


def test_a_log_alone_covers_its_first_to_its_last_event_but_none_that_was_cut(tmp_path):
    file = tmp_path / "decisions.jsonl"
    assert covered(file, "3:0", "3:1", "9:0") == range(3, 10)
    assert covered(file, "3:1", "9:0", "9:1") == range(4, 10)
    assert not covered(file)


def test_what_is_outside_of_the_common_events_is_counted_by_side():
    both = CommonEvents(range(10), range(4, 20))
    decisions = [MergedDecision(offset, 0, KIND, b"{}") for offset in range(12)]
    assert both.remark() == ""
    assert [one.offset for one in both.of("A", decisions[:10])] == [*range(4, 10)]
    assert [one.offset for one in both.of("B", decisions[4:])] == [*range(4, 10)]
    assert both.remark() == ("decisions left out: 4 of A, 2 of B; A and B both cover events 4 to 9")


def test_logs_without_a_common_event_are_refused_but_two_empty_ones_are_equal():
    with pytest.raises(NothingInCommon, match="A covers events 0 to 4, B events 5 to 9"):
        CommonEvents(range(5), range(5, 10))
    with pytest.raises(NothingInCommon, match="A covers events 0 to 4, B no event"):
        CommonEvents(range(5), range(0))
    assert CommonEvents(range(0), range(0)).remark() == ""


def test_a_data_folder_covers_what_its_job_has_folded(tmp_path):
    record = NewRecord(str(KIND), "3:0", b"{}")
    with EmbeddedLogWriter(tmp_path / "decisions") as writer:
        writer.append([record, replace(record, key="9:0")])
    for name, lines in (("offsets", 'v1\n{}\n{"offset": 12}'), ("commits", "v1\n{}")):
        (tmp_path / "checkpoint" / name).mkdir(parents=True)
        (tmp_path / "checkpoint" / name / "7").write_text(lines)
    with OpenDecisions(tmp_path) as log:
        assert covered_events(tmp_path, log) == range(3, 12)
