"""An event that holds what nobody writes is set aside by its reader, or folds: no machine fails."""

from __future__ import annotations

from functools import reduce
from operator import getitem
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from checkpoints.machine_format import decode_machine, encode_machine
from state.errors import MalformedEvent
from state.event_kinds import EventKind
from state.events import Event, parse_payload
from state.limits import PARTITIONS_MAX, REPLICAS_MAX
from state.routing import CLUSTER_KEY, GROUP_KEY
from state.step import fold, new_machine
from tests.fixtures.documented_events import assert_documented
from tests.fixtures.json_places import Place, places, replaced
from tests.logs.one_of_each import CLUSTER, EXAMPLES

WEIRD: tuple[Any, ...] = (
    None,
    True,
    *(0, 1, 5, -1, -2, 300, PARTITIONS_MAX + 1, 3_000_000_000),
    *(2**31 - 1, 2**31, -(2**31) - 1, 2**63 - 1, 2**63, -(2**63), 2**64 - 1),
    *(1.5, -0.0, 1e300, 1e20),
    *("", "x", "-1", "t", "NaN", "9" * 30, "9" * 5_000, "\u0000", "../..", "\u0663"),
    *([], [[]], [None], [-1], [1, 1, 1], [2**31], [-5, 1], ["a"], [1.5], [True]),
    *([[1, 1]], [[-1, 2]], [[], [1]], [[2**31 - 1]], [[[1]]], [{}]),
    list(range(300)),
    list(range(REPLICAS_MAX + 1)),
    *({}, {"0": [1]}, {"-1": [1]}, {"a": 1}, {"1": 2**63}, {"9" * 30: [1]}),
)
MACHINES = (0, CLUSTER_KEY, GROUP_KEY)
START = len(CLUSTER)
NEXT: tuple[tuple[str, str, dict[str, Any]], ...] = (
    ("cluster_config_changed", "", {"config": {"controlled.shutdown.safety.check.enable": True}}),
    ("controlled_shutdown_requested", "", EXAMPLES[EventKind.CONTROLLED_SHUTDOWN_REQUESTED][0][1]),
    ("broker_registrations_changed", "", {"unregistered": [1]}),
    ("timer_due", "", {"timer": "leader_rebalance", "deadline_ms": 6_004}),
    ("transaction_completed", "", EXAMPLES[EventKind.TRANSACTION_COMPLETED][0][1]),
)
"""What looks at everything a machine holds."""


def events(bodies: Any, start: int) -> list[Event]:
    return [
        Event(offset, 1_000 + offset, str(kind), key, orjson.dumps(body))
        for offset, (kind, key, body) in enumerate(bodies, start)
    ]


def prepared() -> dict[int, bytes]:
    machines = {key: new_machine(key) for key in MACHINES}
    for key, machine in machines.items():
        of_groups = [one for one in CLUSTER if "group" in one[0]]
        others = [one for one in CLUSTER if "group" not in one[0]]
        fold(machine, events(of_groups if key == GROUP_KEY else others, 0))
    return {key: encode_machine(machine) for key, machine in machines.items()}


PREPARED = prepared()


