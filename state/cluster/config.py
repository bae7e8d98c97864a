"""The cluster's configuration, as far as decisions depend on it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from state.json_values import config_number


@dataclass(frozen=True, slots=True)
class ClusterConfig:
    """Values by Kafka's defaults; times in ms.

    unclean_default: unclean.leader.election.enable of the cluster. leader_recovery: the
    inter-broker protocol knows leader_recovery_state (3.2 and later). delete_topics:
    delete.topic.enable. shutdown_safety_check: controlled.shutdown.safety.check.enable.
    unclean_recovery: unclean.recovery.manager.enabled. The others are settings of that name.
    """

    unclean_default: bool = False
    leader_recovery: bool = True
    auto_leader_rebalance: bool = True
    leader_imbalance_percentage: int = 10
    leader_imbalance_check_interval_ms: int = 300_000
    delete_topics: bool = True
    min_insync_replicas: int = 1
    shutdown_safety_check: bool = False
    rebalance_partitions_max: int = 200
    rebalance_step_interval_ms: int = 1_000
    unclean_recovery: bool = False

    def configured(self, config: Mapping[str, Any]) -> ClusterConfig:
        """Return a copy with the values of an event; config has passed `checked_config`."""
        return replace(self, **{CONFIG[key][0]: value for key, value in config.items()})


CONFIG: dict[str, tuple[str, type]] = {
    "unclean.leader.election.enable": ("unclean_default", bool),
    "leader.recovery.supported": ("leader_recovery", bool),
    "auto.leader.rebalance.enable": ("auto_leader_rebalance", bool),
    "leader.imbalance.per.broker.percentage": ("leader_imbalance_percentage", int),
    "leader.imbalance.check.interval.ms": ("leader_imbalance_check_interval_ms", int),
    "delete.topic.enable": ("delete_topics", bool),
    "min.insync.replicas": ("min_insync_replicas", int),
    "controlled.shutdown.safety.check.enable": ("shutdown_safety_check", bool),
    "leader.rebalance.partitions.max": ("rebalance_partitions_max", int),
    "leader.rebalance.step.interval.ms": ("rebalance_step_interval_ms", int),
    "unclean.recovery.manager.enabled": ("unclean_recovery", bool),
}
"""Configuration keys that travel in controller_elected and cluster_config_changed."""


def checked_config(config: Mapping[str, object]) -> dict[str, object]:
    """Return the entries that decisions depend on; other keys are dropped.

    Raises TypeError naming the key when a value has the wrong type, ValueError for a number that is
    too large.
    """
    known = {key: value for key, value in config.items() if key in CONFIG}
    for key, value in known.items():
        kind = CONFIG[key][1]
        if type(value) is not kind:
            raise TypeError(f"config {key!r} is {value!r}, not a {kind.__name__}")
        if kind is int:
            config_number(key, value)
    return known
