"""Stops that stand although the partition's state that was decided with them was not written.

A broker that the topic's written assignment no longer lists has to delete its replica whatever
becomes of the state, as with Kafka's controller, which reads the state again and goes on. The
correction of the state cannot name it: it knows what the topic lists. One that the stored ISR has
is left to the correction, which takes it out of there first (`states.drop_unlisted`): the data may
be nowhere else.

The leader epoch of such a stop was not written either. It is the one that the machine had raised
for it: at least that of the stored state, so no broker takes the stop for an old one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
import numpy.typing as npt
import orjson

from state.bodies import RewriteAssignment
from state.decisions import DecisionKind
from state.event_kinds import EventKind
from streaming.log.api import LogRecord, NewRecord
from streaming.sinks.batch import SinkDecision

Assignments = Mapping[tuple[int, str], Mapping[str, list[int]]]
"""The replicas of a topic's partitions, by number, as an event on a topic rewrote them."""

InSync = Mapping[tuple[str, int | None], list[int] | None]
"""The stored ISRs of partitions whose state was not written; None where it cannot be read."""


def written_assignments(decisions: Iterable[SinkDecision]) -> Assignments:
    """Return what topics' assignments were rewritten to; those whose write failed are left out."""
    found: dict[tuple[int, str], Mapping[str, list[int]]] = {}
    for one in decisions:
        if one.kind is DecisionKind.REWRITE_ASSIGNMENT and not one.failed:
            body: RewriteAssignment = one.extra
            found[one.offset, body["topic"]] = body["assignment"]
    return found


def standing_stops(
    decision: SinkDecision, written: Assignments, in_sync: InSync
) -> npt.NDArray[np.bool_]:
    """Return bool[n]: the row stands whatever becomes of its partition's state."""
    stands = np.zeros(len(decision.lost), dtype=bool)
    if decision.kind is not DecisionKind.STOP_REPLICAS or not written:
        return stands
    columns, names = decision.columns, decision.topics
    for at in np.flatnonzero(columns["delete"]).tolist():
        topic, partition = names[columns["topic"][at]], int(columns["partition"][at])
        broker = int(columns["broker"][at])
        listed = written.get((decision.offset, topic), {}).get(str(partition))
        isr = in_sync.get((topic, partition), [])
        if listed is not None and isr is not None:
            stands[at] = broker not in listed and broker not in isr
    return stands


def stored_isrs(correction: NewRecord | LogRecord) -> InSync:
    """Return the ISRs that an event says are stored."""
    if correction.kind != EventKind.PARTITION_STATES_OBSERVED:
        return {}
    body = orjson.loads(correction.payload)
    states = zip(body["partitions"], body["states"], strict=True)
    return {(body["topic"], partition): state[2] if state else None for partition, state in states}
