"""Under which controller epoch decisions are made, and whether any may be made now."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from state.json_values import config_number

if TYPE_CHECKING:
    from state.cluster.brokers import Brokers
    from state.payloads.controller import ControllerElected

LEADER_REBALANCE_TIMER = "leader_rebalance"
"""Timer of the automatic preferred-leader rebalance: armed by the cluster machine, answered by the
slots.
"""


class Phase(StrEnum):
    """NONE: not the controller, or what is known is out of date. LOADING: elected, the bulk load is
    coming in. ACTIVE: deciding. PAUSED: loaded, but an operator wants nothing decided.
    """

    NONE = "none"
    LOADING = "loading"
    ACTIVE = "active"
    PAUSED = "paused"


@dataclass(slots=True)
class Authority:
    """Our claim of the controller role as the log tells it.

    epoch: the controller epoch. epoch_zk_version: version of `/controller_epoch`, checked by every
    write. unclean_default: unclean.leader.election.enable of the cluster. leader_recovery: the
    inter-broker protocol knows leader_recovery_state (3.2 and later). delete_topics:
    delete.topic.enable. min_insync_replicas: min.insync.replicas of the cluster. The fields of the
    leader imbalance and rebalance are knobs of that name; rebalancing: brokers, ascending, that get
    back more leaders at the next step. paused: an operator's wish, which outlives elections.
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
    min_insync_replicas: int = 1
    shutdown_safety_check: bool = False
    rebalance_partitions_max: int = 200
    rebalance_step_interval_ms: int = 1_000
    rebalancing: tuple[int, ...] = ()
    paused: bool = False

    @property
    def is_active(self) -> bool:
        """Whether decisions are made now."""
        return self.phase is Phase.ACTIVE

    @property
    def is_loaded(self) -> bool:
        """Whether the cluster is known, also while an operator wants nothing decided."""
        return self.phase in (Phase.ACTIVE, Phase.PAUSED)

    def fence(self) -> dict[str, int]:
        """Return the field of a decision by which its write is refused once another is elected."""
        return {"epoch_zk_version": self.epoch_zk_version}

    def configure(self, config: Mapping[str, object]) -> None:
        """Take the values that decisions depend on; config has passed `checked_config`."""
        for key, value in config.items():
            setattr(self, CONFIG[key][0], value)

    def checks_shutdown(self, brokers: Brokers, broker_id: int) -> bool:
        """Return whether a broker may shut down only if its partitions can do without it."""
        return self.shutdown_safety_check and broker_id not in brokers.shutdown_allowed

    def complete_load(self) -> None:
        """Begin to decide, or not while an operator wants nothing decided."""
        self.phase = Phase.PAUSED if self.paused else Phase.ACTIVE

    def pause(self) -> None:
        """Decide nothing until `resume` and the load that follows it."""
        self.paused = True
        if self.phase is Phase.ACTIVE:
            self.phase = Phase.PAUSED

    def resume(self) -> None:
        """Let the next load end the pause: what happened meanwhile was passed over."""
        self.paused = False
        if self.phase is Phase.PAUSED:
            self.phase = Phase.NONE


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
}
"""Configuration keys that travel in controller_elected and cluster_config_changed."""


def elected_authority(elected: ControllerElected, before: Authority) -> Authority:
    """Return the authority of a fresh election, loading; a pause goes on."""
    authority = Authority(
        Phase.LOADING, elected.controller_id, elected.epoch, elected.epoch_zk_version
    )
    authority.paused = before.paused
    authority.configure(elected.config)
    return authority


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
