"""Where a node is reached on one of its listeners, in registrations, events and requests."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

from state.bodies import EndpointBody


class SecurityProtocol(IntEnum):
    """Kafka's security protocols by their wire number."""

    PLAINTEXT = 0
    SSL = 1
    SASL_PLAINTEXT = 2
    SASL_SSL = 3

    @property
    def tls(self) -> bool:
        """Whether connections are in TLS."""
        return self in (SecurityProtocol.SSL, SecurityProtocol.SASL_SSL)

    @property
    def sasl(self) -> bool:
        """Whether who connects says who it is, before all else."""
        return self in (SecurityProtocol.SASL_PLAINTEXT, SecurityProtocol.SASL_SSL)


def protocol_of(*, tls: bool, sasl: bool) -> SecurityProtocol:
    """Return the protocol with and without each of the two."""
    return next(one for one in SecurityProtocol if (one.tls, one.sasl) == (tls, sasl))


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """One advertised listener of a broker, or of this node."""

    listener: str
    host: str
    port: int
    security_protocol: SecurityProtocol


def endpoint_json(endpoint: Endpoint) -> EndpointBody:
    """Return an endpoint as events and decisions carry it."""
    return {
        "listener": endpoint.listener,
        "host": endpoint.host,
        "port": endpoint.port,
        "security_protocol": int(endpoint.security_protocol),
    }


def endpoint_of(body: EndpointBody) -> Endpoint:
    """Return what `endpoint_json` wrote; raises KeyError when a field is missing, ValueError for a
    protocol that is not known.
    """
    return Endpoint(
        listener=body["listener"],
        host=body["host"],
        port=body["port"],
        security_protocol=SecurityProtocol(body["security_protocol"]),
    )
