"""Logs and snapshots of version 1 are read for ever: samples, frozen when they were written."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from checkpoints.machine_format import decode_machine
from checkpoints.reslot import reslot
from checkpoints.snapshot import read_snapshot
from state.opened_decisions import open_body
from state.partitions.slot import Slot
from state.routing import Layout
from streaming.log.decision_reader import OpenDecisions
from streaming.log.embedded import EmbeddedLogReader
from streaming.log.json_lines import JsonLinesReader
from tests.fixtures.frozen import EVENTS, SLOTS, unpack_frozen_data

RECORDED = (
    Path(__file__).parents[2] / "golden" / "kafka-14424-cancelled-reassignment" / "events.jsonl"
)


def test_the_frozen_event_log_says_what_its_json_lines_say(tmp_path):
    wanted = JsonLinesReader(RECORDED)
    with EmbeddedLogReader(unpack_frozen_data(tmp_path) / "events") as reader:
        assert (reader.start_offset(), reader.end_offset()) == (0, EVENTS)
        assert list(reader.read(0, EVENTS)) == list(wanted.read(0, EVENTS))


def test_the_frozen_decision_log_says_who_led(tmp_path):
    with OpenDecisions(unpack_frozen_data(tmp_path)) as log:
        decisions = list(log.decisions())
    changes: list[Any] = []
    for one in decisions:
        if one.kind == "change_partitions":
            changes += open_body(one.kind, one.body)
    assert [row["leader"] for row in changes] == [1, 1, 1, 3, 3, 3, 1, 1, 1]
    assert changes[-1]["rule"] == "isr_altered_by_leader"


def test_the_frozen_snapshot_is_gone_on_from(tmp_path):
    snapshot = read_snapshot(unpack_frozen_data(tmp_path) / "machines.parquet")
    assert (snapshot.offset, snapshot.layout.slots) == (EVENTS, SLOTS)
    moved = reslot(snapshot, Layout(3, snapshot.layout.group_slots))
    slots = [decode_machine(data) for key, data in moved.states.items() if 0 <= key < 3]
    rows = [one.table.rows for one in slots if isinstance(one, Slot) and len(one.table.rows)]
    assert [(one.leader.tolist(), one.isr.tolist()) for one in rows] == [([1], [[1, 2, -1, -1]])]
