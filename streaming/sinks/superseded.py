"""Drops what later decisions of a batch supersede: brokers are sent all of a batch at once."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from state.decisions import DecisionKind
from streaming.sinks.batch import PARTITION_CHANGES, SinkDecision


def without_superseded(decisions: Iterable[SinkDecision]) -> list[SinkDecision]:
    """Return copies of the decisions in which what a later one supersedes is marked as lost."""
    return _not_taken_back(_still_there(list(decisions)))


def _still_there(decisions: list[SinkDecision]) -> list[SinkDecision]:
    """Return the decisions without rows of topics that are forgotten later on: a topic that was
    deleted and created again may have fewer partitions than before.
    """
    forgotten: set[str] = set()
    kept = []
    for one in reversed(decisions):
        if one.kind is DecisionKind.FORGET_TOPIC:
            forgotten.add(one.topic)
        names = one.topics if one.kind in PARTITION_CHANGES else ()
        gone = [at for at, topic in enumerate(names) if topic in forgotten]
        lost = one.lost | np.isin(one.columns["topic"], gone) if gone else one.lost
        kept.append(replace(one, lost=lost))
    return kept[::-1]


def _not_taken_back(decisions: list[SinkDecision]) -> list[SinkDecision]:
    """Return the decisions without the stops of replicas that a later one starts again.

    StopReplica goes out last, and brokers before version 3 of it could not tell an older order.
    """
    stopping = {
        broker
        for one in decisions
        if one.kind is DecisionKind.STOP_REPLICAS
        for broker in np.unique(one.columns["broker"]).tolist()
    }
    started: dict[tuple[str, int, int], int] = {}
    for one in decisions:
        if stopping and one.kind is DecisionKind.CHANGE_PARTITIONS:
            started.update(_starts(one, stopping))
    return [
        replace(one, lost=one.lost | _started_again(one, started))
        if started and one.kind is DecisionKind.STOP_REPLICAS
        else one
        for one in decisions
    ]


def _starts(
    change: SinkDecision, brokers: Collection[int]
) -> Iterator[tuple[tuple[str, int, int], int]]:
    """Yield ((topic, partition, broker), event offset) of what some brokers are told to host."""
    columns, names = change.columns, change.topics
    told = columns["recipients"] & np.isin(columns["replicas"], list(brokers))
    told &= ~change.lost[:, None]
    for row, place in zip(*np.nonzero(told), strict=True):
        topic, partition = names[columns["topic"][row]], int(columns["partition"][row])
        yield (topic, partition, int(columns["replicas"][row, place])), change.offset


def _started_again(
    stops: SinkDecision, started: Mapping[tuple[str, int, int], int]
) -> npt.NDArray[np.bool_]:
    """Return bool[n]: a later event starts the replica again."""
    columns, names = stops.columns, stops.topics
    topics = (names[topic] for topic in columns["topic"].tolist())
    places = zip(topics, columns["partition"].tolist(), columns["broker"].tolist(), strict=True)
    return np.array([started.get(place, -1) > stops.offset for place in places], dtype=bool)
