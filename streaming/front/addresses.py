"""Whether brokers can reach this node and it them, by what both announce; if not, no role is taken.

A controller that brokers cannot reach is worse than none: they register, hear from it, and cannot
answer, so ISRs stay as they are and acks=all waits.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence

from streaming.errors import ConfigurationError
from streaming.front.load_events import Endpoints
from streaming.observers.brokers import Registration
from streaming.settings import Settings
from streaming.zk.znodes import SecurityProtocol


def check_announced_host(settings: Settings) -> None:
    """Raise ConfigurationError when what is to be announced is the address of no machine."""
    address = _address(settings.announced_host)
    if address is not None and address.is_unspecified:
        raise ConfigurationError(
            f"{_announced(settings)} stands for all addresses of this machine and cannot be"
            " announced: set gateway.advertised.host to the name or address under which brokers"
            " and clients reach this machine"
        )


def check_brokers(
    settings: Settings, announced: Endpoints, brokers: Sequence[Registration]
) -> None:
    """Raise ConfigurationError when it is not known on which listener brokers hear the controller,
    when they could not be told there or could not answer, or when a loopback address is announced
    beside brokers that are reached under another one.

    announced: our endpoints; brokers: those that are registered.
    """
    _check_listener(settings, brokers)
    for broker in brokers:
        _check_conversation(settings, announced, broker)
        _check_loopback(settings, announced, broker)


def _check_listener(settings: Settings, brokers: Sequence[Registration]) -> None:
    name = settings.controller_listener
    names = {broker["id"]: [end["listener"] for end in broker["endpoints"]] for broker in brokers}
    if name:
        if names and not any(name in found for found in names.values()):
            key = "control.plane" if settings.control_plane_listener_name else "inter.broker"
            raise ConfigurationError(
                f"{key}.listener.name = {name!r} is a listener of no broker; allowed:"
                f" {_listed(sorted({one for found in names.values() for one in found}))}"
            )
        return
    for id_, found in names.items():
        if len(found) > 1:
            raise ConfigurationError(
                f"inter.broker.listener.name is empty, and broker {id_} has several listeners: set"
                f" it to the one that brokers use among themselves; allowed: {_listed(found)}"
            )


def _check_conversation(settings: Settings, announced: Endpoints, broker: Registration) -> None:
    name = settings.controller_listener
    ends = (end for end in broker["endpoints"] if not name or end["listener"] == name)
    if (end := next(ends, None)) is None:
        return  # nobody can tell it anything, and the others need a controller
    listener, protocol = end["listener"], SecurityProtocol(end["security_protocol"])
    if protocol is not SecurityProtocol.PLAINTEXT:
        raise ConfigurationError(
            f"broker {broker['id']} hears the controller on {listener}, which is {protocol.name};"
            " allowed: PLAINTEXT; set control.plane.listener.name or inter.broker.listener.name to"
            " such a listener if the brokers have one"
        )
    ours = sorted(end["listener"] for end in announced)
    if listener not in ours:
        raise ConfigurationError(
            f"gateway.listeners = {settings.gateway_listeners!r}: broker {broker['id']} looks for"
            f" the controller on {listener}, and this node is announced on {_listed(ours)}; add it,"
            " or leave gateway.listeners empty and start again"
        )


def _check_loopback(settings: Settings, announced: Endpoints, broker: Registration) -> None:
    loopback = {end["listener"] for end in announced if _is_loopback(end["host"])}
    for end in broker["endpoints"]:
        if end["listener"] in loopback and not _is_loopback(end["host"]):
            raise ConfigurationError(
                f"{_announced(settings)} is reached from this machine only, and broker"
                f" {broker['id']} is at {end['host']}:{end['port']} ({end['listener']}): set"
                " gateway.host to an address that the gateway is to bind (0.0.0.0: all), and"
                " gateway.advertised.host to one under which brokers and clients reach it"
            )


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names)


def _announced(settings: Settings) -> str:
    advertised = settings.gateway_advertised_host
    key = "gateway.advertised.host" if advertised else "gateway.host"
    return f"{key} = {settings.announced_host!r}"


def _is_loopback(host: str) -> bool:
    address = _address(host)
    return host.lower() == "localhost" if address is None else address.is_loopback


def _address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """Return a literal address, None for a name: only who resolves it knows what it stands for."""
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None
