"""Topics that are created together end as they do one by one, by the general rules."""

from __future__ import annotations

from typing import Any

import orjson
from hypothesis import given
from hypothesis import strategies as st

from checkpoints.fold import fold_state
from checkpoints.machine_format import decode_machine, encode_machine
from state.decisions import DecisionKind
from state.events import Event
from state.merge import merge
from state.step import step
from tests.unit.state.support import OURSELVES, Controller

FIRST_OFFSET = 100
LIVE, DEAD = (1, 2, 3), 4
ID, OTHER_ID = "AAAAAAAAAAAAAAAAAAAAAQ", "AAAAAAAAAAAAAAAAAAAAAg"
STATE = [1, 0, [1], 5, 0, 0]

REPLICAS = st.lists(st.sampled_from((*LIVE, DEAD)), min_size=1, max_size=4, unique=True)
SELDOM = st.integers(0, 7).map(lambda number: number == 0)


@st.composite
def topic_observations(draw: st.DrawFn) -> tuple[str, dict[str, Any]]:
    """Draw topic_observed, most of them of a new topic that can be created just so."""
    name = f"t{draw(st.integers(0, 9))}"
    replicas = draw(st.lists(REPLICAS, max_size=4))
    body: dict[str, Any] = {
        "topic": name,
        "topic_id": draw(st.sampled_from((ID, None))),
        "partitions": list(range(len(replicas))),
        "replicas": replicas,
        "unclean": draw(st.sampled_from((None, True))),
        "zk_version": draw(st.integers(0, 2)),
    }
    if draw(SELDOM):
        body["new_topic_id"] = OTHER_ID
    if replicas and draw(SELDOM):
        replicas[0] = [OURSELVES, *replicas[0]]
    if draw(SELDOM):
        body["states"] = [STATE for _ in replicas]
    if replicas and draw(SELDOM):
        body["adding"] = [replicas[0][:1], *([] for _ in replicas[1:])]
    return name, body


@given(
    observed=st.lists(topic_observations(), min_size=2, max_size=12),
    wide=st.booleans(),
    deleting=st.booleans(),
)
def test_a_run_of_new_topics(
    observed: list[tuple[str, dict[str, Any]]], wide: bool, deleting: bool
) -> None:
    controller = Controller(LIVE)
    if wide:
        controller.topic("t0", [[1, 2, 3, DEAD, 5]])
    if deleting:
        controller.happen("topic_deletion_requested", "t1", topic="t1")
    events = [
        Event(FIRST_OFFSET + place, 1, "topic_observed", name, orjson.dumps(body))
        for place, (name, body) in enumerate(observed)
    ]
    before = controller.states[0]
    together, decisions = fold_state(0, before, events)
    machine = decode_machine(before)
    alone = [decision for event in events for decision in step(machine, event)]
    assert merge(decisions) == merge(alone)
    assert together == encode_machine(machine)


def test_new_topics_decide_about_an_event_each() -> None:
    controller = Controller(LIVE)
    body = {"topic_id": None, "partitions": [0], "replicas": [[2, 1]]}
    events = [
        Event(FIRST_OFFSET + at, 1, "topic_observed", name, orjson.dumps(body | {"topic": name}))
        for at, name in enumerate("abc")
    ]
    _, decisions = fold_state(0, controller.states[0], events)
    assert [(one.offset, one.kind) for one in decisions] == [
        (FIRST_OFFSET + at, DecisionKind.CHANGE_PARTITIONS) for at in range(3)
    ]