WIDE_OF_ROW = (2, 5, 6, 7)
"""Offset, commit_ms, expire_ms and position in a row of offsets."""
WIDE_FIELDS = {"broker_epoch", "producer_id", "block_end"}
WIDE_PLACES: dict[EventKind, set[Place]] = {
    EventKind.BROKER_REGISTRATIONS_CHANGED: {
        (brokers, 0, "epoch") for brokers in ("registered", "bounced", "updated")
    },
    EventKind.OFFSET_COMMIT_REQUESTED: {("offsets", 0, 2)},
    EventKind.TXN_OFFSET_COMMIT_REQUESTED: {("offsets", 0, 2)},
    EventKind.OFFSETS_APPENDED: {("offsets", 0, at) for at in (2, 5)},
    EventKind.GROUP_OBSERVED: {
        ("pending", 0, 0),
        *(("offsets", 0, at) for at in WIDE_OF_ROW),
        *(("pending", 0, 1, 0, at) for at in WIDE_OF_ROW),
    },
    EventKind.GROUP_RECORDS_REFUSED: {
        ("write", 0),
        *(("offsets", 0, 2, at) for at in WIDE_OF_ROW),
    },
    EventKind.GROUP_RECORDS_OVERTAKEN: {
        ("write", 0),
        *(("offsets", 0, at) for at in WIDE_OF_ROW),
    },
    EventKind.HEARTBEATS_RECEIVED: {("heartbeats", 0, 4)},
    EventKind.LOG_ENDS_REPORTED: {("logs", 0, at, 2) for at in (0, 1)},
    EventKind.ELECT_LEADERS_REQUESTED: {("logs", 0, at, 2) for at in (0, 1)},
}
"""What else docs/event-log.md gives 64 bits than times and intervals, which say their unit."""


def is_wide(kind: EventKind, place: Place) -> bool:
    name = str(place[-1])
    return (
        name in WIDE_FIELDS or name.endswith(("_ms", ".ms")) or place in WIDE_PLACES.get(kind, ())
    )


def held(body: dict[str, Any], place: Place) -> Any:
    return reduce(getitem, place, body)


RETURNED = {"replies", "undo"}
"""What comes back as a decision gave it, and is not opened by the reader."""


def fold_everywhere(told: list[Event]) -> None:
    """Fold events into copies of the prepared machines, each of which is stored in between."""
    for prepared_state in PREPARED.values():
        state = prepared_state
        for event in told:
            machine = decode_machine(state)
            fold(machine, [event])
            state = encode_machine(machine)


def test_there_is_an_example_of_each_kind() -> None:
    assert EXAMPLES.keys() == set(EventKind)
    for kind, examples in EXAMPLES.items():
        for key, body in examples:
            [event] = events([(kind, key, body)], START)
            parse_payload(event)
            assert_documented(kind, body)
            fold_everywhere([event, *events(NEXT, START + 1)])


@pytest.mark.parametrize("kind", [kind for kind in EventKind if EXAMPLES[kind][0][1]])
@given(data=st.data())
def test_no_machine_fails_at_a_weird_field(kind: EventKind, data: st.DataObject) -> None:
    key, body = data.draw(st.sampled_from(EXAMPLES[kind]))
    place = data.draw(st.sampled_from(list(places(body, RETURNED))))
    weird = replaced(body, place, data.draw(st.sampled_from(WEIRD)))
    [event] = events([(kind, key, weird)], START)
    try:
        parse_payload(event)
    except MalformedEvent:
        return
    fold_everywhere([event, *events(NEXT, START + 1)])


