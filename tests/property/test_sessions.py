"""Sessions that the front keeps: no member expires that was heard from, and all that were not.

The machines fold what the front appends, at times that the log gives late; what they decide reaches
the front later still. Clients live, are silent for a while, or for good.
"""

from __future__ import annotations

from typing import Any

import orjson
from hypothesis import given
from hypothesis import strategies as st

from state.decisions import DecisionKind
from state.events import Event
from state.groups.buckets import group_bucket
from state.routing import GROUP_KEY
from state.step import fold, new_machine
from streaming.front.groups.sessions import Sessions
from streaming.log.api import NewRecord
from streaming.log.log_clock import LogClock
from tests.fixtures.folding import fold_log
from tests.logs.group_parts import loaded_metadata
from tests.unit.front.standing_time import StandingTime

SESSION_MS = 3_000
"""Of loaded_metadata."""
LATE_MS = 1_250
"""How much later than at the end of its session a member expires at most, the log's and the
decisions' delays included.
"""
CLOCK_STEPS_MS = (50, 3_000, 60_000, 3_600_000)
BUCKET = group_bucket("g")
NAMES = [name for name in ("g", *(f"x{n}" for n in range(80_000))) if group_bucket(name) == BUCKET]
GROUPS = (*NAMES[:3], "elsewhere")


class Told:
    """An event log, machines and the front's sessions; every group has one member of its name.

    stamp_ms: how late the log gives a time; decided_ms: how late the front hears of decisions;
    set_ms: by how much the wall clock was set ahead.
    """

    def __init__(self, stamp_ms: int, decided_ms: int) -> None:
        self.time = StandingTime()
        self.stamp_ms = stamp_ms
        self.decided_ms = decided_ms
        self.set_ms = 0
        self.clock = LogClock(lambda: self.time.now_ms + self.set_ms, self.time.time)
        self.events: list[Event] = []
        self.machine = new_machine(GROUP_KEY)
        self.removed: set[str] = set()
        self.heard_ms: dict[str, int] = {}
        self.sessions = Sessions(self.time, self.append, self.clock.now_ms, lambda: True)
        self.happen("group_partitions_elected", "", partitions=[0], epoch=1)
        for name in GROUPS:
            body = {"partition": 0, "epoch": 1, "group": name, "offsets": [], "pending": []}
            self.happen("group_observed", name, **body, metadata=loaded_metadata(f"{name}'s"))
        self.happen("group_partitions_loaded", "", partitions=[0], epoch=1)
        self.time.pass_to(self.time.now_ms + decided_ms)
        self.heard_ms = dict.fromkeys(GROUPS, self.time.now_ms)

    def happen(self, kind: str, key: str, **body: Any) -> None:
        self.append([NewRecord(kind, key, orjson.dumps(body))])

    def append(self, records: Any) -> None:
        for record in (*self.sessions.heartbeats_before(records), *records):
            at_ms = self.clock.now_ms() + self.stamp_ms
            event = Event(len(self.events), at_ms, record.kind, record.key, record.payload)
            self.events.append(event)
            for decision in fold(self.machine, [event]):
                assert decision.kind is not DecisionKind.SET_ASIDE, decision
                if decision.kind is DecisionKind.CHANGE_GROUP:
                    self._check(**orjson.loads(decision.body))

    def _check(self, group: str, steps: list[dict[str, Any]], partition: int) -> None:
        """Assert that only silent members expire; hand the decision over, late."""
        changes = [change for step in steps for change in step["changes"]]
        for change in changes:
            if change["change"] == "member_removed":
                assert change["reason"] == "session_expired"
                assert change["at_ms"] >= self.heard_ms[group] + SESSION_MS, "it was heard from"
                silent_ms = self.time.now_ms + self.stamp_ms - self.heard_ms[group]
                assert silent_ms >= SESSION_MS * 15 / 16, "by the time that passed too"
        at_s = self.time.time() + self.decided_ms / 1000
        self.time.call_at(at_s, self._decided, group, changes)

    def _decided(self, group: str, changes: list[Any]) -> None:
        self.sessions.decided(group, changes)
        if any(change["change"] == "member_removed" for change in changes):
            self.removed.add(group)


def play(stamp_ms: int, decided_ms: int, steps: list[tuple[str, int, int]]) -> Told:
    """Let a story happen, and check who was given up, and when."""
    told = Told(stamp_ms, decided_ms)
    for what, number, passed_ms in steps:
        told.time.pass_to(told.time.now_ms + passed_ms)
        now_ms, name = told.time.now_ms, GROUPS[number % len(GROUPS)]
        if what == "heard":
            # Who was not given up yet, as far as anybody knows, is there again.
            if name not in told.removed:
                told.heard_ms[name] = now_ms
                told.sessions.heard(name, f"{name}'s")
        elif what == "clock":
            told.set_ms += CLOCK_STEPS_MS[number]
        elif what == "bucket":
            told.happen("offsets_expiration_due", str(group_bucket(name)))
        else:
            told.happen("transaction_completed", "", producer_id=1, committed=True, partitions=[0])
        for group in GROUPS:
            silent_ms = now_ms - told.heard_ms[group]
            late_ms = LATE_MS + stamp_ms + decided_ms
            assert group in told.removed or silent_ms <= SESSION_MS + late_ms, "it was not"
    return told


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["heard", "heard", "heard", "bucket", "all", "clock"]),
        st.integers(0, 3),
        st.sampled_from([0, 1, 90, 700, 1_400]),
    ),
    max_size=60,
)
DELAYS = st.sampled_from([0, 1, 20, 400])


@given(stamp_ms=DELAYS, decided_ms=DELAYS, steps=STEPS)
def test_members_that_were_heard_of_stay_and_others_go(
    stamp_ms: int, decided_ms: int, steps: list[tuple[str, int, int]]
) -> None:
    play(stamp_ms, decided_ms, steps)


@given(stamp_ms=DELAYS, decided_ms=DELAYS, steps=STEPS, data=st.data())
def test_however_the_log_is_cut_the_same_sessions_end(
    stamp_ms: int, decided_ms: int, steps: list[tuple[str, int, int]], data: st.DataObject
) -> None:
    events = play(stamp_ms, decided_ms, steps).events
    cuts = data.draw(st.sets(st.integers(1, len(events))), label="cuts")
    slots = data.draw(st.sampled_from([1, 3, 16]), label="slots")
    assert fold_log(events, 1, cuts, slots) == fold_log(events, 1, (), slots)


@given(beats=st.lists(st.integers(1, SESSION_MS - 1), max_size=40))
def test_nothing_is_appended_while_all_members_are_heard_from(beats: list[int]) -> None:
    told = Told(0, 0)
    appended = len(told.events)
    for passed_ms in beats:
        told.time.pass_to(told.time.now_ms + passed_ms)
        for name in GROUPS:
            told.sessions.heard(name, f"{name}'s")
    assert len(told.events) == appended
