"""Who controls the cluster, under which configuration, and what time it is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from state.bodies import EndpointBody, endpoint_bodies
from state.cluster.config import checked_config
from state.json_values import (
    int32,
    int64,
    text,
)


@dataclass(frozen=True, slots=True)
class ControllerElected:
    """We hold `/controller` under a new epoch; until resync_completed follows a fresh load.

    endpoints: where brokers and clients reach us, as in a broker's registration.
    """

    controller_id: int
    epoch: int
    epoch_zk_version: int
    endpoints: tuple[EndpointBody, ...]
    config: dict[str, object]


def controller_elected(body: dict[str, Any]) -> ControllerElected:
    """Read controller_elected."""
    return ControllerElected(
        controller_id=int32(body["controller_id"]),
        epoch=int32(body["epoch"]),
        epoch_zk_version=int32(body["epoch_zk_version"]),
        endpoints=endpoint_bodies(body["endpoints"]),
        config=checked_config(dict(body["config"])),
    )


@dataclass(frozen=True, slots=True)
class ControllerResigned:
    """We gave the controller role up; nothing may be decided until the next election."""

    reason: str


def controller_resigned(body: dict[str, Any]) -> ControllerResigned:
    """Read controller_resigned."""
    return ControllerResigned(reason=text(body["reason"]))


@dataclass(frozen=True, slots=True)
class ResyncCompleted:
    """The bulk load that followed the election is complete; topics is how many were observed."""

    topics: int


def resync_completed(body: dict[str, Any]) -> ResyncCompleted:
    """Read resync_completed."""
    return ResyncCompleted(topics=int32(body["topics"]))


@dataclass(frozen=True, slots=True)
class ClusterConfigChanged:
    """Cluster-wide configuration values that decisions depend on."""

    config: dict[str, object]


def cluster_config_changed(body: dict[str, Any]) -> ClusterConfigChanged:
    """Read cluster_config_changed."""
    return ClusterConfigChanged(config=checked_config(dict(body["config"])))


@dataclass(frozen=True, slots=True)
class ControllerPaused:
    """Nothing is to be decided until controller_resumed and the load after it."""

    reason: str


def controller_paused(body: dict[str, Any]) -> ControllerPaused:
    """Read controller_paused."""
    return ControllerPaused(reason=text(body["reason"]))


@dataclass(frozen=True, slots=True)
class ControllerResumed:
    """The pause ends with the next load."""

    reason: str


def controller_resumed(body: dict[str, Any]) -> ControllerResumed:
    """Read controller_resumed."""
    return ControllerResumed(reason=text(body["reason"]))


@dataclass(frozen=True, slots=True)
class TimerDue:
    """The clock reached an armed timer's deadline."""

    timer: str
    deadline_ms: int


def timer_due(body: dict[str, Any]) -> TimerDue:
    """Read timer_due."""
    return TimerDue(timer=text(body["timer"]), deadline_ms=int64(body["deadline_ms"]))
