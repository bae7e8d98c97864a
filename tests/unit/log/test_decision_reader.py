"""Readers of the decision log see each decision once, also where a crash left it twice."""

from __future__ import annotations

import pytest

from state.decisions import DecisionKind
from streaming.log.api import LogError, LogRecord
from streaming.log.decision_reader import each_once, read_decisions
from streaming.log.decision_writer import RecordId

KIND = str(DecisionKind.ARM_TIMER)


def records(*keys: str) -> list[LogRecord]:
    return [LogRecord(at, 5, KIND, key, b"{}") for at, key in enumerate(keys)]


def test_a_second_copy_is_dropped():
    log = records("3:0", "3:1", "3:0", "3:1", "7:0", "3:1", "10:0")
    assert [str(one.id) for one in read_decisions(log)] == ["3:0", "3:1", "7:0", "10:0"]


def test_a_reader_that_goes_on_drops_what_it_had():
    found = each_once(records("3:0", "3:1", "7:0"), after=RecordId(3, 0))
    assert [one.key for one in found] == ["3:1", "7:0"]


def test_a_key_that_is_no_id_is_refused():
    with pytest.raises(LogError, match="'x' is not an id"):
        list(each_once(records("x")))
