"""Topics that appear, change or disappear in ZooKeeper."""

from __future__ import annotations

from dataclasses import dataclass, replace

from state.cluster.authority import Phase
from state.decisions import Decision, DecisionKind, Rule
from state.events import Event
from state.matrix import Rows
from state.partitions import deletion
from state.partitions.assignment import assignment_decision, reassignment_end
from state.partitions.changes import Changes
from state.partitions.own_id import (
    held_unrepaired,
    observed_rows,
    repair_held,
    without_controller,
)
from state.partitions.reassignment import (
    complete_reassignments,
    hold_rejected_ends,
    resume_reassignments,
)
from state.partitions.rows import select
from state.partitions.slot import Slot
from state.partitions.starting import create_partitions, elect_offline, start_rows
from state.partitions.states import adopt_states, drop_unlisted, raise_unwritten
from state.partitions.table import Columns, Topic
from state.payloads.topics import TopicConfigChanged, TopicObserved, TopicRemoved
from state.topic_ids import NO_TOPIC_ID, topic_id_to_text


def on_topic_observed(slot: Slot, event: Event, observed: TopicObserved) -> list[Decision]:
    """Take a topic as ZooKeeper has it: load it, create what is new, adopt states that are newer
    than ours.

    What was read of a topic before it was deleted says nothing any more. A load during a pause
    takes it as it is: the load after the pause repairs it.
    """
    if slot.authority.phase not in (Phase.LOADING, Phase.ACTIVE):
        return []
    if slot.table.was_deleted(observed.topic, observed.topic_id, event.offset):
        return []
    slot.table.awaited.discard(observed.topic)
    loading = slot.authority.phase is Phase.LOADING
    if loading and slot.authority.paused:
        observed = replace(observed, new_topic_id=NO_TOPIC_ID, unwritable=True)
    replicas, repaired = without_controller(slot, observed)
    known = _take_topic(slot, observed, afresh=loading)
    rewritten = (repaired or known.unwritten) and not observed.unwritable
    columns = observed_rows(slot, observed, replicas, known.index, repaired=repaired)
    if loading:
        slot.table.add_rows(columns)
        return [_rewrite(slot, event, known)] if rewritten else []
    if not observed.unwritable and _grows_in_deletion(slot, observed):
        return _undo_growth(slot, event, observed.topic, known)
    return _take_rows(slot, event, observed, columns, known, rewritten=rewritten)


@dataclass(frozen=True, slots=True)
class _Taken:
    """Index of a topic. unwritten: it has an id that is not in ZooKeeper yet. id_changed: it has
    another id than brokers were told.
    """

    index: int
    unwritten: bool
    id_changed: bool


def _rewrite(slot: Slot, event: Event, known: _Taken) -> Decision:
    kind = DecisionKind.REWRITE_ASSIGNMENT
    return assignment_decision(slot.table, slot.authority, event.offset, known.index, kind)


def _take_topic(slot: Slot, observed: TopicObserved, *, afresh: bool) -> _Taken:
    """Take the observed topic, added if it is new, with its overrides and its id.

    afresh: without rows, because a topic observed twice during a load is as the last observation
    says. A topic without an id gets the one that came with the observation, and keeps it when it
    is observed again before it is written.
    """
    before = slot.table.topic(observed.topic)
    version = observed.zk_version if before is None else before.zk_version
    told = None if before is None else before.topic_id
    if afresh:
        _forget_loaded(slot, observed.topic)
    known = slot.table.topic_index(observed.topic)
    if known is None:
        topic = Topic(observed.topic, told or NO_TOPIC_ID, observed.unclean, version)
        known = slot.table.add_topic(topic)
    topic = slot.table.topics[known]
    topic.seen = True
    topic.zk_version = max(version, observed.zk_version)
    topic.unclean, topic.min_insync = observed.unclean, observed.min_insync
    topic.end_rejected = False
    minted = observed.new_topic_id if topic.topic_id == NO_TOPIC_ID else topic.topic_id
    missing = observed.topic_id == NO_TOPIC_ID
    topic.topic_id = minted if missing else observed.topic_id
    unwritten = missing and minted != NO_TOPIC_ID and observed.zk_version >= version
    return _Taken(known, unwritten, told not in (None, topic.topic_id))


def _forget_loaded(slot: Slot, name: str) -> None:
    """Forget a topic, but not that it is to be deleted: that begins when it is known again."""
    marked = name in slot.table.deletions
    slot.table.remove_topics([name])
    if marked:
        deletion.mark(slot, [name])


