"""Deleting topics: marked, stopped, deleted replica by replica, then gone.

A topic is marked when it is named under `/admin/delete_topics`. Its deletion starts unless it is
halted or being reassigned: its partitions cease to exist, brokers are told so, and every replica
that is online is deleted by its broker. A replica that is not online, or that its broker could not
delete, halts the deletion until a broker with a replica of the topic comes back. When all replicas
are deleted the topic's znodes go, and it is forgotten. A broker that is in sync but not listed is
stopped too, and not waited for. Source: Kafka 3.9's TopicDeletionManager; docs/differences.md says
where this one does better.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from state.bodies import DeleteTopic, ForgetTopic, MarkTopicDeletion
from state.decisions import Decision, DecisionKind, json_decision
from state.matrix import NONE, Bools, any_in_row
from state.partitions.changes import Changes
from state.partitions.legal import PartitionState, ReplicaState
from state.partitions.machine import move_partitions, move_replicas
from state.partitions.slot import Slot
from state.partitions.table import NO_LEADER, Deletion
from state.topic_ids import topic_id_to_text

_R = ReplicaState


def mark(slot: Slot, names: Iterable[str]) -> None:
    """Queue topics for deletion; those that are queued already stay as they are."""
    for name in names:
        slot.table.deletions.setdefault(name, Deletion())


def unmark(slot: Slot, offset: int, name: str) -> Decision:
    """Forget a topic's mark and decide to remove it from ZooKeeper."""
    slot.table.deletions.pop(name, None)
    body: MarkTopicDeletion = {"topic": name, **slot.authority.fence()}
    return json_decision(offset, DecisionKind.UNMARK_TOPIC_DELETION, body)


def release(slot: Slot, names: Iterable[str]) -> None:
    """Let halted deletions go on (TopicDeletionManager.resumeDeletionForTopics)."""
    for name in names:
        if name in slot.table.deletions:
            slot.table.deletions[name].halted = False


def release_hosted(slot: Slot, hosted: Bools) -> None:
    """Let the deletions go on that a returning broker has replicas bool[n, R] of."""
    if slot.table.deletions:
        at = np.flatnonzero(any_in_row(hosted))
        topics = np.unique(slot.table.rows.topic[at]).tolist()
        release(slot, [slot.table.topics[topic].name for topic in topics])


def fail(slot: Slot, changes: Changes, mask: Bools) -> None:
    """Give up on replicas bool[n, R] of topics in deletion, and halt these
    (TopicDeletionManager.failReplicaDeletion).

    A replica that was not stopped yet is stopped first: it leaves the ISR. One that is deleted
    stays so.
    """
    rows = slot.table.rows
    running = mask & _in_states(slot, _R.NEW, _R.ONLINE)
    move_replicas(slot, changes, running, _R.OFFLINE)
    failed = mask & _in_states(slot, _R.OFFLINE, _R.DELETION_STARTED)
    move_replicas(slot, changes, failed, _R.DELETION_INELIGIBLE)
    at = np.flatnonzero(any_in_row(mask & _in_states(slot, _R.DELETION_INELIGIBLE)))
    for topic in np.unique(rows.topic[at]).tolist():
        slot.table.deletions[slot.table.topics[topic].name].halted = True


def _in_states(slot: Slot, *states: ReplicaState) -> Bools:
    rows = slot.table.rows
    found: Bools = np.isin(rows.replica_state, [int(state) for state in states])
    found &= rows.replicas != NONE
    return found


def finish_with_deletions(slot: Slot, changes: Changes) -> list[Decision]:
    """Take deletions as far as they can go now, and return all that the events decided
    (TopicDeletionManager.resumeDeletions).

    Every event that may let a deletion go on ends with this in place of `changes.finish`. One
    that is about a topic takes no other further, so that it does not matter which share its slot.
    """
    topics = changes.events.topics
    queued = [name for name in slot.table.deletions if topics is None or name in topics]
    finished = _resume(slot, changes, queued) if queued else []
    found = changes.finish(slot.authority, slot.brokers)
    ended = sorted((changes.events.offset_of(name), name) for name in finished)
    return found + _forget(slot, ended)


def resume(slot: Slot, changes: Changes) -> None:
    """Start and retry what can be, before the event goes on to what may halt it again."""
    if slot.table.deletions:
        _resume(slot, changes, list(slot.table.deletions))


def _resume(slot: Slot, changes: Changes, queued: list[str]) -> list[str]:
    """Start, retry or restart what can be; return the topics of which every replica is deleted.

    A topic that is being read again is not known: it waits for that.
    """
    deletions = slot.table.deletions
    queued = [name for name in queued if slot.table.topic(name) is not None]
    assigned = slot.table.rows.replicas != NONE
    started = _any(slot, _in_states(slot, _R.DELETION_STARTED))
    undeleted = _any(slot, assigned & ~_in_states(slot, _R.DELETION_SUCCESSFUL))
    failed = _any(slot, _in_states(slot, _R.DELETION_INELIGIBLE))
    held = slot.table.deletions_held_by_reassignment()
    finished = [name for name in queued if name not in undeleted]
    waiting = [name for name in queued if name in undeleted and name not in started]
    retried = [name for name in waiting if name in failed]
    if retried:
        mask = _of_topics(slot, retried) & _in_states(slot, _R.DELETION_INELIGIBLE)
        move_replicas(slot, changes, mask, _R.OFFLINE)
    eligible = [name for name in waiting if not deletions[name].halted and name not in held]
    if eligible:
        _start(slot, changes, eligible)
    return finished


