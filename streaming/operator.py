"""The stateful operator: one state key is one machine, its state one binary value."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import pandas as pd
from pyspark.sql import DataFrame
from pyspark.sql.streaming.state import GroupState, GroupStateTimeout

from checkpoints.fold import fold_state
from checkpoints.packing import packed, unpacked
from state.decisions import Decision
from state.events import Event
from streaming.decided_rows import OUTPUT_SCHEMA, said
from streaming.log.event_rows import events_in
from streaming.process.garbage import collect_rarely
from streaming.router import KEY

STATE_SCHEMA = "data binary"
Fold = Callable[[tuple[Any, ...], Iterator[pd.DataFrame], GroupState], Iterator[pd.DataFrame]]


def decide(routed: DataFrame, fold: Fold | None = None) -> DataFrame:
    """Return the decisions of all machines about routed events, and how far each has folded.

    fold: what is called for each machine, fold_machine by default.
    """
    if routed.sparkSession.conf.get("spark.sql.shuffle.partitions") == "1":
        # The events are where their machines are: a batch without a shuffle is one stage.
        routed = routed.coalesce(1)
    return routed.groupBy(KEY).applyInPandasWithState(
        fold or fold_machine, OUTPUT_SCHEMA, STATE_SCHEMA, "append", GroupStateTimeout.NoTimeout
    )


_collect_rarely_here = cache(collect_rarely)
"""Once in a worker: what a fold makes is in no cycle."""


def fold_machine(
    key: tuple[Any, ...], frames: Iterator[pd.DataFrame], state: GroupState
) -> Iterator[pd.DataFrame]:
    """Fold one machine's events of a micro-batch, in offset order, whatever order they come in."""
    _collect_rarely_here()
    events = events_in(parcel for frame in frames for parcel in frame["events"])
    decisions = _fold(int(key[0]), events, state)
    yield pd.DataFrame({"said": [said(events, decisions)]})


def _fold(key: int, events: list[Event], state: GroupState) -> list[Decision]:
    before = unpacked(bytes(state.get[0])) if state.exists else None
    after, decisions = fold_state(key, before, events)
    if after != before:
        state.update((packed(after),))
    return decisions
