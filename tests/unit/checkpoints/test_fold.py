"""An event on which a machine fails is set aside, whatever was folded with it."""

from __future__ import annotations

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from checkpoints import fold as fold_module
from checkpoints.fold import fold_state
from checkpoints.machine_format import encode_machine
from state import step as step_module
from state.decisions import Decision, DecisionKind
from state.events import Event
from tests.fixtures.story import Story

FATAL = "fatal"


@pytest.fixture
def failing(monkeypatch):
    """Machines that fail on some events, half way: after they have changed."""
    real = step_module.step

    def step(machine, event):
        found = real(machine, event)
        if FATAL in event.key or FATAL.encode() in event.payload:
            raise ZeroDivisionError(f"on {event.offset}")
        return found

    monkeypatch.setattr(step_module, "step", step)


def story(*, fatal: bool) -> list[Event]:
    written = Story()
    written.elect({1: 11, 2: 12, 3: 13})
    written.create("t", [[1, 2, 3]])
    if fatal:
        written.create(FATAL, [[1, 2]])
    written.unregister(1)
    if fatal:
        written.write("topic_removed", "t", topic="t", why=FATAL)
    written.alter("t", 0, [2], leader_epoch=1, partition_epoch=1)
    if fatal:
        written.create(f"{FATAL}-2", [[2]])
    return written.events


def in_batches(events: list[Event], cuts: list[int]) -> tuple[bytes | None, list[Decision]]:
    state, decisions = None, []
    for start, end in zip([0, *cuts], [*cuts, len(events)], strict=True):
        if start < end:
            state, found = fold_state(0, state, events[start:end])
            decisions += found
    return state, decisions


def without_offsets(decisions):
    """What was decided, numbered by place; request ids carry offsets."""
    return [
        (one.kind, one.body)
        for one in decisions
        if one.kind not in (DecisionKind.SET_ASIDE, DecisionKind.REPLY)
    ]


def test_the_failing_events_are_set_aside_and_the_others_decided_as_without_them(failing):
    state, decisions = in_batches(story(fatal=True), [])
    clean_state, clean = in_batches(story(fatal=False), [])
    assert state == clean_state
    assert without_offsets(decisions) == without_offsets(clean)
    aside = [one for one in decisions if one.kind is DecisionKind.SET_ASIDE]
    assert [one.offset for one in aside] == [4, 6, 8]
    first = orjson.loads(aside[0].body)
    assert first["reason"] == "ZeroDivisionError: on 4"
    assert (first["kind"], first["key"]) == ("create_topic_requested", FATAL)


def test_every_way_to_cut_the_batch_decides_the_same(failing):
    events = story(fatal=True)
    whole = in_batches(events, [])

    @given(cuts=st.sets(st.integers(1, len(events) - 1)))
    def any_cuts(cuts: set[int]) -> None:
        assert in_batches(events, sorted(cuts)) == whole

    any_cuts()
    assert in_batches(events, list(range(1, len(events)))) == whole


def test_a_failure_on_the_very_first_event_leaves_a_new_machine(failing):
    event = Event(0, 1, "topic_removed", FATAL, orjson.dumps({"topic": FATAL}))
    state, (aside,) = fold_state(0, None, [event])
    assert aside.kind is DecisionKind.SET_ASIDE
    assert state == fold_state(0, None, [])[0]


def test_a_failure_among_many_events_does_not_encode_the_state_for_each(failing, monkeypatch):
    written = Story()
    written.elect({1: 11, 2: 12})
    for number in range(100):
        written.create(FATAL if number == 70 else f"t{number}", [[1, 2]])
    encoded = []

    def noted(machine):
        encoded.append(1)
        return encode_machine(machine)

    monkeypatch.setattr(fold_module, "encode_machine", noted)
    _, decisions = fold_state(0, None, written.events)
    assert [one.kind for one in decisions].count(DecisionKind.SET_ASIDE) == 1
    assert len(encoded) < 15
