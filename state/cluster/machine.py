"""The cluster machine: what is decided once for the whole cluster rather than per partition."""

from __future__ import annotations

from state.bodies import ArmTimer, DeleteAdminZnode, SetPause, UpdateBrokers
from state.cluster.authority import Phase, elected_authority
from state.cluster.brokers import Brokers
from state.cluster.cluster import Cluster
from state.cluster.config import DEPRIORITIZED, ClusterConfig
from state.cluster.leader_rebalance import (
    LEADER_REBALANCE_TIMER,
    WAITING_INTERVAL_MS,
    take_step,
)
from state.decisions import Decision, DecisionKind, json_decision
from state.events import Event
from state.payloads.admin import AdminZnodeObserved
from state.payloads.brokers import BrokerRegistrationsChanged
from state.payloads.controller import (
    ClusterConfigChanged,
    ControllerElected,
    ControllerPaused,
    ControllerResigned,
    ControllerResumed,
    ResyncCompleted,
    TimerDue,
)
from state.payloads.partitions import LeaderImbalanceReported

FIRST_REBALANCE_DELAY_MS = 5000


def on_controller_elected(
    cluster: Cluster, event: Event, elected: ControllerElected
) -> list[Decision]:
    """Forget brokers and timers, and start to load under the new epoch
    (KafkaController.onControllerFailover).
    """
    cluster.authority = elected_authority(elected, cluster.authority)
    cluster.config = ClusterConfig().configured(elected.config)
    cluster.brokers = Brokers()
    cluster.endpoints = elected.endpoints
    cluster.timers.clear()
    return []


def on_controller_resigned(
    cluster: Cluster, event: Event, resigned: ControllerResigned
) -> list[Decision]:
    """Stop deciding until the next election."""
    cluster.authority.phase = Phase.NONE
    cluster.timers.clear()
    return []


def on_controller_paused(
    cluster: Cluster, event: Event, paused: ControllerPaused
) -> list[Decision]:
    """Stop deciding until a load after the pause, and say that it is paused."""
    cluster.authority.pause()
    cluster.timers.clear()
    return [_set_pause(cluster, event, paused.reason)]


def on_controller_resumed(
    cluster: Cluster, event: Event, resumed: ControllerResumed
) -> list[Decision]:
    """Let the next load end the pause, and say so."""
    cluster.authority.resume()
    return [_set_pause(cluster, event, resumed.reason)]


def _set_pause(cluster: Cluster, event: Event, reason: str) -> Decision:
    body: SetPause = {"paused": cluster.authority.paused, "reason": reason}
    return json_decision(event.offset, DecisionKind.SET_PAUSE, body)


def on_cluster_config_changed(
    cluster: Cluster, event: Event, changed: ClusterConfigChanged
) -> list[Decision]:
    """Take new values; who is to lead no more, or again, is looked at at once."""
    cluster.config = cluster.config.configured(changed.config)
    balances = cluster.config.auto_leader_rebalance and cluster.authority.is_active
    if not balances or DEPRIORITIZED not in changed.config:
        return []
    return [_arm(cluster, event.offset, LEADER_REBALANCE_TIMER, event.time_ms)]


def on_resync_completed(
    cluster: Cluster, event: Event, completed: ResyncCompleted
) -> list[Decision]:
    """Tell all brokers who is registered, and arm the rebalance timer
    (KafkaController.onControllerFailover).
    """
    if cluster.authority.phase is not Phase.LOADING:
        return []
    cluster.authority.complete_load()
    found = [
        _update_brokers(cluster, event, introduced=sorted(cluster.brokers.by_id), complete=True)
    ]
    if cluster.config.auto_leader_rebalance and not cluster.authority.paused:
        found.append(
            _arm(
                cluster,
                event.offset,
                LEADER_REBALANCE_TIMER,
                event.time_ms + FIRST_REBALANCE_DELAY_MS,
            )
        )
    return found


def on_broker_registrations_changed(
    cluster: Cluster, event: Event, changed: BrokerRegistrationsChanged
) -> list[Decision]:
    """Take over who is registered, and tell the brokers, the new ones everything
    (KafkaController.processBrokerChange).
    """
    cluster.brokers.apply(changed)
    if not cluster.authority.is_loaded:
        return []
    introduced = sorted(broker.id for broker in (*changed.registered, *changed.bounced))
    return [_update_brokers(cluster, event, introduced=introduced, complete=False)]


def _update_brokers(
    cluster: Cluster, event: Event, *, introduced: list[int], complete: bool
) -> Decision:
    body = brokers_body(cluster, introduced=introduced, complete=complete)
    return json_decision(event.offset, DecisionKind.UPDATE_BROKERS, body)


def brokers_body(cluster: Cluster, *, introduced: list[int], complete: bool) -> UpdateBrokers:
    """Return who is registered now, as update_brokers says it.

    introduced: brokers that must be told everything. complete: nothing told before counts.
    """
    return {
        "brokers": [
            {
                "id": broker.id,
                "epoch": broker.epoch,
                "rack": broker.rack,
                "endpoints": list(broker.endpoints),
            }
            for _, broker in sorted(cluster.brokers.by_id.items())
        ],
        "introduced": introduced,
        "complete": complete,
        "controller_id": cluster.authority.controller_id,
        "controller_endpoints": list(cluster.endpoints),
        "controller_epoch": cluster.authority.epoch,
        **cluster.authority.fence(),
    }


def on_admin_znode_observed(
    cluster: Cluster, event: Event, observed: AdminZnodeObserved
) -> list[Decision]:
    """Delete a request whose every part the slots have acted on by now."""
    if not cluster.authority.is_active:
        return []
    body: DeleteAdminZnode = {
        "path": observed.path,
        "expected_version": observed.zk_version,
        **cluster.authority.fence(),
    }
    return [json_decision(event.offset, DecisionKind.DELETE_ADMIN_ZNODE, body)]


def on_timer_due(cluster: Cluster, event: Event, due: TimerDue) -> list[Decision]:
    """Arm the rebalance timer again; the slots report their imbalance on the same event."""
    if cluster.timers.get(due.timer) != due.deadline_ms or due.timer != LEADER_REBALANCE_TIMER:
        return []
    interval_ms = cluster.config.leader_imbalance_check_interval_ms
    return [_arm(cluster, event.offset, LEADER_REBALANCE_TIMER, due.deadline_ms + interval_ms)]


def on_leader_imbalance_reported(
    cluster: Cluster, event: Event, report: LeaderImbalanceReported
) -> list[Decision]:
    """Look at the balance again soon while a rebalance has more to do than fits into a step, and a
    little later while brokers wait for their replicas.
    """
    if not cluster.authority.is_active:
        return []
    step = take_step(cluster.config, cluster.authority, report, event.time_ms)
    if not cluster.authority.rebalancing:
        return []
    deadline_ms = event.time_ms + cluster.config.rebalance_step_interval_ms
    if not step.is_full:
        deadline_ms = event.time_ms + WAITING_INTERVAL_MS
        if cluster.timers.get(LEADER_REBALANCE_TIMER, deadline_ms) < deadline_ms:
            return []
    return [_arm(cluster, event.offset, LEADER_REBALANCE_TIMER, deadline_ms)]


def _arm(cluster: Cluster, offset: int, timer: str, deadline_ms: int) -> Decision:
    cluster.timers[timer] = deadline_ms
    body: ArmTimer = {"timer": timer, "deadline_ms": deadline_ms}
    return json_decision(offset, DecisionKind.ARM_TIMER, body)
