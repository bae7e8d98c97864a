"""Under which controller epoch decisions are made, and whether any may be made now."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from state.payloads import ControllerElected

LEADER_REBALANCE_TIMER = "leader_rebalance"
"""Timer of the automatic preferred-leader rebalance: armed by the cluster machine, answered by the
slots.
"""


class Phase(StrEnum):
    """NONE: not the controller. LOADING: elected, the bulk load is coming in. ACTIVE: deciding."""

    NONE = "none"
    LOADING = "loading"
    ACTIVE = "active"


@dataclass(slots=True)
class Authority:
    """Our claim of the controller role as the log tells it.

    epoch: the controller epoch. epoch_zk_version: version of `/controller_epoch`, checked by every
    write. unclean_default: unclean.leader.election.enable of the cluster. leader_recovery: the
    inter-broker protocol knows leader_recovery_state (3.2 and later). delete_topics:
    delete.topic.enable. The leader_imbalance and rebalance fields are Kafka's knobs of that name.
    """

    phase: Phase = Phase.NONE
    controller_id: int = -1
    epoch: int = -1
    epoch_zk_version: int = -1
    unclean_default: bool = False
    leader_recovery: bool = True
    auto_leader_rebalance: bool = True
    leader_imbalance_percentage: int = 10
    leader_imbalance_check_interval_ms: int = 300_000
    delete_topics: bool = True

    def configure(self, config: Mapping[str, object]) -> None:
        """Take the values that decisions depend on; config has passed `checked_config`."""
        for key, value in config.items():
            setattr(self, CONFIG[key][0], value)


CONFIG: dict[str, tuple[str, type]] = {
    "unclean.leader.election.enable": ("unclean_default", bool),
    "leader.recovery.supported": ("leader_recovery", bool),
    "auto.leader.rebalance.enable": ("auto_leader_rebalance", bool),
    "leader.imbalance.per.broker.percentage": ("leader_imbalance_percentage", int),
    "leader.imbalance.check.interval.ms": ("leader_imbalance_check_interval_ms", int),
    "delete.topic.enable": ("delete_topics", bool),
}
"""Configuration keys that travel in controller_elected and cluster_config_changed."""


def elected_authority(elected: ControllerElected) -> Authority:
    """Return the authority of a fresh election, loading."""
    authority = Authority(
        Phase.LOADING, elected.controller_id, elected.epoch, elected.epoch_zk_version
    )
    authority.configure(elected.config)
    return authority


def checked_config(config: Mapping[str, object]) -> dict[str, object]:
    """Return the entries that decisions depend on; other keys are dropped.

    Raises TypeError naming the key when a value has the wrong type.
    """
    known = {key: value for key, value in config.items() if key in CONFIG}
    for key, value in known.items():
        if type(value) is not CONFIG[key][1]:
            raise TypeError(f"config {key!r} is {value!r}, not a {CONFIG[key][1].__name__}")
    return known
