"""Stops that do not depend on the write of the partition's state that was decided with them.

A broker that the topic's written assignment no longer lists has to delete its replica whatever
becomes of the state, as with Kafka's controller, which reads the state again and goes on. The
correction of the state cannot name it: it knows what the topic lists. One that leads by the stored
state, or is in an ISR of which the topic lists nobody, is left to the correction, which sees it
there (`states.drop_unlisted`): another one has to lead first, and the data may be nowhere else.

The leader epoch of such a stop was not written either. It is the one that the machine had raised
for it: at least that of the stored state, so no broker takes the stop for an old one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import orjson

from state.bodies import RewriteAssignment
from state.decisions import DecisionKind
from state.event_kinds import EventKind
from state.matrix import NONE
from state.payloads.partitions import StateValues
from streaming.log.api import LogRecord, NewRecord
from streaming.sinks.batch import SinkDecision

Assignments = Mapping[tuple[int, str], Mapping[str, list[int]]]
"""The replicas of a topic's partitions, by number, as an event on a topic rewrote them."""

Stored = Mapping[tuple[str, int | None], tuple[int, Sequence[int]] | None]
"""Leader and ISR in stored states of partitions that were not written; None where there is none,
or it cannot be read.
"""


def written_assignments(decisions: Iterable[SinkDecision]) -> Assignments:
    """Return what topics' assignments were rewritten to; those whose write failed are left out."""
    found: dict[tuple[int, str], Mapping[str, list[int]]] = {}
    for one in decisions:
        if one.kind is DecisionKind.REWRITE_ASSIGNMENT and not one.failed:
            body: RewriteAssignment = one.content
            found[one.offset, body["topic"]] = body["assignment"]
    return found


def independent_stops(
    decision: SinkDecision, written: Assignments, stored: Stored
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
        if listed is not None and broker not in listed:
            state = stored.get((topic, partition), (NONE, []))
            stands[at] = state is not None and may_go(broker, listed, *state)
    return stands


def may_go(broker: int, listed: Sequence[int], leader: int, isr: Sequence[int]) -> bool:
    """Return whether a broker is not needed until the state is corrected."""
    return broker not in isr or (broker != leader and not set(listed).isdisjoint(isr))


def stored_states(correction: NewRecord | LogRecord) -> Stored:
    """Return what an event says of states that are stored."""
    if correction.kind != EventKind.PARTITION_STATES_OBSERVED:
        return {}
    body = orjson.loads(correction.payload)
    return {
        (body["topic"], partition): _leader_and_isr(state) if state else None
        for partition, state in zip(body["partitions"], body["states"], strict=True)
    }


def _leader_and_isr(state: Sequence[Any]) -> tuple[int, Sequence[int]]:
    values = StateValues.of_json(state)
    return values.leader, values.isr
