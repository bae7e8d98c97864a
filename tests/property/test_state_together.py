"""Events that are folded together decide and leave what they do one by one."""

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
from state.protocol_errors import ProtocolError
from state.step import step
from tests.fixtures.states import stored
from tests.fixtures.story import OURSELVES
from tests.unit.state.support import Controller

FIRST_OFFSET = 100
LIVE, DEAD = (1, 2, 3), 4
ID, OTHER_ID = "AAAAAAAAAAAAAAAAAAAAAQ", "AAAAAAAAAAAAAAAAAAAAAg"
TOPICS = 5
STATE = stored(1, [1])

REPLICAS = st.lists(st.sampled_from((*LIVE, DEAD)), min_size=1, max_size=4, unique=True)
SELDOM: st.SearchStrategy[Any] = st.integers(0, 7).map(lambda number: number == 0)


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
    check_alike(controller.states[0], events)


def check_alike(before: bytes, events: list[Event]) -> None:
    together, decisions = fold_state(0, before, events)
    machine = decode_machine(before)
    alone = [decision for event in events for decision in step(machine, event)]
    assert merge(decisions) == merge(alone)
    assert together == encode_machine(machine)


def moving(
    live: tuple[int, ...], targets: list[list[int]], topic_id: str | None = None
) -> Controller:
    """Return a controller of topics t0, t1, ... with a partition for each target list, on brokers 1
    and 2, on its way there; an empty list stays. topic_id: of all of them.
    """
    controller = Controller(live)
    for number in range(TOPICS):
        name = f"t{number}"
        controller.topic(name, [[1, 2] for _ in targets], topic_id=topic_id)
        asked = {at: target for at, target in enumerate(targets) if target}
        controller.move(*asked.values(), topic=name, partitions=[*asked], request_id=None)
    return controller


@st.composite
def alterations(draw: st.DrawFn) -> dict[str, Any]:
    """Draw a request; its epochs are relative to what is right."""
    numbers = draw(st.lists(st.integers(0, 3), unique=True, max_size=3))
    wrong = draw(SELDOM)
    offset = st.sampled_from((-1, 1)) if wrong else st.just(0)
    return {
        "topic": f"t{draw(st.integers(0, TOPICS))}",
        "broker_id": draw(st.sampled_from((1, 1, 1, 2))),
        "broker_epoch": 100 if draw(SELDOM) else None,
        "version": draw(st.sampled_from((3, 2, 1, 0))),
        "partitions": [
            {
                "partition": number,
                "leader_epoch": draw(offset),
                "partition_epoch": draw(offset),
                "recovery": draw(SELDOM) * draw(st.integers(1, 2)),
                "isr": draw(st.lists(st.integers(1, 5), min_size=1, max_size=4, unique=True)),
            }
            for number in numbers
        ],
    }


def as_event(place: int, request: dict[str, Any], controller: Controller) -> Event:
    slot, topic = controller.slot, request["topic"]
    rows, at = slot.table.rows, slot.table.rows_of(topic)
    epoch = request["broker_epoch"] or 100 + request["broker_id"]
    body = request | {"request_id": f"r{place}", "topic_id": None, "broker_epoch": epoch}
    partitions = []
    for one in request["partitions"]:
        known = one["partition"] < len(at)
        row = at[one["partition"]] if known else 0
        right = {
            "leader_epoch": int(rows.leader_epoch[row]) + one["leader_epoch"],
            "partition_epoch": int(rows.zk_version[row]) + one["partition_epoch"],
        }
        partitions.append(one | right)
    payload = orjson.dumps(body | {"partitions": partitions})
    return Event(FIRST_OFFSET + place, 1, "alter_partition_requested", topic, payload)


@given(
    targets=st.lists(st.lists(st.integers(1, 5), max_size=3, unique=True), min_size=1, max_size=3),
    live=st.sampled_from([(1, 2, 3, 4, 5), (1, 2, 3)]),
    requests=st.lists(alterations(), min_size=2, max_size=10),
    deleting=st.booleans(),
)
def test_a_run_of_requests_for_isrs(
    targets: list[list[int]],
    live: tuple[int, ...],
    requests: list[dict[str, Any]],
    deleting: bool,
) -> None:
    controller = moving(live, targets)
    if deleting:
        controller.happen("topic_deletion_requested", "t1", topic="t1")
    events = [as_event(place, one, controller) for place, one in enumerate(requests)]
    check_alike(controller.states[0], events)