def _take_rows(
    slot: Slot,
    event: Event,
    observed: TopicObserved,
    columns: Columns,
    known: _Taken,
    *,
    rewritten: bool,
) -> list[Decision]:
    new = slot.table.find(observed.topic, observed.partitions) < 0
    slot.table.add_rows(select(columns, new))
    changes = Changes.about_topics(slot.table, {observed.topic: event.offset})
    at = slot.table.find(observed.topic, observed.partitions)
    late = held_unrepaired(slot, at, columns)
    if rewritten and not late.any():
        changes.rewrite_assignment(slot.authority, known.index)
    if known.id_changed:
        _tell_id(slot, changes, at[~new])
    stored = observed.states.present
    started = stored | slot.table.in_deletion()[at]
    if observed.observed_again:
        drop_unlisted(slot, changes, at[stored])
    start_rows(slot, changes, at[new & started])
    create_partitions(slot, changes, at[new & ~started])
    if not observed.unwritable:
        resume_reassignments(slot, changes, at[new])
    taken = adopt_states(slot, changes, at, observed.states, only=~new & stored)
    if observed.unwritable:
        hold_rejected_ends(slot, at)
    else:
        complete_reassignments(slot, changes, taken)
    repair_held(slot, changes, at, columns, late)
    if observed.observed_again:
        drop_unlisted(slot, changes, at[stored])  # leaders that have followers by now
        raise_unwritten(slot, changes, at[stored])
    return deletion.finish_with_deletions(slot, changes)


def _tell_id(slot: Slot, changes: Changes, at: Rows) -> None:
    """Tell everybody of rows `at` again: their topic has another id."""
    rows = slot.table.rows
    at = at[rows.has_state[at] & ~slot.table.in_deletion()[at]]
    changes.metadata[at] = True
    changes.recipients[at] |= slot.online_replicas(at)
    changes.rule[at] = Rule.STATE_OBSERVED


def _grows_in_deletion(slot: Slot, observed: TopicObserved) -> bool:
    """Return whether partitions were added to a topic that is to be deleted, which is undone
    (KafkaController.processPartitionModifications). One that is read again has no partitions yet.
    """
    new = slot.table.find(observed.topic, observed.partitions) < 0
    known = observed.topic in slot.table.deletions and len(slot.table.rows_of(observed.topic)) > 0
    return known and bool(new.any())


def _undo_growth(slot: Slot, event: Event, topic: str, known: _Taken) -> list[Decision]:
    changes = Changes.about_topics(slot.table, {topic: event.offset})
    changes.rewrite_assignment(slot.authority, known.index)
    if known.id_changed:
        _tell_id(slot, changes, slot.table.rows_of(topic))
    return changes.finish(slot.authority, slot.brokers)


def on_topic_removed(slot: Slot, event: Event, removed: TopicRemoved) -> list[Decision]:
    """Forget a topic whose znode is gone, and that it was to be deleted.

    What is said of an earlier topic of that name says nothing about this one.
    """
    if removed.unmarked:
        slot.table.deletions.pop(removed.topic, None)
    if removed.observed_again:
        return _taken_back(slot, event, removed)
    return _gone(slot, event, removed)


def _taken_back(slot: Slot, event: Event, removed: TopicRemoved) -> list[Decision]:
    """Forget a topic that is not as we believed until it is observed again, as it will be.

    That observation counts even if a topic of that name and id was deleted: whatever id the event
    gives, the deletion is forgotten.
    """
    table, name = slot.table, removed.topic
    topic = table.topic(name)
    table.deleted.pop(name, None)
    # A write of ours that did not happen says no id, and is of what we made last.
    is_ours = removed.topic_id is None
    if topic is not None and not is_ours and not topic.is_meant(removed.topic_id):
        return []
    table.awaited.add(name)
    if topic is None:
        return []
    _forget_loaded(slot, name)
    return [deletion.forget_topic(event.offset, name, observed_again=True)]


def _gone(slot: Slot, event: Event, removed: TopicRemoved) -> list[Decision]:
    """Forget a topic that does not exist any more, and end what was asked for about it."""
    table, name = slot.table, removed.topic
    deleted = table.deleted.get(name)
    if deleted is not None and removed.topic_id == topic_id_to_text(deleted.topic_id):
        del table.deleted[name]
    topic = table.topic(name)
    if topic is not None and not topic.is_meant(removed.topic_id):
        return []
    table.awaited.discard(name)
    found = [deletion.forget_topic(event.offset, name)]
    if slot.authority.phase is Phase.LOADING:
        _forget_loaded(slot, name)
        return found
    if slot.authority.is_active:
        found += _ended_with(slot, event, name)
    table.remove_topics([name])
    return found


def _ended_with(slot: Slot, event: Event, name: str) -> list[Decision]:
    """Return the ends of what was asked for about a topic that is gone."""
    at = slot.table.rows_of(name)
    moving = at[slot.table.rows.in_motion(at)]
    found = []
    if name in slot.table.deletions:
        found.append(deletion.unmark(slot, event.offset, name))
    if len(moving):
        ended: dict[int, list[int] | None] = dict.fromkeys(
            slot.table.rows.partition[moving].tolist()
        )
        found.append(reassignment_end(slot.authority, event.offset, name, ended))
    return found


def on_topic_config_changed(
    slot: Slot, event: Event, changed: TopicConfigChanged
) -> list[Decision]:
    """Take a topic's overrides; allowing unclean elections elects for its offline partitions at
    once.
    """
    topic = slot.table.topic(changed.topic)
    if topic is None:
        return []
    topic.unclean, topic.min_insync = changed.unclean, changed.min_insync
    if not slot.authority.is_active or not changed.unclean:
        return []
    changes = Changes.about_topics(slot.table, {changed.topic: event.offset})
    at = slot.table.rows_of(changed.topic)
    elect_offline(slot, changes, at)
    complete_reassignments(slot, changes, at)
    return deletion.finish_with_deletions(slot, changes)
