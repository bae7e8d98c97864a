"""Spreads the topics and the groups of a snapshot over another number of slots.

Decisions do not depend on where a topic or a group is, so the machines go on as if there had always
been that many slots.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from checkpoints.layout import CheckpointMismatch
from checkpoints.machine_format import decode_machine, encode_machine
from checkpoints.snapshot import Snapshot
from state.blocks import decode_block
from state.groups.slot import GroupSlot
from state.partitions.rows import select
from state.partitions.slot import Slot
from state.partitions.table import Columns, PartitionTable, Topic, stack
from state.routing import GROUP_KEY, Layout, topic_scope

_OF_ONE_SLOT = frozenset({"topics", "deletions", "deleted", "unseen", "awaited", "end_rejected"})
"""Header fields of a slot's state that are its own; the others are the same in all slots."""
T = TypeVar("T")
_DISAGREEMENT = (
    "the slots do not agree about the cluster; rebuild them from the log "
    "(helmstream checkpoint rebuild)"
)


def reslot(snapshot: Snapshot, layout: Layout) -> Snapshot:
    """Return the same machines with their topics and groups spread over other slots.

    Raises CheckpointMismatch when the slots do not agree about what all of them know, which only an
    event that failed in one of them leaves behind.
    """
    states = dict(snapshot.states)
    machines = {key: decode_machine(data) for key, data in sorted(states.items())}
    if layout.slots != snapshot.layout.slots:
        old = {key: one for key, one in machines.items() if isinstance(one, Slot)}
        for key in old:
            del states[key]
        _check_agreement(old.values())
        spread = _spread(list(old.values()), layout.slots) if old else []
        states |= {key: encode_machine(slot) for key, slot in enumerate(spread)}
    if layout.group_slots != snapshot.layout.group_slots:
        groups = {key: one for key, one in machines.items() if isinstance(one, GroupSlot)}
        for key in groups:
            del states[key]
        moved = _spread_groups(list(groups.values()), layout.group_slots) if groups else []
        states |= {GROUP_KEY + at: encode_machine(slot) for at, slot in enumerate(moved)}
    return Snapshot(snapshot.offset, layout, dict(sorted(states.items())))


def _spread_groups(old: Sequence[GroupSlot], slots: int) -> list[GroupSlot]:
    if any((one.config, one.partitions) != (old[0].config, old[0].partitions) for one in old):
        raise CheckpointMismatch(_DISAGREEMENT)
    stored = {number: data for slot in old for number, data in slot.stored.items()}
    transactional = {number for slot in old for number in slot.transactional}
    return [
        GroupSlot(
            old[0].config,
            dict(old[0].partitions),
            {number: data for number, data in sorted(stored.items()) if number % slots == key},
            {number for number in transactional if number % slots == key},
        )
        for key in range(slots)
    ]


def _check_agreement(slots: Iterable[Slot]) -> None:
    # Written anew: a slot that nothing happened in since is still in the format of another version.
    headers = (decode_block(encode_machine(slot))[1] for slot in slots)
    shared = [
        {name: value for name, value in header.items() if name not in _OF_ONE_SLOT}
        for header in headers
    ]
    if any(one != shared[0] for one in shared):
        raise CheckpointMismatch(_DISAGREEMENT)


def _spread(old: Sequence[Slot], slots: int) -> list[Slot]:
    first = old[0]
    topics = [topic for slot in old for topic in slot.table.topics]
    rows = stack(_numbered([slot.table for slot in old]))
    place = np.array([topic_scope(topic.name) % slots for topic in topics], dtype=np.int64)
    deletions = {name: one for slot in old for name, one in slot.table.deletions.items()}
    deleted = {name: one for slot in old for name, one in slot.table.deleted.items()}
    awaited = {name: None for slot in old for name in slot.table.awaited}
    found = []
    for key in range(slots):
        chosen = np.flatnonzero(place == key)
        found.append(
            Slot(
                first.authority,
                first.config,
                first.brokers,
                PartitionTable(
                    [topics[at] for at in chosen.tolist()],
                    _select(rows, topics, chosen),
                    _of_slot(deletions, key, slots),
                    _of_slot(deleted, key, slots),
                    _of_slot(awaited, key, slots),
                ),
            )
        )
    return found


def _of_slot(by_name: Mapping[str, T], key: int, slots: int) -> dict[str, T]:
    return {name: one for name, one in by_name.items() if topic_scope(name) % slots == key}


def _numbered(tables: Sequence[PartitionTable]) -> list[Columns]:
    """Return each table's rows with the numbers that its topics have among all topics."""
    before = 0
    found = []
    for table in tables:
        found.append(replace(table.rows, topic=table.rows.topic + np.int32(before)))
        before += len(table.topics)
    return found


def _select(rows: Columns, topics: Sequence[Topic], chosen: npt.NDArray[np.intp]) -> Columns:
    numbers = np.full(len(topics), -1, dtype=np.int32)
    numbers[chosen] = np.arange(len(chosen), dtype=np.int32)
    recoded = numbers[rows.topic] if len(rows) else rows.topic
    return select(replace(rows, topic=recoded), recoded >= 0)
