"""Which replicas the LeaderAndIsr requests of a batch call new.

A broker with a failed disk creates a replica that is new on another disk, and refuses one that is
not: it may be on the failed disk, and Kafka does not start with two copies of it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from state.block_topics import partition_keys
from state.blocks import Column
from state.decisions import Action, acts
from state.matrix import Bools, among, contains
from streaming.sinks.batch import SinkDecision
from streaming.sinks.block_merging import stacked_rows, with_rows


def new_replicas(
    changes: Sequence[SinkDecision], introduced: Mapping[int, int], merged: Mapping[str, Column]
) -> Bools:
    """Return which replicas of merged rows are new, bool[n, R].

    introduced: brokers that started in the batch, with the offset of the last event that says so.
    """
    is_new = acts(merged, Action.IS_NEW)
    first = is_new & acts(merged, Action.CREATE)
    # What was added in this batch may have been taken back in it: the others are not new. One that
    # is in sync is not either: it may have restarted in this batch, with a failed disk.
    coming = merged["adding"] & ~contains(merged["isr"], merged["replicas"]) & is_new[:, None]
    if introduced and coming.any():
        coming &= _new_since_start(changes, introduced, merged)
    new: Bools = first[:, None] | coming
    return new


def _new_since_start(
    changes: Sequence[SinkDecision], introduced: Mapping[int, int], merged: Mapping[str, Column]
) -> Bools:
    """Return which replicas of merged rows are new by the first row for their broker since it
    started, or on a broker that did not start in the batch, bool[n, R].

    Rows before that one and after it may say IS_NEW for another replica only.
    """
    kept = with_rows(changes)
    rows, _, _ = stacked_rows(kept)
    offsets = np.concatenate([np.full(np.count_nonzero(~one.lost), one.offset) for one in kept])
    brokers = np.array(sorted(introduced), dtype=np.int32)
    since = np.array([introduced[broker] for broker in brokers.tolist()])
    row, place = np.nonzero(rows["recipients"] & among(rows["replicas"], brokers))
    broker = np.searchsorted(brokers, rows["replicas"][row, place])
    late = offsets[row] >= since[broker]
    row, broker = row[late], broker[late]
    group = np.searchsorted(partition_keys(merged), partition_keys(rows)[row])
    _, first = np.unique(group * len(brokers) + broker, return_index=True)
    first = first[acts(rows, Action.IS_NEW)[row[first]]]
    at = group[first]
    new: Bools = ~among(merged["replicas"], brokers)
    np.logical_or.at(new, at, merged["replicas"][at] == brokers[broker[first]][:, None])
    return new
