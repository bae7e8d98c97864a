"""Deletes topics in ZooKeeper, children first and the mark last, fenced like every write."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from state.bodies import DeleteTopic
from state.decisions import DecisionKind
from streaming.sinks.batch import DecidedBatch, SinkDecision
from streaming.zk.client import ZkSession
from streaming.zk.errors import RequestFailed
from streaming.zk.fenced import FencedWriter
from streaming.zk.multiread import children_many, read_each, read_many
from streaming.zk.ops import Delete
from streaming.zk.outcomes import OutcomeKind
from streaming.zk.znodes.paths import entity_config_path, topic_deletion_path, topic_path
from streaming.zk.znodes.topic import parse_topic

logger = logging.getLogger(__name__)

_ATTEMPTS = 5
_REWRITES = frozenset({DecisionKind.REWRITE_ASSIGNMENT, DecisionKind.COMPLETE_REASSIGNMENT})


class _Deleted(NamedTuple):
    """A topic in deletion; leftovers: its znode is gone already. gets_id: a znode without an id may
    be its own, which an earlier write gives the id.
    """

    name: str
    topic_id: str | None
    leftovers: bool = False
    gets_id: bool = False


def delete_topics(
    session: ZkSession, writer: FencedWriter, batch: DecidedBatch, decisions: Sequence[SinkDecision]
) -> None:
    """Make delete_topic decisions that follow one another true, and note those that failed.

    What is gone already counts as deleted, so that repeating this after a crash does no harm. Where
    somebody creates znodes below a topic meanwhile it is listed again, a few times. A topic that
    cannot be deleted, or may not be read, keeps its mark: the next controller finds it.
    """
    meant = _are_meant(session, [_subject(one) for one in decisions])
    _fail_unread(decisions, meant)
    waiting = [one for one in decisions if not one.failed and meant[_subject(one)]]
    for _ in range(_ATTEMPTS):
        if not waiting:
            return
        waiting = _delete(session, writer, batch, waiting)
    for one in waiting:
        logger.error("topic %s could not be deleted in ZooKeeper", one.topic)
        one.failed = True


def without_replaced(session: ZkSession, decisions: Sequence[SinkDecision]) -> list[SinkDecision]:
    """Return decisions without those about a topic before its deletion, if another topic has its
    name by now; of blocks these rows are lost.

    The batch was written already, at least to there, and is run again. The version that a write
    expects may be that of the new topic's znode, and a mark would delete the new topic.
    """
    deletions = _deletions(decisions)
    meant = _are_meant(session, list(deletions)) if deletions else {}
    replaced = {topic.name: deletions[topic] for topic, is_meant in meant.items() if not is_meant}
    return [one for at, one in enumerate(decisions) if not _is_replaced(one, at, replaced)]


def _deletions(decisions: Sequence[SinkDecision]) -> dict[_Deleted, int]:
    """Return the places of the deletions whose topic can be told from another one before anything
    is written.
    """
    marked = {one.topic for one in decisions if one.kind is DecisionKind.MARK_TOPIC_DELETION}
    ids_written: set[tuple[str, str | None]] = set()
    found: dict[_Deleted, int] = {}
    for at, one in enumerate(decisions):
        if one.kind in _REWRITES and one.content["topic_id"]:
            ids_written.add((one.topic, one.content["topic_id"]))
        if one.kind is DecisionKind.DELETE_TOPIC:
            topic = _subject(one)
            # Without an id and a mark it would count as a new one before it is marked.
            if topic.topic_id or topic.name not in marked:
                gets_id = topic[:2] in ids_written
                found[topic._replace(gets_id=gets_id)] = at
    return found


def _is_replaced(decision: SinkDecision, place: int, deleted: Mapping[str, int]) -> bool:
    """Return whether a decision is about a topic that a later one deletes, but for rows, which are
    lost; deleted: the place of that one by topic.
    """
    if decision.kind is DecisionKind.CHANGE_PARTITIONS:
        decision.lose_topics([place < deleted.get(topic, 0) for topic in decision.topics])
        return False
    return place < deleted.get(decision.content.get("topic"), 0)


def lose_undeleted(session: ZkSession, decisions: Sequence[SinkDecision]) -> None:
    """Lose what blocks say about topics in deletion whose znode is another topic's by now, or may
    not be read. A topic with an id needs no mark: its deletion goes on without it.
    """
    named = {
        _Deleted(*topic)
        for one in decisions
        for topic in zip(one.topics, one.topic_ids, strict=True)
    }
    meant = _are_meant(session, sorted(named, key=lambda topic: topic.name))
    kept = {topic.name for topic, is_meant in meant.items() if is_meant}
    for one in decisions:
        one.lose_topics([topic not in kept for topic in one.topics])


def _subject(decision: SinkDecision) -> _Deleted:
    body: DeleteTopic = decision.content
    return _Deleted(body["topic"], body["topic_id"], body["leftovers"])


def _note_unread(topic: _Deleted, error: RequestFailed) -> None:
    logger.error("topic %s cannot be deleted: %s", topic.name, error)


def _fail_unread(decisions: Sequence[SinkDecision], found: Mapping[_Deleted, object]) -> None:
    for one in decisions:
        one.failed |= _subject(one) not in found


def _are_meant(session: ZkSession, topics: Sequence[_Deleted]) -> dict[_Deleted, bool]:
    """Return for each topic that may be read whether it is gone, or still the one that is there."""

    def read(some: Sequence[_Deleted]) -> list[bool]:
        paths = [path(one.name) for path in (topic_path, topic_deletion_path) for one in some]
        data = read_many(session, paths).data
        found = zip(some, data[: len(some)], data[len(some) :], strict=True)
        return [_is_meant(one, znode, mark is not None) for one, znode, mark in found]

    if topics:
        session.sync()  # the front may have seen the mark at another server
    return read_each(topics, read, _note_unread)


def _is_meant(topic: _Deleted, data: bytes | None, marked: bool) -> bool:
    """Return whether there is no znode of the topic's name any more, or the one that was meant."""
    if data is None:
        return True
    if topic.leftovers:
        return False
    try:
        topic_id = parse_topic(data).topic_id
    except ValueError as error:
        logger.error("topic %s is not deleted: %s", topic.name, error)
        return False
    if topic_id is None and topic.gets_id:
        return True
    # The mark goes last: a topic without id and mark was created since.
    return topic_id == topic.topic_id and (topic_id is not None or marked)