def _any(slot: Slot, mask: Bools) -> set[str]:
    """Return the topics with a replica in mask bool[n, R]."""
    topics = np.unique(slot.table.rows.topic[any_in_row(mask)])
    return {slot.table.topics[topic].name for topic in topics.tolist()}


def _of_topics(slot: Slot, names: Iterable[str]) -> Bools:
    """Return bool[n, 1]: the row is of one of these topics."""
    return slot.table.is_of(names)[:, None]


def _start(slot: Slot, changes: Changes, names: list[str]) -> None:
    """Start deletions, or start them again for the replicas that are left
    (TopicDeletionManager.onTopicDeletion, onPartitionDeletion).
    """
    rows = slot.table.rows
    unseen = [name for name in names if not slot.table.deletions[name].started]
    at = np.flatnonzero(slot.table.is_of(unseen))
    changes.stop_unlisted(at)  # the next topic of that name would find what they have
    move_partitions(slot, changes, at, PartitionState.OFFLINE)
    move_partitions(slot, changes, at, PartitionState.NON_EXISTENT)
    for name in unseen:
        slot.table.deletions[name].started = True
    left = _of_topics(slot, names) & (rows.replicas != NONE)
    changes.metadata |= any_in_row(left) & rows.has_state
    online = slot.online_replicas(np.arange(len(rows)))
    fail(slot, changes, left & ~online)
    # A deleted replica on a broker that is down needs nothing more.
    alive = left & online & ~_in_states(slot, _R.DELETION_SUCCESSFUL)
    move_replicas(slot, changes, alive, _R.OFFLINE)
    move_replicas(slot, changes, alive, _R.DELETION_STARTED)


def _forget(slot: Slot, ended: Sequence[tuple[int, str]]) -> list[Decision]:
    """Forget topics whose deletion has ended, by the event at an offset each, and decide that they
    go.
    """
    table = slot.table
    topics = [(offset, topic) for offset, name in ended if (topic := table.topic(name)) is not None]
    table.remove_topics(topic.name for _, topic in topics)
    found = []
    for offset, topic in topics:
        table.note_deleted(topic, offset)
        topic_id = topic_id_to_text(topic.topic_id)
        found.append(delete_topic(slot, offset, topic.name, topic_id))
        found.append(forget_topic(offset, topic.name))
    return found


def delete_topic(
    slot: Slot, offset: int, name: str, topic_id: str | None, *, leftovers: bool = False
) -> Decision:
    """Return the decision that a topic's znodes go, its mark last; leftovers: it is gone but for
    its configuration and its mark.
    """
    body: DeleteTopic = {
        "topic": name,
        "topic_id": topic_id,
        "leftovers": leftovers,
        **slot.authority.fence(),
    }
    return json_decision(offset, DecisionKind.DELETE_TOPIC, body)


def forget_topic(offset: int, name: str, *, observed_again: bool = False) -> Decision:
    """Return the decision that nobody is told of a topic any more; observed_again: as it was, from
    when it is told of as it is.
    """
    body: ForgetTopic = {"topic": name}
    if observed_again:
        body["observed_again"] = True
    return json_decision(offset, DecisionKind.FORGET_TOPIC, body)


def start_loaded(slot: Slot, offset: int) -> list[Decision]:
    """Take the marks that a load found, before the state machines start (KafkaController's
    fetchTopicDeletionsInProgress).

    Deletions with a replica that is not online are halted; what waits for a reassignment is not,
    nobody would release it at its end. The marks of topics that do not exist, and are not being
    read again, are what a deletion that was cut short left behind: its last znodes go. Where
    deletion is not allowed all marks go.
    """
    marked = sorted(slot.table.deletions)
    if not slot.config.delete_topics:
        return [unmark(slot, offset, name) for name in marked]
    table = slot.table
    unknown = [name for name in marked if table.topic(name) is None and name not in table.awaited]
    for name in unknown:
        del slot.table.deletions[name]
    rows = slot.table.rows
    offline = (rows.replicas != NONE) & ~slot.online_replicas(np.arange(len(rows)))
    down = _any(slot, offline) - slot.table.deletions_held_by_reassignment()
    for name, deletion in slot.table.deletions.items():
        deletion.halted = name in down
    return [delete_topic(slot, offset, name, None, leftovers=True) for name in unknown]


def keep_begun(slot: Slot) -> None:
    """Keep, of the marks that a load found, those of topics without any leader: their deletion had
    begun, and brokers do not know them any more. All are read again when the pause is over.
    """
    led = _any(slot, slot.table.rows.leader[:, None] != NO_LEADER)
    marked = slot.table.deletions if slot.config.delete_topics else {}
    slot.table.deletions = {name: one for name, one in marked.items() if name not in led}
