"""The stateful operator: one group is one machine, its state one binary value."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pandas as pd
from pyspark.sql import DataFrame
from pyspark.sql.streaming.state import GroupState, GroupStateTimeout

from checkpoints.fold import fold_state
from state.events import Event
from streaming.router import KEY
from streaming.sinks.batch import FOLDED

OUTPUT_SCHEMA = "offset long, time_ms long, kind string, body binary"
STATE_SCHEMA = "data binary"


def decide(routed: DataFrame) -> DataFrame:
    """Return the decisions of all machines about routed events, and how far each has folded."""
    return routed.groupBy(KEY).applyInPandasWithState(
        fold_machine, OUTPUT_SCHEMA, STATE_SCHEMA, "append", GroupStateTimeout.NoTimeout
    )


def fold_machine(
    key: tuple[Any, ...], frames: Iterator[pd.DataFrame], state: GroupState
) -> Iterator[pd.DataFrame]:
    """Fold one machine's events of a micro-batch, in offset order, whatever order they come in."""
    frame = pd.concat(list(frames)).sort_values("offset")
    events = [
        Event(offset, time_ms, kind, topic, bytes(payload))
        for offset, time_ms, kind, topic, payload in zip(
            frame["offset"].tolist(),
            frame["time_ms"].tolist(),
            frame["kind"],
            frame["key"],
            frame["payload"],
            strict=True,
        )
    ]
    before = bytes(state.get[0]) if state.exists else None
    after, decisions = fold_state(int(key[0]), before, events)
    if after != before:
        state.update((after,))
    times = {event.offset: event.time_ms for event in events}
    last = events[-1]
    rows = [(one.offset, times[one.offset], str(one.kind), one.body) for one in decisions]
    rows.append((last.offset, last.time_ms, FOLDED, b""))
    yield pd.DataFrame(rows, columns=["offset", "time_ms", "kind", "body"])
