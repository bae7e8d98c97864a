"""Recorded incident shapes end well, and are decided as they were.

The good end of each case is asserted by itself: rewriting the golden files cannot hide a bad one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import orjson
import pytest

from checkpoints.machine_format import decode_machine
from state.events import Event
from state.merge import MergedDecision
from state.opened_decisions import open_body
from state.partitions.slot import Slot
from state.protocol_errors import ProtocolError
from streaming.commands.tap import open_decision
from streaming.log.api import LogRecord
from streaming.log.json_lines import JsonLinesReader
from streaming.log.tap import to_json_line
from tests.fixtures.folding import fold_log

HERE = Path(__file__).parent
CASES = sorted(path.parent.name for path in HERE.glob("*/events.jsonl"))
SYNC_WAIT_MS = 1_800_000
Row = dict[str, Any]


@dataclass(frozen=True)
class Incident:
    """A case replayed."""

    name: str

    @cached_property
    def events(self) -> list[Event]:
        reader = JsonLinesReader(HERE / self.name / "events.jsonl")
        records = reader.read(reader.start_offset(), reader.end_offset())
        return [record.as_event() for record in records]

    @cached_property
    def decisions(self) -> list[MergedDecision]:
        return fold_log(self.events, 1)[1]

    @cached_property
    def slot(self) -> Slot:
        machine = decode_machine(fold_log(self.events, 1)[0][0])
        assert isinstance(machine, Slot)
        return machine

    def said(self, kind: str) -> Iterator[tuple[int, Any]]:
        """Yield (event offset, row or object) of the decisions of a kind."""
        for one in self.decisions:
            if one.kind == kind:
                opened = open_body(one.kind, one.body)
                yield from ((one.offset, row) for row in _rows(opened))

    def changes(self, topic: str, partition: int) -> list[Row]:
        """Return what a partition became, in order."""
        place = (topic, partition)
        found = self.said("change_partitions")
        return [row for _, row in found if (row["topic"], row["partition"]) == place]

    def replies(self) -> list[Row]:
        return [row for _, row in self.said("reply")]

    def lines(self) -> list[str]:
        """Return the decisions as `helmstream tap` shows them."""
        times = {event.offset: event.time_ms for event in self.events}
        return [
            to_json_line(
                LogRecord(at, times[one.offset], one.kind, f"{one.offset}:{one.ordinal}", one.body),
                open_decision,
            )
            for at, one in enumerate(self.decisions)
        ]


def _rows(opened: Row | list[Row]) -> list[Row]:
    return opened if isinstance(opened, list) else [opened]


def deletion_goes_on(case: Incident) -> None:
    deleted = [row for _, row in case.said("delete_topic")]
    assert [row["topic"] for row in deleted] == ["orders"]
    assert case.slot.table.deletions == {}
    to_broker_2 = [at for at, row in case.said("stop_replicas") if row["broker"] == 2]
    back = next(e.offset for e in case.events if b'"registered":[{"id":2' in e.payload)
    assert back in to_broker_2, "told again when it was back"
    again = case.slot.table.topic("orders")
    assert again is not None
    assert again.topic_id.startswith(b"orders-again")
    rows = case.slot.table.rows
    assert (rows.leader[case.slot.table.rows_of("orders")] > 0).all()


def no_entry_stays(case: Incident) -> None:
    asked = {
        (event.key, partition)
        for event in case.events
        if event.kind == "alter_reassignments_requested"
        for partition in _payload(event)["partitions"]
    }
    removed = {
        (row["topic"], partition)
        for _, row in case.said("remove_reassignments")
        for partition, _ in row["partitions"]
    }
    assert removed == asked
    assert case.changes("orders", 0)[-1]["replicas"] == [3, 4]
    assert case.changes("orders", 2)[-1]["replicas"] == [4, 1]
    rows = case.slot.table.rows
    assert not rows.adding.any()
    assert not rows.removing.any()
    assert [row["partition"] for row in case.changes("payments", 0)] == [0], "only told of"


def never_without_a_leader(case: Incident) -> None:
    changes = case.changes("orders", 0)
    assert all(row["leader"] > 0 for row in changes)
    assert all(row["leader"] in row["isr"] for row in changes)
    _, refused, accepted = [r for r in case.replies() if r["api"] == "alter_reassignments"]
    assert refused["partitions"][0]["error"] == ProtocolError.INVALID_REPLICA_ASSIGNMENT
    assert "the partition would lose its leader 3" in refused["partitions"][0]["message"]
    assert accepted["partitions"][0]["error"] == ProtocolError.NONE
    assert (changes[-1]["replicas"], changes[-1]["isr"]) == ([1, 2], [1, 2])


def decides_only_with_the_role(case: Incident) -> None:
    without = range(*_span(case, "controller_resigned", "resync_completed"))
    kinds = {one.kind for one in case.decisions if one.offset in without}
    assert kinds == {"reply"}
    waited, accepted = case.replies()[-2:]
    assert waited["error"] == ProtocolError.NOT_CONTROLLER
    assert accepted["partitions"][0]["error"] == ProtocolError.NONE
    *_, told = (row for _, row in case.said("update_brokers"))
    assert (told["introduced"], told["complete"], told["controller_epoch"]) == ([1, 2, 3], True, 8)
    loaded = without.stop
    recipients = {
        broker
        for at, row in case.said("change_partitions")
        for broker in row["recipients"]
        if at == loaded
    }
    assert recipients == {1, 2, 3}


def every_term_has_its_fence(case: Incident) -> None:
    term, loaded, checked = -1, False, 0
    by_offset = {event.offset: event for event in case.events}
    decided: dict[int, list[MergedDecision]] = {}
    for one in case.decisions:
        decided.setdefault(one.offset, []).append(one)
    for offset, event in by_offset.items():
        if event.kind == "controller_elected":
            term, loaded = _payload(event)["epoch_zk_version"], False
        loaded = event.kind == "resync_completed" or (
            loaded and event.kind != "controller_resigned"
        )
        for one in decided.get(offset, []):
            if one.kind == "update_brokers":
                assert _rows(open_body(one.kind, one.body))[0]["epoch_zk_version"] == term
                checked += 1
            assert loaded or one.kind == "reply", "nothing is decided without a whole load"
    assert checked == 4
    for partition in (0, 1):
        epochs = [row["leader_epoch"] for row in case.changes("orders", partition)]
        assert epochs == sorted(epochs)
    rows = case.slot.table.rows
    assert sorted(rows.isr[0].tolist()) == sorted(rows.isr[1].tolist()) == [1, 2, 3]
    assert rows.leader.tolist() == [3, 2]


def the_leader_is_sent_on(case: Incident) -> None:
    newer, ahead, without_role, accepted, older = case.replies()
    for reply in (newer, ahead):
        assert reply["partitions"][0]["error"] == ProtocolError.NOT_CONTROLLER
    assert without_role["error"] == ProtocolError.NOT_CONTROLLER
    assert accepted["partitions"][0]["isr"] == [2, 1, 3]
    assert older["partitions"][0]["error"] == ProtocolError.FENCED_LEADER_EPOCH
    resigned = next(e.offset for e in case.events if e.kind == "controller_resigned")
    stale = {one.kind for one in case.decisions if one.offset in (resigned - 2, resigned - 1)}
    assert stale == {"reply"}, "nothing is written on a stale view"


def leaders_wait_for_all_replicas(case: Incident) -> None:
    back = [
        (at, row["partition"])
        for at, row in case.said("change_partitions")
        if row["rule"] == "preferred_replica_elected"
    ]
    caught_up = [
        event.offset
        for event in case.events
        if event.kind == "leader_imbalance_reported" and not _payload(event)["behind"]["1"]
    ][-1]
    last = case.events[-1]
    assert back == [(caught_up, 0), (caught_up, 1), (last.offset, 0)]
    restarted = [e for e in case.events if b'"unregistered":[1]' in e.payload][-1]
    assert last.time_ms - restarted.time_ms > SYNC_WAIT_MS
    rows = case.slot.table.rows
    assert rows.leader.tolist() == [1, 3, 2, 3]


GOOD_ENDS: dict[str, Callable[[Incident], None]] = {
    "kafka-10548-deletion-while-a-broker-dies": deletion_goes_on,
    "kafka-9478-zombie-reassignment-entry": no_entry_stays,
    "kafka-14424-cancelled-reassignment": never_without_a_leader,
    "kafka-13407-controller-on-paper-only": decides_only_with_the_role,
    "kafka-6082-controller-switch-storm": every_term_has_its_fence,
    "kafka-14154-stale-controller": the_leader_is_sent_on,
    "kafka-20708-leaders-back-before-the-broker-caught-up": leaders_wait_for_all_replicas,
}


def _payload(event: Event) -> Any:
    return orjson.loads(event.payload)


def _span(case: Incident, first: str, last: str) -> tuple[int, int]:
    start = next(event.offset for event in case.events if event.kind == first)
    end = next(e.offset for e in case.events if e.kind == last and e.offset > start)
    return start, end


@pytest.mark.parametrize("name", CASES)
def test_an_incident_is_decided_as_it_was(name, rewrite_golden):
    golden = HERE / name / "decisions.jsonl"
    lines = Incident(name).lines()
    if rewrite_golden:
        golden.write_text("".join(line + "\n" for line in lines), "utf-8")
    assert lines == golden.read_text("utf-8").splitlines()


@pytest.mark.parametrize("name", CASES)
def test_an_incident_ends_well(name):
    case = Incident(name)
    GOOD_ENDS[name](case)
    assert not list(case.said("set_aside")), "every event can be read"


@pytest.mark.parametrize("name", CASES)
def test_an_incident_is_decided_alike_in_any_batches_and_slots(name):
    case = Incident(name)
    for slots, cuts in ((16, ()), (64, range(1, len(case.events))), (3, range(0, 99, 4))):
        assert fold_log(case.events, slots, cuts)[1] == case.decisions


def test_every_case_has_its_story_and_its_good_end():
    assert sorted(GOOD_ENDS) == CASES
    for name in CASES:
        story = (HERE / name / "README.md").read_text("utf-8")
        number = "-".join(name.upper().split("-")[:2])
        assert f"**Source.** {number};" in story
        assert "**The good end.**" in story