@pytest.mark.parametrize(
    ("kind", "place", "value"),
    [
        (EventKind.LOG_DIR_FAILURE_NOTIFIED, ("broker_ids", 0), 3_000_000_000),
        (EventKind.BROKER_REGISTRATIONS_CHANGED, ("registered", 0, "id"), 3_000_000_000),
        (EventKind.BROKER_REGISTRATIONS_CHANGED, ("unregistered", 0), 2**31),
        (EventKind.BROKER_REGISTRATIONS_CHANGED, ("registered", 0, "endpoints", 0), [[1, 1]]),
        (EventKind.TOPIC_CONFIG_CHANGED, ("min_insync_replicas",), 3_000_000_000),
        (EventKind.CLUSTER_CONFIG_CHANGED, ("config", "min.insync.replicas"), 3_000_000_000),
        (EventKind.CLUSTER_CONFIG_CHANGED, ("config", "leader.deprioritized.list"), "1,,2"),
        (EventKind.CREATE_TOPIC_REQUESTED, ("configs", "min.insync.replicas"), "3000000000"),
        (EventKind.CREATE_TOPIC_REQUESTED, ("assignment",), {"0": [1, 2**31]}),
        (EventKind.CREATE_TOPIC_REQUESTED, ("partitions",), PARTITIONS_MAX + 1),
        (EventKind.CREATE_PARTITIONS_REQUESTED, ("partitions",), PARTITIONS_MAX + 1),
        (EventKind.ALTER_PARTITION_REQUESTED, ("version",), -(2**63)),
        (EventKind.ALTER_PARTITION_REQUESTED, ("broker_epoch",), 2**63),
        (EventKind.ALTER_PARTITION_REQUESTED, ("partitions", 0, "isr"), [1, -1]),
        (EventKind.ALTER_PARTITION_REQUESTED, ("partitions", 0, "isr"), [1, 1]),
        (
            EventKind.ALTER_PARTITION_REQUESTED,
            ("partitions", 0, "isr"),
            list(range(REPLICAS_MAX + 1)),
        ),
        (EventKind.LEADER_IMBALANCE_REPORTED, ("proposals", 0, 1), -(2**63)),
        (EventKind.TOPIC_OBSERVED, ("replicas", 0), list(range(REPLICAS_MAX + 1))),
        (EventKind.TOPIC_OBSERVED, ("replicas", 0), [-5, 2]),
        (EventKind.TOPIC_OBSERVED, ("states", 0, 2), [-1, 2]),
        (EventKind.TOPIC_OBSERVED, ("states", 0, 2), [1.9]),
        (EventKind.PARTITION_STATES_OBSERVED, ("states", 0, 2), list(range(REPLICAS_MAX + 1))),
    ],
)
def test_the_reader_refuses(kind: EventKind, place: Place, value: Any) -> None:
    key, body = EXAMPLES[kind][0]
    [event] = events([(kind, key, replaced(body, place, value))], START)
    with pytest.raises(MalformedEvent):
        parse_payload(event)


@pytest.mark.parametrize("kind", EventKind)
def test_what_the_specification_gives_32_bits_has_no_more(kind: EventKind) -> None:
    for key, body in EXAMPLES[kind]:
        for place in places(body, {*RETURNED, "endpoints"}):
            if type(held(body, place)) is not int:
                continue
            [event] = events([(kind, key, replaced(body, place, 2**31))], START)
            if is_wide(kind, place):
                parse_payload(event)
            else:
                with pytest.raises(MalformedEvent):
                    parse_payload(event)


@pytest.mark.parametrize("kind", EventKind)
@pytest.mark.parametrize("other", [0, 1, "", "false", []])
def test_a_flag_is_true_or_false(kind: EventKind, other: Any) -> None:
    for key, body in EXAMPLES[kind]:
        for place in places(body, RETURNED):
            if type(held(body, place)) is bool:
                [event] = events([(kind, key, replaced(body, place, other))], START)
                with pytest.raises(MalformedEvent):
                    parse_payload(event)


@pytest.mark.parametrize(
    ("kind", "place", "value"),
    [
        (EventKind.OFFSET_COMMIT_REQUESTED, ("retention_ms",), 2**63 - 1),
        (EventKind.TXN_OFFSET_COMMIT_REQUESTED, ("verification_error",), 9_999),
        (EventKind.GROUP_RECORDS_REFUSED, ("error",), 9_999),
        (EventKind.ALTER_PARTITION_REQUESTED, ("partitions", 0, "isr"), list(range(REPLICAS_MAX))),
        (EventKind.CREATE_TOPIC_REQUESTED, ("assignment",), {"0": list(range(REPLICAS_MAX + 1))}),
        (EventKind.ALTER_REASSIGNMENTS_REQUESTED, ("targets", 0), list(range(REPLICAS_MAX + 1))),
    ],
)
def test_what_is_readable_folds(kind: EventKind, place: Place, value: Any) -> None:
    for key, body in EXAMPLES[kind]:
        [event] = events([(kind, key, replaced(body, place, value))], START)
        parse_payload(event)
        fold_everywhere([event, *events(NEXT, START + 1)])
