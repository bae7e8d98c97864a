"""Registered brokers as the image keeps them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from state import bodies
from streaming.wire.endpoints import Endpoint, endpoint_json, endpoint_of
from streaming.wire.partition_rows import BrokerNode


@dataclass(frozen=True, slots=True)
class RegisteredBroker:
    """A broker's id and addresses with its epoch (czxid of its znode)."""

    node: BrokerNode
    epoch: int

    def registration(self) -> bodies.RegistrationBody:
        """Return the registration as events and decisions carry it."""
        return {
            "id": self.node.id,
            "epoch": self.epoch,
            "rack": self.node.rack,
            "endpoints": endpoints(self.node),
        }


def endpoints(node: BrokerNode) -> list[bodies.EndpointBody]:
    """Return a node's endpoints as registrations carry them."""
    return [endpoint_json(end) for end in node.endpoints]


def broker_node(registration: Mapping[str, Any]) -> BrokerNode:
    """Return a registration's broker; errors as `endpoint_of`."""
    return BrokerNode(
        id=registration["id"],
        rack=registration["rack"],
        endpoints=tuple(endpoint_of(end) for end in registration["endpoints"]),
    )


def registered_brokers(
    registrations: Iterable[bodies.RegistrationBody],
) -> dict[int, RegisteredBroker]:
    """Return registrations by broker id."""
    return {
        registration["id"]: RegisteredBroker(broker_node(registration), registration["epoch"])
        for registration in registrations
    }


def endpoint_on(node: BrokerNode, listener: str) -> Endpoint | None:
    """Return a broker's endpoint on a listener, None if it has none there; "": its only one."""
    if not listener:
        return node.endpoints[0] if len(node.endpoints) == 1 else None
    return next((end for end in node.endpoints if end.listener == listener), None)
