"""Every event reaches the machines that fold it, and no others."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

import orjson
import pytest

from state.cluster.handlers import CLUSTER_HANDLERS
from state.event_kinds import EventKind
from state.events import Event, parse_payload
from state.groups.buckets import group_bucket
from state.groups.handlers import GROUP_HANDLERS
from state.partitions.handlers import SLOT_HANDLERS
from state.routing import (
    ALL_GROUPS,
    CLUSTER,
    CLUSTER_AND_SLOTS,
    GROUP_SCOPE,
    GROUP_SLOTS,
    Layout,
    machine_keys,
    scope,
    topic_scope,
)
from tests.fixtures.documented_events import PAGE
from tests.logs.one_of_each import EXAMPLES

SCOPES: Mapping[str, Callable[[str], int]] = {
    "the cluster machine and every slot": lambda key: CLUSTER_AND_SLOTS,
    "the cluster machine": lambda key: CLUSTER,
    "the topic's slot": topic_scope,
    "the group's slot": lambda key: GROUP_SCOPE + group_bucket(key),
    "the slot of a bucket": lambda key: GROUP_SCOPE + int(key),
    "every group slot": lambda key: ALL_GROUPS,
}
"""What the headings of docs/event-log.md say of an event with a key."""
OF_UNKNOWN_IDS = {EventKind.ALTER_PARTITION_REQUESTED, EventKind.DELETE_TOPIC_REQUESTED}
"""Slots fold them, but one with an empty key names a topic id that nobody knows."""


def test_which_machines_fold_an_event() -> None:
    assert scope("controller_elected", "") == CLUSTER_AND_SLOTS
    assert scope("producer_ids_requested", "") == CLUSTER
    assert scope("alter_partition_requested", "") == CLUSTER
    assert scope("no_such_kind", "") == CLUSTER
    assert scope("topic_observed", "t") == scope("no_such_kind", "t") >= 0
    three = Layout(3, GROUP_SLOTS)
    assert machine_keys(CLUSTER_AND_SLOTS, three) == (-1, 0, 1, 2)
    assert machine_keys(CLUSTER, three) == (-1,)
    assert machine_keys(7, three) == (1,)


def reached_by(event_scope: int) -> set[str]:
    if event_scope == CLUSTER_AND_SLOTS:
        return {"cluster", "slot"}
    if event_scope == CLUSTER:
        return {"cluster"}
    return {"group slot"} if event_scope == ALL_GROUPS or event_scope >= GROUP_SCOPE else {"slot"}


@pytest.mark.parametrize("kind", EventKind)
def test_an_event_reaches_all_machines_with_a_handler_for_it(kind: EventKind) -> None:
    tables = {"cluster": CLUSTER_HANDLERS, "slot": SLOT_HANDLERS, "group slot": GROUP_HANDLERS}
    for key, body in EXAMPLES[kind]:
        payload = type(parse_payload(Event(0, 0, kind, key, orjson.dumps(body))))
        handled = {name for name, handlers in tables.items() if payload in handlers}
        if kind in OF_UNKNOWN_IDS:
            handled &= {"slot" if key else "cluster"}
        reached = reached_by(scope(kind, key))
        if kind is EventKind.LOG_DIR_FAILURE_NOTIFIED:
            reached -= {"cluster"}  # it changes partitions only
        assert reached == handled


@pytest.mark.parametrize("kind", EventKind)
def test_the_specification_says_which_machines_fold_an_event(kind: EventKind) -> None:
    before = PAGE.read_text("utf-8").partition(f"\n| `{kind}` |")[0]
    folded_by = re.findall(r"^Kinds folded by ([^:;]+)[:;]", before, re.MULTILINE)[-1]
    key = EXAMPLES[kind][0][0]
    assert scope(kind, key) == SCOPES[folded_by](key)
