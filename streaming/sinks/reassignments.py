"""What the end of reassignments needs of the writes to ZooKeeper.

A topic's znode says what is in motion until all that ends it is written: whoever takes over before
that goes on with it.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np

from state.decisions import DecisionKind
from state.payloads.admin import REASSIGN_PARTITIONS_PATH
from streaming.sinks.batch import TOPIC_WRITES, DecidedBatch, SinkDecision, WriteConflict
from streaming.zk.chain import OutcomeKind
from streaming.zk.client import ZkSession
from streaming.zk.errors import RequestFailed
from streaming.zk.fenced import FencedWriter
from streaming.zk.ops import Delete, SetData, WriteOp
from streaming.zk.types import ZNode
from streaming.zk.znodes.admin import TopicPartition, parse_reassignment, reassignment_bytes

logger = logging.getLogger(__name__)

_ATTEMPTS = 20

Ended = Sequence[tuple[int, list[int] | None]]
"""(partition, the replicas it is asked to have, or None for whatever it is asked to have)."""


def runs(decisions: Sequence[SinkDecision]) -> Iterator[list[SinkDecision]]:
    """Cut decisions where a topic is written again after the end of a reassignment of it, which is
    among the last writes of a run.
    """
    run: list[SinkDecision] = []
    ended: set[str] = set()
    for one in decisions:
        if one.kind is DecisionKind.COMPLETE_REASSIGNMENT:
            ended.add(one.extra["topic"])
        elif one.kind in TOPIC_WRITES and one.extra["topic"] in ended:
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
        (one.offset, one.extra["topics"][topic])
        for one in run
        if one.kind is DecisionKind.CHANGE_PARTITIONS and one.lost.any()
        for topic in np.unique(one.columns["topic"][one.lost]).tolist()
    }
    rejected = {(one.offset, one.topic): one.rejected for one in batch.rejected}
    for one in completed:
        topic = one.extra["topic"]
        if not one.failed and (one.offset, topic) in lost:
            one.failed = True
            reason = rejected.get((one.offset, topic), "")
            conflict = WriteConflict(one.offset, one.kind, topic, None, None, rejected=reason)
            batch.conflicts.append(conflict)


def ended_requests(run: Sequence[SinkDecision]) -> list[SinkDecision]:
    """Return the removals of requests, without those of topics whose write failed."""
    failed = {
        (one.offset, one.extra["topic"]) for one in run if one.kind in TOPIC_WRITES and one.failed
    }
    return [
        one
        for one in run
        if one.kind is DecisionKind.REMOVE_REASSIGNMENTS
        and (one.offset, one.extra["topic"]) not in failed
    ]


def without(
    asked: Mapping[TopicPartition, list[int]], ended: Iterable[tuple[str, Ended]]
) -> dict[TopicPartition, list[int]]:
    """Return what is still asked for when partitions of topics have ended."""
    gone = {
        (topic, partition)
        for topic, of_topic in ended
        for partition, replicas in of_topic
        if replicas is None or asked.get((topic, partition)) == replicas
    }
    return {subject: replicas for subject, replicas in asked.items() if subject not in gone}


def remove_ended(
    session: ZkSession, writer: FencedWriter, decisions: Sequence[SinkDecision]
) -> bool:
    """Take out what decisions say has ended; returns False when the writer was fenced.

    The znode is read and written on condition that it did not change meanwhile, as often as
    somebody changes it in between. One that cannot or may not be read is left alone.
    """
    if not decisions:
        return True
    session.sync()  # the front may have seen the request at another server
    for _ in range(_ATTEMPTS):
        try:
            znode = session.get(REASSIGN_PARTITIONS_PATH)
        except RequestFailed as error:
            logger.error("what has ended stays asked for: %s", error)
            return True
        op = None if znode is None else _removal(znode, decisions)
        if op is None:
            return True
        [outcome] = writer.write([op])
        if outcome.kind is OutcomeKind.REJECTED:
            logger.error("%s keeps what has ended: %s", REASSIGN_PARTITIONS_PATH, outcome.reason)
        if outcome.kind is not OutcomeKind.CONFLICT:
            return outcome.kind is not OutcomeKind.FENCED
    logger.error("%s changes faster than it can be written", REASSIGN_PARTITIONS_PATH)
    return True


def _removal(znode: ZNode, decisions: Sequence[SinkDecision]) -> WriteOp | None:
    try:
        asked = parse_reassignment(znode.data)
    except ValueError as error:
        logger.warning("%s is left alone: %s", REASSIGN_PARTITIONS_PATH, error)
        return None
    left = without(asked, ((one.extra["topic"], one.extra["partitions"]) for one in decisions))
    if left == asked:
        return None
    if left:
        return SetData(REASSIGN_PARTITIONS_PATH, reassignment_bytes(left), znode.version)
    return Delete(REASSIGN_PARTITIONS_PATH, znode.version)
