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
    unclean_recovery: unclean.recovery.manager.enabled. deprioritized: ids of brokers, ascending,
    that lead where nobody else can, leader.deprioritized.list. The others are settings of that
    name.
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
    rebalance_sync_wait_ms: int = 0
    unclean_recovery: bool = False
    deprioritized: tuple[int, ...] = ()

    def configured(self, config: Mapping[str, Any]) -> ClusterConfig:
        """Return a copy with the values of an event; config has passed `checked_config`."""
        values: dict[str, Any] = {
            CONFIG[key][0]: broker_ids(value) if isinstance(value, str) else value
            for key, value in config.items()
        }
        return replace(self, **values)


DEPRIORITIZED = "leader.deprioritized.list"
_BROKER_ID_MAX = 2**31 - 1


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
    "leader.rebalance.sync.wait.ms": ("rebalance_sync_wait_ms", int),
    "unclean.recovery.manager.enabled": ("unclean_recovery", bool),
    DEPRIORITIZED: ("deprioritized", str),
}
"""Configuration keys that travel in controller_elected and cluster_config_changed."""


def checked_config(config: Mapping[str, object]) -> dict[str, object]:
    """Return the entries that decisions depend on; other keys are dropped.

    Raises TypeError naming the key when a value has the wrong type, ValueError for a number that is
    too large, and for what is no list of broker ids.
    """
    known = {key: value for key, value in config.items() if key in CONFIG}
    for key, value in known.items():
        kind = CONFIG[key][1]
        if type(value) is not kind:
            raise TypeError(f"config {key!r} is {value!r}, not a {kind.__name__}")
        if kind is int:
            config_number(key, value)
        if isinstance(value, str):
            broker_ids(value)
    return known


def broker_ids(listed: str) -> tuple[int, ...]:
    """Return the ids, ascending, of a list such as "5, 7"; raises ValueError naming what is none.

    Blanks around ids count as Kafka's lists have them: not at all (ConfigDef.parseType).
    """
    ids = [one.strip() for one in listed.split(",")] if listed.strip() else []
    for one in ids:
        if not (one.isascii() and one.isdigit() and int(one) <= _BROKER_ID_MAX):
            raise ValueError(f"{one!r} in {listed!r} is no id of a broker")
    return tuple(sorted({int(one) for one in ids}))
