"""Deletes topics in ZooKeeper, children first and the mark last, fenced like every write."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence

from streaming.sinks.batch import DecidedBatch, SinkDecision
from streaming.zk.chain import OutcomeKind
from streaming.zk.client import ZkSession
from streaming.zk.fenced import FencedWriter
from streaming.zk.multiread import children_many, read_many
from streaming.zk.ops import Delete
from streaming.zk.znodes.paths import entity_config_path, topic_deletion_path, topic_path
from streaming.zk.znodes.topic import parse_topic

logger = logging.getLogger(__name__)

_ATTEMPTS = 5


def delete_topics(
    session: ZkSession, writer: FencedWriter, batch: DecidedBatch, decisions: Sequence[SinkDecision]
) -> None:
    """Make delete_topic decisions that follow one another true, and note those that failed.

    What is gone already counts as deleted, so that repeating this after a crash does no harm. Where
    somebody creates znodes below a topic meanwhile it is listed again, a few times. A topic that
    cannot be deleted keeps its mark: the next controller finds it.
    """
    waiting = [one for one in _still_ours(session, decisions) if not one.failed]
    for _ in range(_ATTEMPTS):
        waiting = _delete(session, writer, batch, waiting)
        if not waiting:
            return
    for one in waiting:
        logger.error("topic %s could not be deleted in ZooKeeper", one.extra["topic"])
        one.failed = True


def _still_ours(session: ZkSession, decisions: Sequence[SinkDecision]) -> list[SinkDecision]:
    """Return the decisions whose topic has no znode any more or is the one that was meant."""
    paths = [topic_path(one.extra["topic"]) for one in decisions]
    found = read_many(session, paths).data
    return [one for one, data in zip(decisions, found, strict=True) if _is_ours(one, data)]


def _is_ours(decision: SinkDecision, data: bytes | None) -> bool:
    if data is None:
        return True
    if decision.extra["leftovers"]:
        return False
    try:
        topic_id = parse_topic(data).topic_id
    except ValueError as error:
        logger.error("topic %s is not deleted: %s", decision.extra["topic"], error)
        return False
    return bool(topic_id == decision.extra["topic_id"])


def _delete(
    session: ZkSession, writer: FencedWriter, batch: DecidedBatch, decisions: list[SinkDecision]
) -> list[SinkDecision]:
    """Delete what there is; return the decisions that have to be tried again."""
    below = _below(session, [topic_path(one.extra["topic"]) for one in decisions])
    ops = [
        (one, Delete(path))
        for one, paths in zip(decisions, below, strict=True)
        for path in (*paths, *_own_paths(one.extra["topic"]))
    ]
    again: dict[int, SinkDecision] = {}
    for (one, op), outcome in zip(ops, writer.write([op for _, op in ops]), strict=True):
        if outcome.kind is OutcomeKind.FENCED:
            batch.fenced.add(one.extra["epoch_zk_version"])
            one.failed = True
        elif outcome.kind is not OutcomeKind.WRITTEN:
            logger.warning("%s: %s %s", op.path, outcome.kind, outcome.reason)
            again[id(one)] = one
    return [one for one in again.values() if not one.failed]


def _own_paths(topic: str) -> Iterator[str]:
    yield topic_path(topic)
    yield entity_config_path("topics", topic)
    yield topic_deletion_path(topic)


def _below(session: ZkSession, roots: Sequence[str]) -> list[list[str]]:
    """Return everything below each root, the deepest first."""
    found: list[list[str]] = [[] for _ in roots]
    level = list(enumerate(roots))
    while level:
        listed = children_many(session, [path for _, path in level])
        level = [
            (root, f"{path}/{name}")
            for (root, path), names in zip(level, listed, strict=True)
            for name in sorted(names or ())
        ]
        for root, path in level:
            found[root].append(path)
    return [paths[::-1] for paths in found]
