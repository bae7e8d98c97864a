"""Controlled shutdown: who may stop, and what the slots are asked before (off by default)."""

from __future__ import annotations

from state.bodies import CheckShutdown
from state.cluster.authority import Authority
from state.cluster.brokers import Brokers
from state.cluster.cluster import Cluster
from state.cluster.config import ClusterConfig
from state.decisions import Decision, DecisionKind, json_decision
from state.events import Event
from state.payloads.brokers import (
    ControlledShutdownAllowed,
    ControlledShutdownChecked,
    ControlledShutdownRequested,
)
from state.protocol_errors import ProtocolError
from state.replies import reply
from state.reply_bodies import ControlledShutdownReply, ControllerApi


def on_controlled_shutdown_requested(
    cluster: Cluster, event: Event, request: ControlledShutdownRequested
) -> list[Decision]:
    """Let a broker stop, or ask the slots first when the check is on
    (KafkaController.doControlledShutdown).
    """
    error = shutdown_error(cluster.authority, cluster.brokers, request)
    checks = checks_shutdown(cluster.config, cluster.brokers, request.broker_id)
    if error is None and checks:
        body: CheckShutdown = {
            "request_id": request.request_id,
            "broker_id": request.broker_id,
            "broker_epoch": request.broker_epoch,
            "version": request.version,
            "live": cluster.brokers.live_ids.tolist(),
        }
        return [json_decision(event.offset, DecisionKind.CHECK_SHUTDOWN, body)]
    return _answer_shutdown(cluster, event, request, error, refused=False)


def on_controlled_shutdown_checked(
    cluster: Cluster, event: Event, checked: ControlledShutdownChecked
) -> list[Decision]:
    """Answer what the slots were asked; ask again when other brokers are alive by now."""
    if is_outdated(cluster.brokers, checked):
        return on_controlled_shutdown_requested(cluster, event, checked.request)
    error = shutdown_error(cluster.authority, cluster.brokers, checked.request)
    refused = bool(checked.at_risk)
    return _answer_shutdown(cluster, event, checked.request, error, refused=refused)


def _answer_shutdown(
    cluster: Cluster,
    event: Event,
    request: ControlledShutdownRequested,
    error: ProtocolError | None,
    *,
    refused: bool,
) -> list[Decision]:
    if error is None and not refused:
        cluster.brokers.start_shutdown(request.broker_id)
    body: ControlledShutdownReply = {
        "request_id": request.request_id,
        "api": ControllerApi.CONTROLLED_SHUTDOWN,
        "error": error or ProtocolError.NONE,
    }
    return [reply(event, body)]


def on_controlled_shutdown_allowed(
    cluster: Cluster, event: Event, allowed: ControlledShutdownAllowed
) -> list[Decision]:
    """Let a broker stop once whatever the check finds: an operator said so."""
    cluster.brokers.allow_shutdown(allowed.broker_id)
    return []


def checks_shutdown(config: ClusterConfig, brokers: Brokers, broker_id: int) -> bool:
    """Return whether a broker may shut down only if its partitions can do without it."""
    return config.shutdown_safety_check and broker_id not in brokers.shutdown_allowed


def is_outdated(brokers: Brokers, checked: ControlledShutdownChecked) -> bool:
    """Return whether other brokers are live by now than when a shutdown was checked."""
    return checked.live != tuple(brokers.live_ids.tolist())


def shutdown_error(
    authority: Authority, brokers: Brokers, request: ControlledShutdownRequested
) -> ProtocolError | None:
    """Return why a broker cannot be let go, whatever becomes of its partitions; None if it can."""
    if not authority.is_active:
        return ProtocolError.NOT_CONTROLLER
    if brokers.epoch(request.broker_id) is None:
        return ProtocolError.BROKER_NOT_AVAILABLE
    if not brokers.may_shut_down(request.broker_id, request.broker_epoch):
        return ProtocolError.STALE_BROKER_EPOCH
    return None
