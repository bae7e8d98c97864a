"""Finds removals of replicas and topics that brokers may have missed.

Everything else that a broker may have missed follows from the image. These are found in the
decision log, and sent again where they still hold: by the image or, of what it does not have (in
doubt, to be read again, in deletion, gone), by what ZooKeeper holds.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from state.decisions import Action, DecisionKind, acts
from state.matrix import unpad
from state.merge import MergedDecision
from state.partitions.changes import EPOCH_DURING_DELETE
from streaming.image.cluster_image import ClusterImage
from streaming.log.api import LogError, LogReader
from streaming.log.decision_writer import record_id
from streaming.log.recorded import first_where
from streaming.sinks.batch import PARTITION_CHANGES, SinkDecision, opened
from streaming.sinks.independent_stops import may_go
from streaming.sinks.stored_topics import StoredTopic, StoredTopics

logger = logging.getLogger(__name__)

_UNREAD = (
    "brokers may keep replicas that were moved away and topics that are gone: of what was decided "
    "from event %d on, some cannot be read: %s"
)


def missed_removals(
    reader: LogReader,
    events: Iterable[range],
    image: ClusterImage,
    stored: Callable[[Sequence[str]], StoredTopics],
) -> list[SinkDecision]:
    """Return the decisions on these events by which replicas or topics went, reduced to the rows
    that still hold; those before a place of the log that cannot be read. events: in order.

    A replica that is assigned again is there to stay, and a topic that exists again too.
    stored: reads topics in ZooKeeper.
    """
    found: list[SinkDecision] = []
    known = _Known(image, stored)
    for looked_at in events:
        try:
            found.extend(_that_hold(reader, looked_at, known))
        except (LogError, OSError) as error:
            # A job that does not start harms the whole cluster, what is left takes up space.
            logger.error(_UNREAD, looked_at.start, error)
            break
    return found


def _that_hold(reader: LogReader, events: range, known: _Known) -> Iterator[SinkDecision]:
    for decided in _decided_on(reader, events):
        (one,) = opened([decided])  # one at a time: there may be days of them
        stops = one.kind is DecisionKind.STOP_REPLICAS
        holds = _stops_that_hold(one, known) if stops else _topics_that_are_gone(one, known)
        one.lost |= ~holds
        if holds.any():
            yield one


def removes(one: SinkDecision) -> bool:
    """Return whether a replica or a topic goes by a decision."""
    if one.kind is DecisionKind.STOP_REPLICAS:
        return bool(one.columns["delete"].any())
    return one.kind is DecisionKind.CHANGE_PARTITIONS and bool(
        acts(one.columns, Action.DELETED).any()
    )


@dataclass(slots=True)
class _Known:
    """The image, and the topics that were read in ZooKeeper so far, each once."""

    image: ClusterImage
    read: Callable[[Sequence[str]], StoredTopics]
    _stored: dict[str, StoredTopic | None] = field(default_factory=dict)
    _asked: set[str] = field(default_factory=set)

    def look_at(self, names: Iterable[str]) -> None:
        """Read topics together."""
        fresh = sorted({*names} - self._asked)
        if fresh:
            self._asked.update(fresh)
            self._stored.update(self.read(fresh))

    def is_gone(self, name: str) -> bool:
        """Return whether a topic that was looked at is not in ZooKeeper."""
        return name in self._stored and self._stored[name] is None

    def may_lose(self, name: str, topic_id: str | None, partition: int, broker: int) -> bool:
        """Return whether a broker has no business with a partition of a topic that was looked at:
        the topic is gone, or it is the one with that id and neither lists nor needs the broker.
        """
        topic = self._stored.get(name)
        return self.is_gone(name) or (
            topic is not None and topic.may_lose(topic_id, partition, broker)
        )

    def row(self, name: str, partition: int) -> int | None:
        """Return where the image has a partition."""
        rows = self.image.rows_of(name)
        if rows.start == rows.stop:  # it may have no columns
            return None
        found = np.flatnonzero(self.image.columns["partition"][rows] == partition)
        return rows.start + int(found[0]) if len(found) else None


def _decided_on(reader: LogReader, events: range) -> Iterator[MergedDecision]:
    # Ids rise.
    start = first_where(reader, lambda record: record_id(record).event_offset >= events.start)
    for record in reader.read(start, reader.end_offset()):
        id_ = record_id(record)
        if id_.event_offset >= events.stop:
            return
        if record.kind in PARTITION_CHANGES:
            kind = DecisionKind(record.kind)
            yield MergedDecision(id_.event_offset, id_.ordinal, kind, record.payload)


def _stops_that_hold(stops: SinkDecision, known: _Known) -> npt.NDArray[np.bool_]:
    """Return bool[n]: the replica is to be deleted, and its broker is none of the partition's and
    not needed by it: the stop may be of a write that was lost. It is decided again when it is due.

    A stop without an epoch was decided with a deletion, and holds for no topic that the image has.
    What a topic in deletion lists the machines know until it is done.
    """
    columns, image = stops.columns, known.image
    holds: npt.NDArray[np.bool_] = columns["delete"].copy()
    at = np.flatnonzero(holds).tolist()
    topics = [int(columns["topic"][row]) for row in at]
    places = [
        (stops.topics[topic], int(columns["partition"][row]))
        for topic, row in zip(topics, at, strict=True)
    ]
    rows = [known.row(*place) for place in places]
    known.look_at(name for (name, _), row in zip(places, rows, strict=True) if row is None)
    for stop, topic, (name, partition), row in zip(at, topics, places, rows, strict=True):
        broker, topic_id = int(columns["broker"][stop]), stops.topic_ids[topic]
        if row is None:
            holds[stop] = known.may_lose(name, topic_id, partition, broker)
        else:
            has_epoch = columns["leader_epoch"][stop] != EPOCH_DURING_DELETE
            same = image.topic_ids.get(name) == topic_id
            holds[stop] = has_epoch and same and _may_go_from(image, row, broker)
    return holds


def _may_go_from(image: ClusterImage, row: int, broker: int) -> bool:
    listed, isr = (unpad(image.columns[name][row]) for name in ("replicas", "isr"))
    leader = int(image.columns["leader"][row])
    return broker not in listed and may_go(broker, listed, leader, isr)


def _topics_that_are_gone(changes: SinkDecision, known: _Known) -> npt.NDArray[np.bool_]:
    """Return bool[n]: the row says that its topic goes, and there is none of that name."""
    deleted = acts(changes.columns, Action.DELETED)
    if not deleted.any():  # as with nearly all, of which there may be days
        return deleted
    image = known.image
    named = {changes.topics[topic] for topic in np.unique(changes.columns["topic"][deleted])}
    unknown = {name for name in named if name not in image.topic_ids and name not in image.deleting}
    known.look_at(unknown)
    gone = [name in unknown and known.is_gone(name) for name in changes.topics]
    holds: npt.NDArray[np.bool_] = deleted & np.array(gone, dtype=bool)[changes.columns["topic"]]
    return holds
