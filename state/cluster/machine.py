"""The cluster machine: what is decided once for the whole cluster rather than per partition."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from state import admin_payloads, payloads
from state import control_payloads as control
from state.cluster.authority import LEADER_REBALANCE_TIMER, Authority, Phase, elected_authority
from state.cluster.brokers import Brokers
from state.cluster.rebalance import next_step
from state.decisions import Decision, DecisionKind, json_decision
from state.events import Event
from state.protocol_errors import ProtocolError

PRODUCER_ID_BLOCK_SIZE = 1000
FIRST_REBALANCE_DELAY_MS = 5000


@dataclass(slots=True)
class Cluster:
    """State of the cluster machine.

    endpoints: our own, told to every broker so that it can reach us.
    producer_id_end: last id handed out in blocks, -1 before the first; producer_id_version: version
    of `/latest_producer_id_block`, -1 while it does not exist. timers: deadline in ms by timer
    name.
    """

    authority: Authority = field(default_factory=Authority)
    brokers: Brokers = field(default_factory=Brokers)
    endpoints: tuple[dict[str, Any], ...] = ()
    producer_id_end: int = -1
    producer_id_version: int = -1
    timers: dict[str, int] = field(default_factory=dict)


def _elected(cluster: Cluster, event: Event, elected: payloads.ControllerElected) -> list[Decision]:
    cluster.authority = elected_authority(elected, cluster.authority)
    cluster.brokers = Brokers()
    cluster.endpoints = elected.endpoints
    cluster.timers.clear()
    return []


def _resigned(
    cluster: Cluster, event: Event, resigned: payloads.ControllerResigned
) -> list[Decision]:
    cluster.authority.phase = Phase.NONE
    cluster.timers.clear()
    return []


def _paused(cluster: Cluster, event: Event, paused: control.ControllerPaused) -> list[Decision]:
    cluster.authority.pause()
    cluster.timers.clear()
    return [_set_pause(cluster, event, paused.reason)]


def _resumed(cluster: Cluster, event: Event, resumed: control.ControllerResumed) -> list[Decision]:
    cluster.authority.resume()
    return [_set_pause(cluster, event, resumed.reason)]


def _set_pause(cluster: Cluster, event: Event, reason: str) -> Decision:
    body = {"paused": cluster.authority.paused, "reason": reason}
    return json_decision(event.offset, DecisionKind.SET_PAUSE, body)


def _config_changed(
    cluster: Cluster, event: Event, changed: payloads.ClusterConfigChanged
) -> list[Decision]:
    cluster.authority.configure(changed.config)
    return []


def _resync_completed(
    cluster: Cluster, event: Event, completed: payloads.ResyncCompleted
) -> list[Decision]:
    cluster.authority.loaded()
    found = [
        _update_brokers(cluster, event, introduced=sorted(cluster.brokers.by_id), complete=True)
    ]
    if cluster.authority.auto_leader_rebalance and not cluster.authority.paused:
        found.append(
            _arm(
                cluster,
                event.offset,
                LEADER_REBALANCE_TIMER,
                event.time_ms + FIRST_REBALANCE_DELAY_MS,
            )
        )
    return found


def _registrations_changed(
    cluster: Cluster, event: Event, changed: payloads.BrokerRegistrationsChanged
) -> list[Decision]:
    cluster.brokers.unregister((*changed.unregistered, *(broker.id for broker in changed.bounced)))
    cluster.brokers.register((*changed.registered, *changed.bounced, *changed.updated))
    if cluster.authority.phase not in (Phase.ACTIVE, Phase.PAUSED):
        return []
    introduced = sorted(broker.id for broker in (*changed.registered, *changed.bounced))
    return [_update_brokers(cluster, event, introduced=introduced, complete=False)]


def _update_brokers(
    cluster: Cluster, event: Event, *, introduced: list[int], complete: bool
) -> Decision:
    body = brokers_body(cluster, introduced=introduced, complete=complete)
    return json_decision(event.offset, DecisionKind.UPDATE_BROKERS, body)


def brokers_body(cluster: Cluster, *, introduced: list[int], complete: bool) -> dict[str, Any]:
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
        "epoch_zk_version": cluster.authority.epoch_zk_version,
    }


def _shutdown_requested(
    cluster: Cluster, event: Event, request: payloads.ControlledShutdownRequested
) -> list[Decision]:
    error = _shutdown_error(cluster, request)
    checks = cluster.authority.checks_shutdown(cluster.brokers, request.broker_id)
    if error is ProtocolError.NONE and checks:
        body = asdict(request) | {"live": cluster.brokers.live_ids.tolist()}
        return [json_decision(event.offset, DecisionKind.CHECK_SHUTDOWN, body)]
    return _answer_shutdown(cluster, event, request, error, refused=False)


def _shutdown_checked(
    cluster: Cluster, event: Event, checked: control.ControlledShutdownChecked
) -> list[Decision]:
    if checked.live != tuple(cluster.brokers.live_ids.tolist()):
        return _shutdown_requested(cluster, event, checked.request)
    error = _shutdown_error(cluster, checked.request)
    refused = bool(checked.at_risk)
    return _answer_shutdown(cluster, event, checked.request, error, refused=refused)


def _answer_shutdown(
    cluster: Cluster,
    event: Event,
    request: payloads.ControlledShutdownRequested,
    error: ProtocolError,
    *,
    refused: bool,
) -> list[Decision]:
    if error is ProtocolError.NONE and not refused:
        cluster.brokers.start_shutdown(request.broker_id)
    body = {"request_id": request.request_id, "api": "controlled_shutdown", "error": int(error)}
    return [json_decision(event.offset, DecisionKind.REPLY, body)]


def _shutdown_allowed(
    cluster: Cluster, event: Event, allowed: control.ControlledShutdownAllowed
) -> list[Decision]:
    cluster.brokers.allow_shutdown(allowed.broker_id)
    return []


def _shutdown_error(
    cluster: Cluster, request: payloads.ControlledShutdownRequested
) -> ProtocolError:
    if cluster.authority.phase is not Phase.ACTIVE:
        return ProtocolError.NOT_CONTROLLER
    if cluster.brokers.epoch(request.broker_id) is None:
        return ProtocolError.BROKER_NOT_AVAILABLE
    if not cluster.brokers.may_shut_down(request.broker_id, request.broker_epoch):
        return ProtocolError.STALE_BROKER_EPOCH
    return ProtocolError.NONE


def _producer_ids_requested(
    cluster: Cluster, event: Event, request: payloads.ProducerIdsRequested
) -> list[Decision]:
    """Hand out the next block of producer ids (ZkProducerIdManager,
    KafkaController.processAllocateProducerIds).
    """
    error = _producer_ids_error(cluster, request)
    reply: dict[str, Any] = {
        "request_id": request.request_id,
        "api": "producer_ids",
        "error": int(error),
    }
    if error is not ProtocolError.NONE:
        return [json_decision(event.offset, DecisionKind.REPLY, reply)]
    start = cluster.producer_id_end + 1
    write = {
        "broker": request.broker_id,
        "block_start": start,
        "block_end": start + PRODUCER_ID_BLOCK_SIZE - 1,
        "expected_version": cluster.producer_id_version,
        "epoch_zk_version": cluster.authority.epoch_zk_version,
    }
    cluster.producer_id_end = start + PRODUCER_ID_BLOCK_SIZE - 1
    cluster.producer_id_version += 1
    reply |= {"producer_id_start": start, "producer_id_len": PRODUCER_ID_BLOCK_SIZE}
    return [
        json_decision(event.offset, DecisionKind.WRITE_PRODUCER_ID_BLOCK, write),
        json_decision(event.offset, DecisionKind.REPLY, reply),
    ]


def _producer_ids_error(cluster: Cluster, request: payloads.ProducerIdsRequested) -> ProtocolError:
    if cluster.authority.phase not in (Phase.ACTIVE, Phase.PAUSED):
        return ProtocolError.NOT_CONTROLLER
    if request.broker_id == cluster.authority.controller_id:
        return ProtocolError.NONE
    epoch = cluster.brokers.epoch(request.broker_id)
    if epoch is None:
        return ProtocolError.BROKER_ID_NOT_REGISTERED
    return ProtocolError.NONE if epoch == request.broker_epoch else ProtocolError.STALE_BROKER_EPOCH


def _producer_id_block_observed(
    cluster: Cluster, event: Event, observed: payloads.ProducerIdBlockObserved
) -> list[Decision]:
    # Never back: a block that was promised and not written is skipped, not promised again.
    cluster.producer_id_end = max(cluster.producer_id_end, observed.block_end)
    cluster.producer_id_version = observed.zk_version
    return []


def _admin_znode_observed(
    cluster: Cluster, event: Event, observed: admin_payloads.AdminZnodeObserved
) -> list[Decision]:
    """Delete a request whose every part the slots have acted on by now."""
    if cluster.authority.phase is not Phase.ACTIVE:
        return []
    body = {
        "path": observed.path,
        "expected_version": observed.zk_version,
        "epoch_zk_version": cluster.authority.epoch_zk_version,
    }
    return [json_decision(event.offset, DecisionKind.DELETE_ADMIN_ZNODE, body)]


def _alter_partition_of_unknown_topic(
    cluster: Cluster, event: Event, request: payloads.AlterPartitionRequested
) -> list[Decision]:
    error = (
        ProtocolError.NONE
        if cluster.authority.phase is Phase.ACTIVE
        else ProtocolError.NOT_CONTROLLER
    )
    if (
        error is ProtocolError.NONE
        and cluster.brokers.epoch(request.broker_id) != request.broker_epoch
    ):
        error = ProtocolError.STALE_BROKER_EPOCH
    body = {
        "request_id": request.request_id,
        "api": "alter_partition",
        "error": int(error),
        "topic": request.topic,
        "topic_id": request.topic_id,
        "partitions": [
            {"partition": partition, "error": int(ProtocolError.UNKNOWN_TOPIC_ID)}
            for partition in request.partitions.tolist()
        ],
    }
    return [json_decision(event.offset, DecisionKind.REPLY, body)]


def _timer_due(cluster: Cluster, event: Event, due: payloads.TimerDue) -> list[Decision]:
    """Arm the rebalance timer again; the slots report their imbalance on the same event."""
    if cluster.timers.get(due.timer) != due.deadline_ms or due.timer != LEADER_REBALANCE_TIMER:
        return []
    interval_ms = cluster.authority.leader_imbalance_check_interval_ms
    return [_arm(cluster, event.offset, LEADER_REBALANCE_TIMER, due.deadline_ms + interval_ms)]


def _imbalance_reported(
    cluster: Cluster, event: Event, report: payloads.LeaderImbalanceReported
) -> list[Decision]:
    """Look at the balance again soon while a rebalance has more to do than fits into a step."""
    authority = cluster.authority
    if authority.phase is not Phase.ACTIVE:
        return []
    authority.rebalancing = next_step(authority, report).unfinished
    if not authority.rebalancing:
        return []
    deadline_ms = event.time_ms + authority.rebalance_step_interval_ms
    return [_arm(cluster, event.offset, LEADER_REBALANCE_TIMER, deadline_ms)]


def _arm(cluster: Cluster, offset: int, timer: str, deadline_ms: int) -> Decision:
    cluster.timers[timer] = deadline_ms
    return json_decision(
        offset, DecisionKind.ARM_TIMER, {"timer": timer, "deadline_ms": deadline_ms}
    )


CLUSTER_HANDLERS: Mapping[type[Any], Callable[[Cluster, Event, Any], list[Decision]]] = {
    payloads.ControllerElected: _elected,
    payloads.ControllerResigned: _resigned,
    payloads.ClusterConfigChanged: _config_changed,
    payloads.ResyncCompleted: _resync_completed,
    payloads.BrokerRegistrationsChanged: _registrations_changed,
    payloads.ControlledShutdownRequested: _shutdown_requested,
    payloads.ProducerIdsRequested: _producer_ids_requested,
    payloads.ProducerIdBlockObserved: _producer_id_block_observed,
    payloads.AlterPartitionRequested: _alter_partition_of_unknown_topic,
    payloads.TimerDue: _timer_due,
    payloads.LeaderImbalanceReported: _imbalance_reported,
    control.ControllerPaused: _paused,
    control.ControllerResumed: _resumed,
    control.ControlledShutdownAllowed: _shutdown_allowed,
    control.ControlledShutdownChecked: _shutdown_checked,
    admin_payloads.AdminZnodeObserved: _admin_znode_observed,
}