def _delete(
    session: ZkSession, writer: FencedWriter, batch: DecidedBatch, decisions: list[SinkDecision]
) -> list[SinkDecision]:
    """Delete what there is; return the decisions that have to be tried again."""
    below = read_each(
        [_subject(one) for one in decisions],
        lambda some: _below(session, [topic_path(one.name) for one in some]),
        _note_unread,
    )
    _fail_unread(decisions, below)
    found = [one for one in decisions if not one.failed]
    paths = [(*below[_subject(one)], *_own_paths(one.topic)) for one in found]
    gone = _deleted(writer, batch, found, paths)
    done = _deleted(writer, batch, gone, [(topic_deletion_path(one.topic),) for one in gone])
    settled = {id(one) for one in done}
    return [one for one in found if not one.failed and id(one) not in settled]


def _deleted(
    writer: FencedWriter,
    batch: DecidedBatch,
    decisions: Sequence[SinkDecision],
    paths: Sequence[Sequence[str]],
) -> list[SinkDecision]:
    """Delete the paths of each decision; return the decisions of which all are gone."""
    ops = [(one, Delete(path)) for one, own in zip(decisions, paths, strict=True) for path in own]
    left: set[int] = set()
    for (one, op), outcome in zip(ops, writer.write([op for _, op in ops]), strict=True):
        if outcome.kind is OutcomeKind.FENCED:
            batch.fenced.add(one.fence)
            one.failed = True
        elif outcome.kind is not OutcomeKind.WRITTEN:
            logger.warning("%s: %s %s", op.path, outcome.kind, outcome.reason)
            left.add(id(one))
    return [one for one in decisions if not one.failed and id(one) not in left]


def _own_paths(topic: str) -> Iterator[str]:
    yield topic_path(topic)
    yield entity_config_path("topics", topic)


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
