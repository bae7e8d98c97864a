"""What the logs say about a step: counts, an example, times."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import orjson
import pytest

from state.blocks import encode_block
from state.decisions import DecisionKind, Rule
from streaming.demo.journal import Journal, Mark, Report
from streaming.demo.steps import event
from streaming.log.api import NewRecord
from streaming.log.embedded import EmbeddedLogWriter
from streaming.paths import DataDir

KILLED = event("broker_registrations_changed", unregistered=3)


def change_block(rows: list[tuple[int, int, int, Rule, list[int]]]) -> bytes:
    """Rows: partition, leader before, leader, rule, ISR."""
    partition, before, leader, rule, isr = zip(*rows, strict=True)
    columns = {
        "topic": np.zeros(len(rows), dtype=np.int32),
        "partition": np.array(partition, dtype=np.int32),
        "leader_before": np.array(before, dtype=np.int32),
        "leader": np.array(leader, dtype=np.int32),
        "rule": np.array(rule, dtype=np.int8),
        "isr": np.array(isr, dtype=np.int32),
    }
    return encode_block(columns, {"topics": ["demo"], "topic_ids": [None]})


def append(folder: Path, *records: tuple[str, object, int]) -> None:
    with EmbeddedLogWriter(folder) as writer:
        for kind, payload, time_ms in records:
            body = payload if isinstance(payload, bytes) else orjson.dumps(payload)
            writer.append([NewRecord(kind, "", body, time_ms)])


def persisted(
    end_offset: int, at_ms: int, *, batch_id: int, decisions: int = 1
) -> tuple[str, object, int]:
    body = {"end_offset": end_offset, "written_at_ms": at_ms}
    return "persisted", body | {"batch_id": batch_id, "decisions": decisions}, at_ms


def confirmed(broker_id: int, end_offset: int, at_ms: int) -> tuple[str, object, int]:
    return "confirmed", {"broker_id": broker_id, "end_offset": end_offset, "at_ms": at_ms}, at_ms


@pytest.fixture
def folders(tmp_path: Path) -> DataDir:
    """Broker 3 goes at 1000 ms; decided in batch 9 and written at 1150, told until 1210."""
    found = DataDir(tmp_path)
    kept = (2, 2, Rule.REPLICA_LEFT_ISR, [2, 1])
    moved = (3, 2, Rule.OFFLINE_PARTITION_ELECTED, [2, 1])
    append(
        found.events,
        ("timer_due", {"timer": "x"}, 900),
        ("broker_registrations_changed", {"unregistered": [3], "registered": []}, 1000),
        ("broker_registrations_changed", {"unregistered": [], "registered": [{"id": 3}]}, 2000),
    )
    append(
        found.decisions,
        (DecisionKind.ARM_TIMER, {"timer": "x", "deadline_ms": 5}, 900),
        (DecisionKind.CHANGE_PARTITIONS, change_block([(0, *kept), (1, *moved)]), 1000),
    )
    append(
        found.outcomes,
        persisted(1, 950, batch_id=7),
        persisted(2, 1100, batch_id=8, decisions=0),
        persisted(2, 1150, batch_id=9),
        confirmed(1, 2, 1180),
        confirmed(2, 2, 1210),
        persisted(3, 2100, batch_id=10),
        confirmed(1, 3, 2200),
    )
    return found


def test_a_step_is_timed_by_its_own_event_and_batch(folders: DataDir) -> None:
    timing = Journal(folders).report(Mark(0, 0, 0), KILLED).timing
    assert timing is not None
    assert (timing.written_ms, timing.answered_ms, timing.answered) == (150, 210, frozenset({1, 2}))


def test_rows_of_blocks_are_counted_and_a_moved_leader_is_the_example(folders: DataDir) -> None:
    report = Journal(folders).report(Mark(0, 0, 0), None)
    assert report.decisions == {"arm_timer": 1, "change_partitions": 2}
    assert report.example == "demo-1: leader 3 -> 2 (offline_partition_elected), isr [2, 1]"


def test_only_what_came_after_the_mark_counts(folders: DataDir) -> None:
    journal = Journal(folders)
    assert journal.mark() == Mark(3, 2, 7)
    assert journal.report(journal.mark(), KILLED) == Report({}, None, None)
    assert len(journal.batch_ends(Mark(0, 0, 3))) == 1
    assert journal.last_end() == max(journal.batch_ends(Mark(0, 0, 0)))


def test_logs_that_are_not_there_yet_are_empty(tmp_path: Path) -> None:
    journal = Journal(DataDir(tmp_path))
    assert journal.mark() == Mark(0, 0, 0)
    assert journal.report(journal.mark(), KILLED) == Report({}, None, None)
    assert journal.last_sentences(5) == []
    assert journal.last_end() == 0
