"""Merges blocks of one kind: the last row of each partition is kept of changes, for the recipients
of all its rows, and the last row of each replica of stops.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from state.block_topics import common_topics, partition_keys
from state.blocks import Column
from state.change_columns import stack_column
from state.decisions import Action
from state.matrix import NONE
from streaming.sinks.batch import SinkDecision

_DELETED = np.uint8(Action.DELETED)

MergedBlock = tuple[dict[str, Column], list[str], list[str | None]]
"""Columns, topics and topic ids."""


def merge_changes(decisions: Sequence[SinkDecision]) -> MergedBlock | None:
    """Return (columns, topics, topic ids) of the rows that were persisted, sorted by topic and
    partition.

    columns are those of change_partitions; of several rows for one partition the last stays, its
    actions and its recipients being those of all, and its leader before that of the first; whether
    it is being deleted the last one says.
    None when nothing was persisted.
    """
    kept = with_rows(decisions)
    if not kept:
        return None
    columns, topics, topic_ids = stacked_rows(kept)
    if len(kept) > 1:
        columns = _last_rows(columns)
    return columns, topics, topic_ids


def merge_stops(decisions: Sequence[SinkDecision]) -> MergedBlock | None:
    """Return (columns, topics, topic ids) of the stops that hold, sorted by topic and partition.

    columns are those of stop_replicas; of several rows for one replica, with deletion or without,
    the last stays. None when nothing is to be stopped.
    """
    kept = with_rows(decisions)
    if not kept:
        return None
    columns, topics, topic_ids = stacked_rows(kept)
    keys = [columns[name] for name in ("delete", "broker", "partition", "topic")]
    order = np.lexsort(keys)
    ordered = np.stack([key[order] for key in keys])
    last = np.append((ordered[:, 1:] != ordered[:, :-1]).any(axis=0), True)
    at = order[last]
    return {name: column[at] for name, column in columns.items()}, topics, topic_ids


def with_rows(decisions: Sequence[SinkDecision]) -> list[SinkDecision]:
    """Return the blocks of which not all rows are lost."""
    return [one for one in decisions if not one.lost.all()]


def stacked_rows(kept: Sequence[SinkDecision]) -> MergedBlock:
    """Return the rows that are not lost, in the order of the decisions."""
    topics, topic_ids, places = common_topics([(one.topics, one.topic_ids) for one in kept])
    columns = {
        name: stack_column(name, [one.columns[name][~one.lost] for one in kept])
        for name in kept[0].columns
        if name != "topic"
    }
    columns["topic"] = np.concatenate(
        [place[one.columns["topic"]][~one.lost] for one, place in zip(kept, places, strict=True)]
    )
    return columns, topics, topic_ids


def _last_rows(columns: dict[str, Column]) -> dict[str, Column]:
    key = partition_keys(columns)
    order = np.argsort(key, kind="stable")
    ordered = {name: column[order] for name, column in columns.items()}
    starts = np.flatnonzero(np.diff(key[order], prepend=-1))
    last = np.append(starts[1:], len(order)) - 1
    merged = {name: column[last] for name, column in ordered.items()}
    actions = np.bitwise_or.reduceat(ordered["actions"], starts)
    merged["actions"] = actions & ~_DELETED | merged["actions"] & _DELETED
    merged["leader_before"] = ordered["leader_before"][starts]
    told = np.where(ordered["recipients"], ordered["replicas"], NONE)
    merged["recipients"] = _told_to(merged["replicas"], told, starts, len(order))
    return merged


def _told_to(replicas: Column, told: Column, starts: Column, count: int) -> Column:
    """Return which of the last rows' replicas any row of the same partition was addressed to."""
    group = np.zeros(count, dtype=np.intp)
    group[starts[1:]] = 1
    group = np.cumsum(group)
    recipients = np.zeros(replicas.shape, dtype=bool)
    for column in range(told.shape[1]):
        at, broker = group, told[:, column]
        hit = (replicas[at] == broker[:, None]) & (broker != NONE)[:, None]
        np.logical_or.at(recipients, at, hit)
    return recipients
