"""Partition state znodes that are not as we believed: changed by somebody else, or not by us
because our write met other content or was rejected.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np

from state.decisions import Decision, Rule
from state.events import Event
from state.matrix import NONE, Bools, Rows, any_in_row, contains, keep
from state.partitions import deletion
from state.partitions.changes import Changes
from state.partitions.legal import PartitionState, ReplicaState
from state.partitions.machine import move_partitions, move_replicas
from state.partitions.reassignment import (
    complete_reassignments,
    resume_reassignments,
    start_untold,
)
from state.partitions.slot import Slot
from state.partitions.starting import elect_for_shutting_down
from state.partitions.table import NO_LEADER, NO_VERSION
from state.payloads.partitions import ObservedStates, PartitionStatesObserved, StateCause


@dataclass(frozen=True, slots=True)
class _Read:
    """States of a topic that were read again.

    at int[k]: their rows, -1 where there is none. present bool[k]: there are both, row and state.
    """

    at: Rows
    states: ObservedStates
    present: Bools

    @property
    def rows(self) -> Rows:
        """The rows that there are."""
        rows: Rows = self.at[self.at >= 0]
        return rows


def on_partition_states_observed(
    slot: Slot, event: Event, observed: PartitionStatesObserved
) -> list[Decision]:
    """Adopt what ZooKeeper holds where it is not what we hold, and go on as the cause wants it.

    Of a topic that was deleted and whose name another one has it says nothing.
    """
    if not slot.authority.is_active or _is_about_another(slot, observed):
        return []
    at = slot.table.find(observed.topic, observed.partitions)
    changes = Changes.about_topics(slot.table, {observed.topic: event.offset})
    read = _Read(at, observed.states, (at >= 0) & observed.states.present)
    if observed.cause != StateCause.NOTIFICATION:  # it may have been read before we created it
        missing = (at >= 0) & ~read.present
        gone = _drop_states(slot, at[missing], observed.uncreated[missing])
        if observed.cause != StateCause.ADOPTED:  # refused, so that somebody hears
            move_partitions(slot, changes, gone, PartitionState.ONLINE)
    return _BY_CAUSE.get(observed.cause, _go_on)(slot, changes, read)


def _go_on(slot: Slot, changes: Changes, read: _Read, *, overtaken: bool = False) -> list[Decision]:
    """Take newer versions only (KafkaController.updateLeaderAndIsrCache). overtaken: whatever the
    version, beside another controller; nothing of ours was written, so no leader waits.
    """
    taken = adopt_states(slot, changes, read.at, read.states, read.present, always=overtaken)
    complete_reassignments(slot, changes, taken)
    return deletion.finish_with_deletions(slot, changes)


def _after_conflict(slot: Slot, changes: Changes, read: _Read) -> list[Decision]:
    """Take the znode for the truth whatever its version, and raise the leader epoch: a leader whose
    ISR change met the conflict waits for a higher one.
    """
    taken = adopt_states(slot, changes, read.at, read.states, only=read.present, always=True)
    resume_reassignments(slot, changes, taken)
    start_untold(slot, changes, taken)
    raise_unwritten(slot, changes, taken)
    _stop_again(slot, changes, read.rows)
    return deletion.finish_with_deletions(slot, changes)


def _after_rejection(slot: Slot, changes: Changes, read: _Read) -> list[Decision]:
    """Take the znode for the truth, and decide nothing that would be written: it would be rejected
    as well, without end. Replicas are told what is stored: what was decided meanwhile and needs no
    write, as when a broker starts, was lost too.
    """
    taken = _take(slot, changes, read.at, read.states, read.present)
    changes.recipients[taken] |= slot.online_replicas(taken)
    start_untold(slot, changes, taken)
    _stop_again(slot, changes, read.rows)
    return changes.finish(slot.authority, slot.brokers)


def _adopted(slot: Slot, changes: Changes, read: _Read) -> list[Decision]:
    """Take what another controller decided, about which we decide nothing."""
    _take(slot, changes, read.at, read.states, read.present)
    return changes.finish(slot.authority, slot.brokers)


_BY_CAUSE: Mapping[str, Callable[[Slot, Changes, _Read], list[Decision]]] = {
    StateCause.CONFLICT: _after_conflict,
    StateCause.REJECTED: _after_rejection,
    StateCause.OVERTAKEN: partial(_go_on, overtaken=True),
    StateCause.ADOPTED: _adopted,
}
"""What else than `_go_on` is done."""


def _is_about_another(slot: Slot, observed: PartitionStatesObserved) -> bool:
    topic = slot.table.topic(observed.topic)
    if topic is None or observed.topic_id is None:
        return False
    return not topic.is_meant(observed.topic_id)


def _drop_states(slot: Slot, at: Rows, uncreated: Bools) -> Rows:
    """Forget the states of rows, and return those that had one: they are OFFLINE until a state is
    there again. Those that never had one (uncreated bool[k]) are NEW again.
    """
    rows = slot.table.rows
    rows.zk_version[at] = NO_VERSION
    rows.leader[at] = NO_LEADER
    serving = ~slot.table.in_deletion()[at]
    rows.state[at[serving & uncreated]] = PartitionState.NEW
    gone: Rows = at[serving & ~uncreated & (rows.state[at] != PartitionState.NEW)]
    rows.state[gone] = PartitionState.OFFLINE
    return gone


def adopt_states(
    slot: Slot,
    changes: Changes,
    at: Rows,
    states: ObservedStates,
    only: Bools,
    *,
    always: bool = False,
) -> Rows:
    """Take stored states into rows `at` where `only` bool[k] holds, and return the rows taken.

    Without `always` a row is taken only when the stored version is higher than ours. Rows whose
    leader or members turn out not to be online are decided about at once.
    """
    rows = slot.table.rows
    use = only & (at >= 0)
    use[use] = always | (states.zk_version[use] > rows.zk_version[at[use]])
    taken = _take(slot, changes, at, states, use)
    _settle(slot, changes, taken)
    return taken


def _take(slot: Slot, changes: Changes, at: Rows, states: ObservedStates, use: Bools) -> Rows:
    """Copy stored states into rows `at` where `use` bool[k] holds, and return these rows: ONLINE or
    OFFLINE by their leader, unless their topic is being deleted.
    """
    taken = at[use]
    if len(taken) == 0:
        return taken
    rows = slot.table.rows
    for name in ("leader", "leader_epoch", "controller_epoch", "zk_version", "recovery"):
        getattr(rows, name)[taken] = getattr(states, name)[use]
    slot.table.replace_isr(taken, states.isr[use])
    changes.metadata[taken] = True
    changes.rule[taken] = Rule.STATE_OBSERVED
    serving = taken[~slot.table.in_deletion()[taken]]
    led = np.where(slot.is_led(serving), PartitionState.ONLINE, PartitionState.OFFLINE)
    rows.state[serving] = led
    return taken


def _settle(slot: Slot, changes: Changes, at: Rows) -> None:
    """Make the rows hold what holds after every event: a leader where one can be, no offline member
    in an ISR. A leader that is shutting down is offline only once another one is elected.
    """
    if len(at) == 0:
        return
    rows = slot.table.rows
    at = at[~slot.table.in_deletion()[at]]
    elect_for_shutting_down(slot, changes, at)
    shutting_down = slot.shutting_down_leaders(at)
    move_partitions(slot, changes, at[~slot.is_led(at)], PartitionState.ONLINE)
    drop_unlisted(slot, changes, at)  # before those that failed: one of them is to stay then
    stopped = rows.replica_state[at] == ReplicaState.OFFLINE
    move_replicas(
        slot, changes, slot.table.spread(at, stopped & shutting_down), ReplicaState.ONLINE
    )
    gone = ~slot.registered_replicas(at) | (stopped & ~shutting_down)
    members = slot.table.spread(at, gone & contains(rows.isr[at], rows.replicas[at]))
    move_replicas(slot, changes, members, ReplicaState.OFFLINE)


def drop_unlisted(slot: Slot, changes: Changes, at: Rows) -> None:
    """Take brokers that rows do not list out of their ISRs, and have them delete what they have:
    the write that was to do so met other content (KafkaController.doRemoveReplicasFromIsr is
    repeated then). They stay while nobody else is in sync, or one of them leads.
    """
    rows = slot.table.rows
    at = at[slot.may_write(at) & ~slot.table.in_deletion()[at]]
    isr, leader = rows.isr[at], rows.leader[at]
    listed = contains(rows.replicas[at], isr)
    unlisted = (isr != NONE) & ~listed
    led = (leader == NO_LEADER) | ~contains(np.where(unlisted, isr, NONE), leader[:, None])[:, 0]
    dropped = any_in_row(unlisted) & any_in_row(listed) & led
    at = at[dropped]
    changes.stop_unlisted(at)
    slot.table.replace_isr(at, keep(isr[dropped], listed[dropped]))
    changes.recipients[at] |= slot.registered_replicas(at)
    changes.mark_written(at, Rule.REPLICA_LEFT_ISR)


def _stop_again(slot: Slot, changes: Changes, at: Rows) -> None:
    """Tell brokers again to delete replicas: what was decided with a lost write was not sent."""
    states = slot.table.rows.replica_state[at]
    stopped = slot.table.spread(at, states == ReplicaState.DELETION_STARTED)
    changes.stop |= stopped
    changes.stop_delete |= stopped
    changes.stop_unlisted(at[slot.table.rows.state[at] == PartitionState.NON_EXISTENT])


def raise_unwritten(slot: Slot, changes: Changes, at: Rows) -> None:
    """Raise the leader epoch of rows that nothing else wrote in this event, and tell their
    replicas: a leader that was refused while they were in doubt waits for a higher one
    (Partition.handleAlterPartitionError).
    """
    rows = slot.table.rows
    leads = contains(rows.replicas[at], rows.leader[at][:, None])[:, 0]
    leads &= ~slot.table.in_deletion()[at]
    quiet = at[~changes.write[at] & leads]
    changes.raise_leader_epoch(quiet, slot.registered_replicas(quiet))
