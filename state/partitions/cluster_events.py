"""What events about the cluster do to partitions: the controller is elected, loads, pauses or
resigns, its configuration changes, brokers come, go or bounce.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from state.cluster.authority import Phase, elected_authority
from state.cluster.brokers import Brokers
from state.cluster.config import ClusterConfig
from state.decisions import Decision, Rule
from state.events import Event
from state.matrix import Bools, Rows, any_in_row
from state.partitions import deletion
from state.partitions.changes import Changes
from state.partitions.legal import PartitionState, ReplicaState
from state.partitions.machine import have_states, move_partitions, move_replicas
from state.partitions.own_id import repair_waiting
from state.partitions.reassignment import (
    complete_reassignments,
    release_rejected_ends,
    resume_reassignments,
)
from state.partitions.slot import Slot
from state.partitions.starting import elect_offline, start_rows
from state.partitions.states import drop_unlisted
from state.partitions.table import PartitionTable
from state.partitions.unlisted_leaders import recall_unlisted
from state.payloads.brokers import BrokerRegistrationsChanged
from state.payloads.controller import (
    ClusterConfigChanged,
    ControllerElected,
    ControllerPaused,
    ControllerResigned,
    ControllerResumed,
    ResyncCompleted,
)


def on_controller_elected(slot: Slot, event: Event, elected: ControllerElected) -> list[Decision]:
    """Forget everything and start to load under the new epoch
    (KafkaController.onControllerFailover).
    """
    slot.authority = elected_authority(elected, slot.authority)
    slot.config = ClusterConfig().configured(elected.config)
    slot.brokers = Brokers()
    slot.table = PartitionTable()
    return []


def on_controller_resigned(
    slot: Slot, event: Event, resigned: ControllerResigned
) -> list[Decision]:
    """Stop deciding until the next election."""
    slot.authority.phase = Phase.NONE
    return []


def on_controller_paused(slot: Slot, event: Event, paused: ControllerPaused) -> list[Decision]:
    """Stop deciding until a load after the pause."""
    slot.authority.pause()
    return []


def on_controller_resumed(slot: Slot, event: Event, resumed: ControllerResumed) -> list[Decision]:
    """Let the next load end the pause."""
    slot.authority.resume()
    return []


def on_cluster_config_changed(
    slot: Slot, event: Event, changed: ClusterConfigChanged
) -> list[Decision]:
    """Take new values; allowing unclean elections elects for offline partitions at once."""
    slot.config = slot.config.configured(changed.config)
    if not slot.authority.is_active or "unclean.leader.election.enable" not in changed.config:
        return []
    changes = Changes.about_cluster(slot.table, event.offset)
    everything = np.arange(len(slot.table.rows))
    elect_offline(slot, changes, everything)
    complete_reassignments(slot, changes, everything)
    return deletion.finish_with_deletions(slot, changes)


def on_resync_completed(slot: Slot, event: Event, completed: ResyncCompleted) -> list[Decision]:
    """Start both state machines on what was loaded (ReplicaStateMachine.startup,
    PartitionStateMachine.startup); during a pause only tell what was loaded.
    """
    if slot.authority.phase is not Phase.LOADING:
        return []
    slot.authority.complete_load()
    if slot.authority.paused:
        deletion.keep_begun(slot)
        told = Changes.about_cluster(slot.table, event.offset)
        told.metadata |= slot.table.rows.has_state
        return told.finish(slot.authority, slot.brokers)
    changes = Changes.about_cluster(slot.table, event.offset)
    repair_waiting(slot, changes)
    marks = deletion.start_loaded(slot, event.offset)
    everything = np.arange(len(slot.table.rows))
    start_rows(slot, changes, everything)
    recall_unlisted(slot, changes, everything)
    drop_unlisted(slot, changes, everything)
    resume_reassignments(slot, changes, everything)
    rows = slot.table.rows
    changes.metadata |= rows.has_state
    changes.rule[changes.rule == Rule.NONE] = Rule.CONTROLLER_STARTED
    return [*marks, *deletion.finish_with_deletions(slot, changes)]


def on_broker_registrations_changed(
    slot: Slot, event: Event, changed: BrokerRegistrationsChanged
) -> list[Decision]:
    """Start new brokers, fail and start bounced ones, fail those that left
    (KafkaController.processBrokerChange).
    """
    brokers = slot.brokers
    if not slot.authority.is_active:
        brokers.apply(changed)
        return []
    changes = Changes.about_cluster(slot.table, event.offset)
    brokers.register((*changed.registered, *changed.updated))
    _start_brokers(slot, changes, [broker.id for broker in changed.registered])
    bounced = [broker.id for broker in changed.bounced]
    brokers.unregister(bounced)
    _fail_brokers(slot, changes, bounced)
    # Nobody is left to be stopped: the order would reach the broker as it is now.
    changes.stop[slot.hosted_by(bounced)] = False
    brokers.register(changed.bounced)
    _start_brokers(slot, changes, bounced)
    brokers.unregister(changed.unregistered)
    _fail_brokers(slot, changes, changed.unregistered)
    complete_reassignments(slot, changes, np.arange(len(slot.table.rows)))
    return deletion.finish_with_deletions(slot, changes)


def _start_brokers(slot: Slot, changes: Changes, ids: list[int]) -> None:
    if ids:
        release_rejected_ends(slot)
        repair_waiting(slot, changes)
        hosted = slot.hosted_by(ids)
        slot.table.rows.offline_dir[hosted] = False
        serving = ~slot.table.in_deletion()[:, None]
        move_replicas(slot, changes, hosted & serving, ReplicaState.ONLINE)
        everything = np.arange(len(slot.table.rows))
        recall_unlisted(slot, changes, everything)
        elect_offline(slot, changes, everything)
        deletion.release_hosted(slot, hosted)
        rows = slot.table.rows
        awaited = slot.hosted_by(ids) & ~rows.removing
        resume_reassignments(slot, changes, np.flatnonzero(any_in_row(awaited)))
        deletion.resume(slot, changes)


def _fail_brokers(slot: Slot, changes: Changes, ids: Sequence[int]) -> None:
    if ids:
        hosted = slot.hosted_by(ids)
        slot.table.rows.offline_dir[hosted] = False
        fail_replicas(slot, changes, hosted, np.arange(len(slot.table.rows)))


def fail_replicas(slot: Slot, changes: Changes, mask: Bools, at: Rows) -> None:
    """Act on replicas bool[n, R] that just went offline (KafkaController.onReplicasBecomeOffline).

    Of the rows `at`, which an event about a topic limits to that topic's, those whose leader is not
    online go OFFLINE and all that are offline are elected for; then the replicas leave their ISRs.
    The deletion of those that are being deleted fails.
    """
    deleting = slot.table.in_deletion()
    led = at[have_states(slot, changes, at) & ~deleting[at]]
    move_partitions(slot, changes, led[~slot.online_leader(led)], PartitionState.OFFLINE)
    elect_offline(slot, changes, at)
    move_replicas(slot, changes, mask & ~deleting[:, None], ReplicaState.OFFLINE)
    if deleting.any():
        deletion.fail(slot, changes, mask & deleting[:, None])
