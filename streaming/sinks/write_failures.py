"""Lists what a batch could not write, by name: for replies and the outcome log."""

from __future__ import annotations

from typing import Any

from state.decisions import DecisionKind
from streaming.sinks.batch import DecidedBatch
from streaming.sinks.reports import places


def lost_rows(batch: DecidedBatch) -> list[list[Any]]:
    """Return [event offset, topic, partition] of the changes that were not written, other than
    those before `batch.fenced_until`.
    """
    return [
        [offset, *named]
        for offset, lost in lost_partitions(batch, only_moves=False).items()
        if offset >= batch.fenced_until
        for named in lost
    ]


def rejections(batch: DecidedBatch) -> list[list[Any]]:
    """Return [event offset, topic, partition, reason] of the writes that ZooKeeper rejected; topic
    or partition are null where they are about no single one.
    """
    return [[one.offset, one.topic, one.partition, one.rejected] for one in batch.rejected]


def lost_partitions(batch: DecidedBatch, *, only_moves: bool) -> dict[int, list[list[Any]]]:
    """Return [topic, partition] of lost rows by event offset, all or those with a new leader."""
    found = {}
    for one in batch.of_kind(DecisionKind.CHANGE_PARTITIONS):
        rows = one.lost
        if only_moves:
            rows = rows & (one.columns["leader"] != one.columns["leader_before"])
        if rows.any():
            found[one.offset] = places(one, rows=rows)
    return found
