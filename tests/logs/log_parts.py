"""What random logs are made of: names, numbers, states, and events that nobody can read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

import numpy as np

from state.matrix import Bools, Int32s, unpad
from state.partitions.legal import ReplicaState
from state.partitions.slot import Slot

BROKERS = (1, 2, 3, 4, 5, 6)
TOPICS = ("a", "b", "c.d", "c_d", "e", "f-0")

T = TypeVar("T")

POISON = (
    ("no_such_kind", "a", b"{}"),
    ("topic_observed", "a", b"{"),
    ("topic_observed", "a", b"[]"),
    ("topic_observed", "b", b'{"topic":"a","partitions":[],"replicas":[]}'),
    ("topic_observed", "a", b'{"topic":"a","partitions":[0,0],"replicas":[[1],[1]]}'),
    ("topic_observed", "a", b'{"topic":"a","partitions":[0],"replicas":[[99999999999]]}'),
    ("topic_observed", "a", b'{"topic":"a","partitions":[-4],"replicas":[[1]]}'),
    ("topic_observed", "", b'{"topic":"a","partitions":[0],"replicas":[[1]]}'),
    (
        "partition_states_observed",
        "a",
        b'{"topic":"a","cause":"x","partitions":[0],"states":[[1]]}',
    ),
    ("broker_registrations_changed", "", b'{"registered":[{"id":"one"}]}'),
    ("cluster_config_changed", "", b'{"config":{"unclean.leader.election.enable":"yes"}}'),
    ("controlled_shutdown_requested", "", b"{}"),
    ("leader_imbalance_reported", "", b'{"preferred":{"x":1},"imbalanced":{}}'),
    ("alter_partition_requested", "a", b'{"topic":"a","partitions":[{}]}'),
    ("create_topic_requested", "e", b'{"topic":"e","request_id":5}'),
    ("topic_deletion_requested", "e", b'{"topic":5}'),
    ("stop_replica_answered", "e", b'{"topic":"e","partitions":[0],"errors":[]}'),
)


def some_of(there: Sequence[T], possible: Sequence[T], number: int) -> T:
    """Return one of what is there or, one time in eight, of all that is possible, by a number from
    0 to 63.
    """
    place, strange = divmod(number, 8)
    options = possible if strange == 7 or not there else there
    return options[place % len(options)]


def chosen(number: int) -> list[int]:
    """Return a set of brokers, ascending, from the bits of a number."""
    return [broker for bit, broker in enumerate(BROKERS) if number >> bit & 1]


def lists_of(replicas: Int32s, mask: Bools) -> list[list[int]]:
    """Return the masked replicas of each row."""
    return [row[held].tolist() for row, held in zip(replicas, mask, strict=True)]


def state_of(slot: Slot, row: int) -> list[Any] | None:
    """Return a row's state tuple, None when it has no state znode."""
    rows = slot.table.rows
    if not rows.has_state[row]:
        return None
    names = ("leader", "leader_epoch", "isr", "controller_epoch", "recovery", "zk_version")
    return [
        unpad(value) if isinstance(value, np.ndarray) else int(value)
        for value in (getattr(rows, name)[row] for name in names)
    ]


def written_by_another(found: list[Any], assigned: list[int], b: int, c: int, d: int) -> list[Any]:
    """Return a state as its leader, or another controller, may have written it over this one.

    Another controller may have elected a replica that is dead by now.
    """
    leader, leader_epoch, isr, controller_epoch, recovery, zk_version = found
    members = [member for member in isr if b >> isr.index(member) & 1 or member == leader] or isr
    if d % 4 == 0:
        return found
    if d % 4 == 1:
        return [leader, leader_epoch, members, controller_epoch, recovery, zk_version + 1]
    members = [member for member in assigned if b >> assigned.index(member) & 1] or assigned
    elected = members[c % len(members)]
    return [elected, leader_epoch + 1, members, controller_epoch, recovery, zk_version + 1 + d % 2]


def deleting(slot: Slot, number: int) -> dict[str, list[int]]:
    """Return the partitions, by topic, whose replica a broker is to delete."""
    rows = slot.table.rows
    told = (rows.replicas == number) & (rows.replica_state == ReplicaState.DELETION_STARTED)
    found: dict[str, list[int]] = {}
    for at in np.flatnonzero(told.any(axis=1)).tolist():
        name = slot.table.topics[int(rows.topic[at])].name
        found.setdefault(name, []).append(int(rows.partition[at]))
    return found