def test_leaders_of_many_topics_end_reassignments_together() -> None:
    controller = moving((1, 2, 3), [[1, 3]])
    partition = {"partition": 0, "leader_epoch": 0, "partition_epoch": 0, "isr": [1, 2, 3]}
    request = {"broker_id": 1, "broker_epoch": None, "version": 3, "partitions": [partition]}
    events = [
        as_event(place, request | {"topic": f"t{place}"}, controller) for place in range(TOPICS)
    ]
    _, decisions = fold_state(0, controller.states[0], events)
    kinds = [
        DecisionKind.CHANGE_PARTITIONS,
        DecisionKind.STOP_REPLICAS,
        DecisionKind.COMPLETE_REASSIGNMENT,
        DecisionKind.REMOVE_REASSIGNMENTS,
        DecisionKind.REPLY,
    ]
    assert [(one.offset, one.kind) for one in merge(decisions)] == [
        (event.offset, kind) for event in events for kind in kinds
    ]


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


@st.composite
def deletions(draw: st.DrawFn) -> tuple[str, dict[str, Any]]:
    """Draw one request to delete a topic, or one broker's answer about replicas of one."""
    topic = f"t{draw(st.integers(0, TOPICS))}"
    kind = draw(
        st.sampled_from(("delete_topic_requested", "topic_deletion_requested", *["answer"] * 3))
    )
    if kind != "answer":
        topic_id = OTHER_ID if draw(SELDOM) else draw(st.sampled_from((ID, None)))
        return kind, {"topic": topic, "topic_id": topic_id, "request_id": "r"}
    numbers = draw(st.lists(st.integers(0, 2), min_size=1, max_size=3, unique=True))
    broker = draw(st.sampled_from((1, 1, 2, 3)))
    return "stop_replica_answered", {
        "topic": topic,
        "broker_id": broker,
        "broker_epoch": 100 if draw(SELDOM) else 100 + broker,
        "partitions": numbers,
        "errors": [ProtocolError.KAFKA_STORAGE_ERROR if draw(SELDOM) else 0 for _ in numbers],
    }


@given(
    targets=st.lists(
        st.one_of(st.just([]), st.lists(st.integers(1, 5), max_size=3, unique=True)),
        min_size=1,
        max_size=2,
    ),
    live=st.sampled_from([(1, 2, 3), (1, 2), (1,)]),
    marked=st.sets(st.integers(0, TOPICS - 1)),
    drawn=st.lists(deletions(), min_size=2, max_size=14),
)
def test_a_run_of_deletions(
    targets: list[list[int]],
    live: tuple[int, ...],
    marked: set[int],
    drawn: list[tuple[str, dict[str, Any]]],
) -> None:
    controller = moving(live, targets, ID)
    for number in sorted(marked):
        controller.happen("topic_deletion_requested", f"t{number}", topic=f"t{number}")
    events = [
        Event(FIRST_OFFSET + place, 1, kind, body["topic"], orjson.dumps(body))
        for place, (kind, body) in enumerate(sorted(drawn, key=lambda one: one[0]))
    ]
    check_alike(controller.states[0], events)


def test_a_brokers_answers_about_many_topics_delete_them_together() -> None:
    controller = moving((1, 2), [[]], ID)
    kinds = ("topic_deletion_requested", "stop_replica_answered", "stop_replica_answered")
    events = []
    for round_, kind in enumerate(kinds):
        told = {"broker_id": round_, "broker_epoch": 100 + round_, "partitions": [0], "errors": [0]}
        for number in reversed(range(TOPICS)):
            body = orjson.dumps({"topic": f"t{number}", "topic_id": ID, **told})
            offset = FIRST_OFFSET + len(events)
            events.append(Event(offset, 1, kind, f"t{number}", body))
    check_alike(controller.states[0], events)
    _, decisions = fold_state(0, controller.states[0], events)
    gone = [one for one in decisions if one.kind is DecisionKind.DELETE_TOPIC]
    assert [one.offset for one in gone] == [event.offset for event in events[-TOPICS:]]
