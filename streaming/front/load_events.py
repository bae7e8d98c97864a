"""The event with which a load begins: the election."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from state.cluster.config import DEPRIORITIZED
from state.event_kinds import EventKind
from state.topic_overrides import MIN_INSYNC, UNCLEAN
from streaming.log.api import NewRecord
from streaming.log.events import event
from streaming.settings import Settings
from streaming.wire.endpoints import Endpoint, endpoint_json
from streaming.zk.claim import ControllerClaim

_RECOVERY_SINCE = (3, 2)
TOPIC_IDS_SINCE = (2, 8)


def overridable(settings: Settings) -> dict[str, Any]:
    """Return the settings that the brokers' cluster-wide defaults go before."""
    return {
        UNCLEAN: settings.unclean_leader_election_enable,
        MIN_INSYNC: settings.min_insync_replicas,
        DEPRIORITIZED: settings.leader_deprioritized_list,
    }


def topics_have_ids(settings: Settings) -> bool:
    """Return whether the brokers' inter-broker protocol knows topic ids."""
    return settings.inter_broker_protocol >= TOPIC_IDS_SINCE


def elected(claim: ControllerClaim, endpoints: Sequence[Endpoint], settings: Settings) -> NewRecord:
    """Return controller_elected, with our endpoints and the settings that decisions depend on."""
    config = {
        **overridable(settings),
        "leader.recovery.supported": settings.inter_broker_protocol >= _RECOVERY_SINCE,
        "delete.topic.enable": settings.delete_topic_enable,
        "auto.leader.rebalance.enable": settings.auto_leader_rebalance_enable,
        "leader.imbalance.per.broker.percentage": settings.leader_imbalance_per_broker_percentage,
        "leader.imbalance.check.interval.ms": (
            settings.leader_imbalance_check_interval_seconds * 1000
        ),
        "leader.rebalance.partitions.max": settings.leader_rebalance_partitions_max,
        "leader.rebalance.step.interval.ms": settings.leader_rebalance_step_interval_ms,
        "leader.rebalance.sync.wait.ms": settings.leader_rebalance_sync_wait_ms,
        "unclean.recovery.manager.enabled": settings.unclean_recovery_manager_enabled,
        "controlled.shutdown.safety.check.enable": settings.controlled_shutdown_safety_check_enable,
    }
    body = {
        "controller_id": claim.controller_id,
        "epoch": claim.epoch,
        "epoch_zk_version": claim.epoch_zk_version,
        "endpoints": [endpoint_json(end) for end in endpoints],
        "config": config,
    }
    return event(EventKind.CONTROLLER_ELECTED, body)
