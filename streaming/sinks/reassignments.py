"""What the end of reassignments needs of the writes to ZooKeeper.

A topic's znode says what is in motion until all that ends it is written: whoever takes over before
that goes on with it.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np

from state.bodies import RemoveReassignments, RewriteAssignment
from state.decisions import DecisionKind
from state.payloads.admin import REASSIGN_PARTITIONS_PATH
from state.topic_partition import TopicPartition
from streaming.sinks.batch import TOPIC_WRITES, DecidedBatch, LostWrite, SinkDecision
from streaming.zk.client import ZkSession
from streaming.zk.errors import RequestFailed
from streaming.zk.fenced import FencedWriter
from streaming.zk.ops import Delete, SetData, WriteOp
from streaming.zk.outcomes import OutcomeKind
from streaming.zk.types import ZNode
from streaming.zk.znodes.admin import parse_reassignment, reassignment_bytes

logger = logging.getLogger(__name__)

_ATTEMPTS = 20

Ended = Sequence[tuple[int, list[int] | None]]
"""(partition, the replicas it is asked to have, or None for whatever it is asked to have)."""

EndedOf = tuple[str, Ended]
"""A topic, and what has ended of it."""


def runs(decisions: Sequence[SinkDecision]) -> Iterator[list[SinkDecision]]:
    """Cut decisions where a topic is written again after the end of a reassignment of it, which is
    among the last writes of a run.
    """
    run: list[SinkDecision] = []
    ended: set[str] = set()
    for one in decisions:
        if one.kind is DecisionKind.COMPLETE_REASSIGNMENT:
            ended.add(one.topic)
        elif one.kind in TOPIC_WRITES and one.topic in ended:
            yield run
            run, ended = [], set()
        run.append(one)
    yield run


def hold_back_completions(batch: DecidedBatch, run: Sequence[SinkDecision]) -> None:
    """Let no reassignment end of which a partition was not written: the topic is read again."""
    completed = [one for one in run if one.kind is DecisionKind.COMPLETE_REASSIGNMENT]
    if not completed:
        return
    lost = {
        (one.offset, one.topics[topic])
        for one in run
        if one.kind is DecisionKind.CHANGE_PARTITIONS and one.lost.any()
        for topic in np.unique(one.columns["topic"][one.lost]).tolist()
    }
    rejected = {(one.offset, one.topic): one.rejected for one in batch.rejected}
    for one in completed:
        topic = one.topic
        if not one.failed and (one.offset, topic) in lost:
            one.failed = True
            reason = rejected.get((one.offset, topic), "")
            lost_write = LostWrite(one.offset, one.kind, topic, None, None, rejected=reason)
            batch.lost_writes.append(lost_write)


def ended_requests(batch: DecidedBatch, run: Sequence[SinkDecision]) -> list[EndedOf]:
    """Return what goes out of the request: what has ended, unless its topic's write failed, and
    what ZooKeeper rejects (KafkaController.processZkPartitionReassignment).

    What met other content is asked for again when its topic is read again; what was rejected would
    be rejected without end.
    """
    failed = {(one.offset, one.topic) for one in run if one.kind in TOPIC_WRITES and one.failed}
    rejected = _first_rejected(batch)
    found: list[EndedOf] = []
    for one in run:
        topic = one.content.get("topic")
        is_lost = (one.offset, topic) in failed
        is_rejected = is_lost and rejected.get(topic, one.offset + 1) <= one.offset
        if one.kind is DecisionKind.REMOVE_REASSIGNMENTS and (is_rejected or not is_lost):
            ended: RemoveReassignments = one.content
            found.append((ended["topic"], ended["partitions"]))
        elif one.kind is DecisionKind.REWRITE_ASSIGNMENT and is_rejected:
            found.append((one.topic, _targets(one.content)))
    return found


def _first_rejected(batch: DecidedBatch) -> dict[str | None, int]:
    """Return by topic the first event on which a write of it as a whole was rejected."""
    found: dict[str | None, int] = {}
    for one in batch.rejected:
        if one.partition is None:
            found[one.topic] = min(one.offset, found.get(one.topic, one.offset))
    return found


def _targets(written: RewriteAssignment) -> Ended:
    """Return what the partitions that a topic's write sets in motion end with."""
    adding, removing = written["adding"], written["removing"]
    moving = sorted({*adding, *removing}, key=int)
    return [
        (int(one), [id_ for id_ in written["assignment"][one] if id_ not in removing.get(one, ())])
        for one in moving
    ]


def without(
    asked: Mapping[TopicPartition, list[int]], ended: Iterable[EndedOf]
) -> dict[TopicPartition, list[int]]:
    """Return what is still asked for when partitions of topics have ended."""
    gone = {
        (topic, partition)
        for topic, of_topic in ended
        for partition, replicas in of_topic
        if replicas is None or asked.get((topic, partition)) == replicas
    }
    return {subject: replicas for subject, replicas in asked.items() if subject not in gone}


def remove_ended(session: ZkSession, writer: FencedWriter, ended: Sequence[EndedOf]) -> bool:
    """Take out what has ended; returns False when the writer was fenced.

    The znode is read and written on condition that it did not change meanwhile, as often as
    somebody changes it in between. One that cannot or may not be read is left alone.
    """
    if not ended:
        return True
    session.sync()  # the front may have seen the request at another server
    for _ in range(_ATTEMPTS):
        try:
            znode = session.get(REASSIGN_PARTITIONS_PATH)
        except RequestFailed as error:
            logger.error("what has ended stays asked for: %s", error)
            return True
        op = None if znode is None else _removal(znode, ended)
        if op is None:
            return True
        [outcome] = writer.write([op])
        if outcome.kind is OutcomeKind.REJECTED:
            logger.error("%s keeps what has ended: %s", REASSIGN_PARTITIONS_PATH, outcome.reason)
        if outcome.kind is not OutcomeKind.CONFLICT:
            return outcome.kind is not OutcomeKind.FENCED
    logger.error("%s changes faster than it can be written", REASSIGN_PARTITIONS_PATH)
    return True


def _removal(znode: ZNode, ended: Sequence[EndedOf]) -> WriteOp | None:
    try:
        asked = parse_reassignment(znode.data)
    except ValueError as error:
        logger.warning("%s is left alone: %s", REASSIGN_PARTITIONS_PATH, error)
        return None
    left = without(asked, ended)
    if left == asked:
        return None
    if left:
        return SetData(REASSIGN_PARTITIONS_PATH, reassignment_bytes(left), znode.version)
    return Delete(REASSIGN_PARTITIONS_PATH, znode.version)
