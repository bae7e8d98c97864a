"""Brokers: who is registered, who wants to stop, and what they need of the controller."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from state.bodies import EndpointBody, endpoint_bodies
from state.json_values import (
    int32,
    int32_tuple,
    int64,
    optional_text,
    text,
)


@dataclass(frozen=True, slots=True)
class BrokerRegistration:
    """A broker's registration; epoch is the czxid of its znode, endpoints are kept as they came."""

    id: int
    epoch: int
    rack: str | None
    endpoints: tuple[EndpointBody, ...]


def _broker(body: dict[str, Any]) -> BrokerRegistration:
    return BrokerRegistration(
        id=int32(body["id"]),
        epoch=int64(body["epoch"]),
        rack=optional_text(body.get("rack")),
        endpoints=endpoint_bodies(body["endpoints"]),
    )


@dataclass(frozen=True, slots=True)
class BrokerRegistrationsChanged:
    """Brokers that came, went, came back with a new epoch, or changed another part of their
    registration (endpoints, rack, features), in one observation.
    """

    registered: tuple[BrokerRegistration, ...]
    unregistered: tuple[int, ...]
    bounced: tuple[BrokerRegistration, ...]
    updated: tuple[BrokerRegistration, ...]


def broker_registrations_changed(body: dict[str, Any]) -> BrokerRegistrationsChanged:
    """Read broker_registrations_changed; absent lists are empty."""
    return BrokerRegistrationsChanged(
        registered=tuple(map(_broker, body.get("registered", ()))),
        unregistered=int32_tuple(body.get("unregistered", ())),
        bounced=tuple(map(_broker, body.get("bounced", ()))),
        updated=tuple(map(_broker, body.get("updated", ()))),
    )


@dataclass(frozen=True, slots=True)
class ControlledShutdownRequested:
    """A broker asks to be relieved of its leaders; broker_epoch is -1 when the request's version
    has none.
    """

    request_id: str
    broker_id: int
    broker_epoch: int
    version: int


def controlled_shutdown_requested(body: dict[str, Any]) -> ControlledShutdownRequested:
    """Read controlled_shutdown_requested."""
    return ControlledShutdownRequested(
        request_id=text(body["request_id"]),
        broker_id=int32(body["broker_id"]),
        broker_epoch=int64(body["broker_epoch"]),
        version=int32(body["version"]),
    )


@dataclass(frozen=True, slots=True)
class ControlledShutdownAllowed:
    """A broker may shut down even if partitions fall below min.insync.replicas."""

    broker_id: int


def controlled_shutdown_allowed(body: dict[str, Any]) -> ControlledShutdownAllowed:
    """Read controlled_shutdown_allowed."""
    return ControlledShutdownAllowed(broker_id=int32(body["broker_id"]))


@dataclass(frozen=True, slots=True)
class ControlledShutdownChecked:
    """What all slots found about a broker's request: (topic, partition) of those that would be left
    with fewer replicas in sync than min.insync.replicas; live: the live brokers then, ascending.
    """

    request: ControlledShutdownRequested
    live: tuple[int, ...]
    at_risk: tuple[tuple[str, int], ...]


def controlled_shutdown_checked(body: dict[str, Any]) -> ControlledShutdownChecked:
    """Read controlled_shutdown_checked."""
    return ControlledShutdownChecked(
        request=controlled_shutdown_requested(body),
        live=int32_tuple(body["live"]),
        at_risk=tuple((text(topic), int32(partition)) for topic, partition in body["at_risk"]),
    )


@dataclass(frozen=True, slots=True)
class LogDirFailureNotified:
    """Brokers that announced a failed log directory in ZooKeeper."""

    broker_ids: tuple[int, ...]


def log_dir_failure_notified(body: dict[str, Any]) -> LogDirFailureNotified:
    """Read log_dir_failure_notified."""
    return LogDirFailureNotified(broker_ids=int32_tuple(body["broker_ids"]))


@dataclass(frozen=True, slots=True)
class ProducerIdsRequested:
    """A broker asks for a block of producer ids."""

    request_id: str
    broker_id: int
    broker_epoch: int


def producer_ids_requested(body: dict[str, Any]) -> ProducerIdsRequested:
    """Read producer_ids_requested."""
    return ProducerIdsRequested(
        request_id=text(body["request_id"]),
        broker_id=int32(body["broker_id"]),
        broker_epoch=int64(body["broker_epoch"]),
    )


@dataclass(frozen=True, slots=True)
class ProducerIdBlockObserved:
    """Content of `/latest_producer_id_block`; block_end -1 and zk_version -1 when the znode is
    missing.
    """

    block_end: int
    zk_version: int


def producer_id_block_observed(body: dict[str, Any]) -> ProducerIdBlockObserved:
    """Read producer_id_block_observed."""
    return ProducerIdBlockObserved(
        block_end=int64(body["block_end"]), zk_version=int32(body["zk_version"])
    )
