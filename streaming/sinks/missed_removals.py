"""Finds removals of replicas and topics that brokers may have missed.

Everything else that a broker may have missed follows from the image. These are found in the
decision log, and sent again where they still hold.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator

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
from streaming.sinks.batch import SinkDecision, opened
from streaming.sinks.independent_stops import may_go

logger = logging.getLogger(__name__)

_UNREAD = (
    "brokers may keep replicas that were moved away and topics that are gone: of what was decided "
    "from event %d on, some cannot be read: %s"
)
_KINDS = frozenset({DecisionKind.STOP_REPLICAS, DecisionKind.CHANGE_PARTITIONS})


def missed_removals(reader: LogReader, events: range, image: ClusterImage) -> list[SinkDecision]:
    """Return the decisions on these events by which replicas or topics went, reduced to the rows
    that still hold; those before a place of the log that cannot be read.

    A replica that is assigned again is there to stay, and a topic that exists again too.
    """
    found = []
    try:
        for decided in _decided_on(reader, events):
            (one,) = opened([decided])  # one at a time: there may be days of them
            stops = one.kind is DecisionKind.STOP_REPLICAS
            holds = _stops_that_hold(one, image) if stops else _topics_that_are_gone(one, image)
            one.lost |= ~holds
            if holds.any():
                found.append(one)
    except (LogError, OSError) as error:
        # A job that does not start harms all of the cluster, what is left behind takes up space.
        logger.error(_UNREAD, events.start, error)
    return found


def _decided_on(reader: LogReader, events: range) -> Iterator[MergedDecision]:
    # Ids rise.
    start = first_where(reader, lambda record: record_id(record).event_offset >= events.start)
    for record in reader.read(start, reader.end_offset()):
        id_ = record_id(record)
        if id_.event_offset >= events.stop:
            return
        if record.kind in _KINDS:
            kind = DecisionKind(record.kind)
            yield MergedDecision(id_.event_offset, id_.ordinal, kind, record.payload)


def _stops_that_hold(stops: SinkDecision, image: ClusterImage) -> npt.NDArray[np.bool_]:
    """Return bool[n]: the replica is to be deleted, and its broker is none of the partition's and
    not needed by it: the stop may be of a write that was lost. It is decided again when it is due.

    What is deleted with its topic the machines know until it is done.
    """
    columns, topics = stops.columns, stops.topics
    if not len(image):  # it may have no columns
        return np.zeros(len(stops.lost), dtype=bool)
    holds: npt.NDArray[np.bool_] = columns["delete"] & (
        columns["leader_epoch"] != EPOCH_DURING_DELETE
    )
    for at in np.flatnonzero(holds).tolist():
        name = topics[columns["topic"][at]]
        same = image.topic_ids.get(name) == stops.topic_ids[columns["topic"][at]]
        rows, broker = image.rows_of(name), int(columns["broker"][at])
        is_named = image.columns["partition"][rows] == columns["partition"][at]
        places = (rows.start + np.flatnonzero(is_named)).tolist()
        holds[at] = same and any(_may_go_from(image, row, broker) for row in places)
    return holds


def _may_go_from(image: ClusterImage, row: int, broker: int) -> bool:
    listed, isr = (unpad(image.columns[name][row]) for name in ("replicas", "isr"))
    leader = int(image.columns["leader"][row])
    return broker not in listed and may_go(broker, listed, leader, isr)


def _topics_that_are_gone(changes: SinkDecision, image: ClusterImage) -> npt.NDArray[np.bool_]:
    """Return bool[n]: the row says that its topic goes, and there is none of that name."""
    names = changes.topics
    known = [name in image.topic_ids or name in image.deleting for name in names]
    gone = ~np.array(known, dtype=bool)
    deleted = acts(changes.columns, Action.DELETED)
    holds: npt.NDArray[np.bool_] = deleted & gone[changes.columns["topic"]]
    return holds
