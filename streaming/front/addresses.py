"""Whether brokers can reach this node and it them, by what both announce; if not, no role is taken.

A controller that brokers cannot reach is worse than none: they register, hear from it, and cannot
answer, so ISRs stay as they are and acks=all waits.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence

from streaming.errors import ConfigurationError
from streaming.observers.brokers import Registration
from streaming.security.protocols import configured_listeners, spoken_protocols
from streaming.settings import Settings
from streaming.wire.endpoints import Endpoint, SecurityProtocol


def check_announced_host(settings: Settings) -> None:
    """Raise ConfigurationError when what is to be announced is the address of no machine."""
    address = _address(settings.announced_host)
    if address is not None and address.is_unspecified:
        raise ConfigurationError(
            f"{_announced(settings)} stands for all addresses of this machine and cannot be"
            " announced: set gateway.advertised.host to the name or address under which brokers"
            " and clients reach this machine"
        )


def first_endpoint(settings: Settings) -> Endpoint:
    """Return where this node is going to be announced whatever listeners brokers have, under no
    listener's name.
    """
    return Endpoint(
        listener="",
        host=settings.announced_host,
        port=settings.gateway_port,
        security_protocol=SecurityProtocol.PLAINTEXT,
    )


def served_listeners(
    settings: Settings, brokers: Sequence[Registration]
) -> dict[str, SecurityProtocol]:
    """Return what is spoken on the listeners that have one protocol, which this node speaks, at
    every broker that has them, by name in order of broker and listener: where it can be announced.

    Clients of the others do not see this node. Raises ConfigurationError when there is none, or
    when such clients could not do without it.
    """
    unserved = _unserved(settings, brokers)
    if unserved and settings.groups_takeover_enable:
        raise ConfigurationError(
            "groups.takeover.enable = true lets this node coordinate the groups of all clients, and"
            f" it speaks {_spoken(settings)}: {_listed(list(unserved.values()))}; set it to false,"
            " or gateway.listeners to those that the clients of groups use"
        )
    found = _served(settings, brokers)
    if unserved and not found:
        raise ConfigurationError(
            f"the brokers have no listener that this node can serve, which speaks"
            f" {_spoken(settings)}: {_listed(list(unserved.values()))}; give them one, and set"
            " inter.broker.listener.name to it, or control.plane.listener.name, which costs"
            " controlled shutdowns"
        )
    return found


def check_brokers(
    settings: Settings, announced: Sequence[Endpoint], brokers: Sequence[Registration]
) -> None:
    """Raise ConfigurationError when it is not known on which listeners brokers hear the controller
    and reach each other, when they could not be told there or could not answer, when clients would
    speak another protocol to this node than it does, or when a loopback address is announced beside
    brokers that are reached under another one.

    announced: our endpoints; brokers: those that are registered.
    """
    _check_listener(settings, brokers)
    for broker in brokers:
        _check_hearing(settings, broker)
    for broker in brokers:
        _check_conversation(settings, announced, broker)
        _check_loopback(settings, announced, broker)
    _check_protocols(settings, announced, brokers)


def unclean_shutdowns(settings: Settings, brokers: Sequence[Registration]) -> str | None:
    """Return in words which broker cannot ask for its controlled shutdown, None for none: it does
    so on the inter-broker listener only (KafkaServer.controlledShutdown), whatever listener it has
    for all else that it asks of a controller.
    """
    for broker in brokers:
        end = _end_on(settings.inter_broker_listener_name, broker)
        if end is not None and not _speaks(settings, end):
            return (
                f"broker {broker.id} asks for its controlled shutdown on {end.listener}, which is"
                f" {end.security_protocol.name}, and this node speaks {_spoken(settings)}: each"
                " shutdown of such a broker will be an unclean one"
            )
    return None


def unserved_listeners(
    settings: Settings, announced: Sequence[Endpoint], brokers: Sequence[Registration]
) -> str | None:
    """Return in words on which listeners this node would be announced if it started now, beside
    those it is announced on; None for none.
    """
    if settings.gateway_listener_names:
        return None
    ours = {end.listener for end in announced}
    missing = [name for name in _served(settings, brokers) if name not in ours]
    if not missing:
        return None
    return (
        f"brokers have listeners that came after this node had bound its own: {_listed(missing)};"
        " their clients do not see this node until it starts again"
    )


def _check_listener(settings: Settings, brokers: Sequence[Registration]) -> None:
    names = {broker.id: [end.listener for end in broker.endpoints] for broker in brokers}
    for key, name in (
        ("control.plane", settings.control_plane_listener_name),
        ("inter.broker", settings.inter_broker_listener_name),
    ):
        if name and names and not any(name in found for found in names.values()):
            raise ConfigurationError(
                f"{key}.listener.name = {name!r} is a listener of no broker; allowed:"
                f" {_listed(sorted({one for found in names.values() for one in found}))}"
            )
    if settings.inter_broker_listener_name:
        return
    for id_, found in names.items():
        if len(found) > 1:
            raise ConfigurationError(
                f"inter.broker.listener.name is empty, and broker {id_} has several listeners: set"
                f" it to the one that brokers use among themselves; allowed: {_listed(found)}"
            )


def _end_on(name: str, broker: Registration) -> Endpoint | None:
    """Return a broker's endpoint on a listener, "" for its only one. Without one nobody can tell it
    anything, and the others need a controller.
    """
    ends = (end for end in broker.endpoints if not name or end.listener == name)
    return next(ends, None)


def _check_hearing(settings: Settings, broker: Registration) -> None:
    end = _end_on(settings.controller_listener, broker)
    if end is not None and not _speaks(settings, end):
        raise ConfigurationError(
            f"broker {broker.id} hears the controller on {end.listener}, which is"
            f" {end.security_protocol.name}; allowed: {_spoken(settings)}; if the brokers have such"
            " a listener, let them use it among themselves and set inter.broker.listener.name to"
            " it, or for the controller alone (control.plane.listener.name), which costs controlled"
            " shutdowns"
        )


def _check_conversation(
    settings: Settings, announced: Sequence[Endpoint], broker: Registration
) -> None:
    """The controller is looked for where it is heard, and on the inter-broker listener."""
    ours = sorted(end.listener for end in announced)
    for name in settings.controller_listeners or [""]:
        end = _end_on(name, broker)
        if end is None or not _speaks(settings, end):
            continue
        if end.listener not in ours:
            raise ConfigurationError(
                f"gateway.listeners = {settings.gateway_listeners!r}: broker {broker.id} looks"
                f" for the controller on {end.listener}, and this node is announced on"
                f" {_listed(ours)}; add it, or leave gateway.listeners empty and start again"
            )


def _check_protocols(
    settings: Settings, announced: Sequence[Endpoint], brokers: Sequence[Registration]
) -> None:
    """Each broker is announced with its own protocol: to its clients a port of the same listener
    speaks that too.
    """
    ours = {end.listener: end.security_protocol for end in announced}
    ours |= configured_listeners(settings)
    for broker in brokers:
        for end in broker.endpoints:
            if ours.get(end.listener, end.security_protocol) is not end.security_protocol:
                told = f"{_at(end, broker)}, and this node speaks {ours[end.listener].name} there"
                raise ConfigurationError(_with_remedy(settings, told, end))


def _with_remedy(settings: Settings, told: str, end: Endpoint) -> str:
    """Return what is wrong with a listener, and what to do about it."""
    named, control = settings.gateway_listeners, settings.controller_listener
    if settings.gateway_listener_names and _speaks(settings, end):
        mapped = settings.listener_security_protocol_map
        return (
            f"listener.security.protocol.map = {mapped!r}: {told}; brokers must agree, and the map"
            f" say {end.listener}:{end.security_protocol.name}"
        )
    said = f"{told}, as it speaks {_spoken(settings)}"
    if named:
        return f"gateway.listeners = {named!r}: {said}; take it out"
    if settings.gateway_hidden:
        return (
            f"gateway.hidden = true with an empty gateway.listeners: {said}; set gateway.listeners"
            f" = {control!r}, which costs controlled shutdowns"
        )
    return f"{said}; a new start speaks there what brokers do, or leaves it out"


def _speaks(settings: Settings, end: Endpoint) -> bool:
    return end.security_protocol in spoken_protocols(settings)


def _spoken(settings: Settings) -> str:
    spoken = " and ".join(one.name for one in sorted(spoken_protocols(settings)))
    wanted = {
        "ssl.keystore.location": settings.ssl_keystore_location,
        "sasl.mechanism.inter.broker.protocol": settings.sasl_mechanism_inter_broker_protocol,
    }
    missing = [key for key, value in wanted.items() if not value]
    verb = "is" if len(missing) == 1 else "are"
    return f"{spoken} only, as {' and '.join(missing)} {verb} empty" if missing else spoken


def _at(end: Endpoint, broker: Registration) -> str:
    return f"{end.listener} is {end.security_protocol.name} at broker {broker.id}"


def _served(settings: Settings, brokers: Sequence[Registration]) -> dict[str, SecurityProtocol]:
    """Return what is spoken on the listeners that this node can serve, by name in order."""
    unserved = _unserved(settings, brokers)
    return {
        end.listener: end.security_protocol
        for broker in brokers
        for end in broker.endpoints
        if end.listener not in unserved
    }


def _unserved(settings: Settings, brokers: Sequence[Registration]) -> dict[str, str]:
    """Return why listeners cannot be served, by name: a broker speaks there what this node does
    not, or not what the first one speaks.
    """
    found: dict[str, str] = {}
    first: dict[str, tuple[SecurityProtocol, str]] = {}
    for broker in brokers:
        for end in broker.endpoints:
            protocol, there = first.setdefault(
                end.listener, (end.security_protocol, _at(end, broker))
            )
            if not _speaks(settings, end):
                found.setdefault(end.listener, _at(end, broker))
            elif protocol is not end.security_protocol:
                found.setdefault(end.listener, f"{there}, and {_at(end, broker)}")
    return found


def _check_loopback(
    settings: Settings, announced: Sequence[Endpoint], broker: Registration
) -> None:
    loopback = {end.listener for end in announced if _is_loopback(end.host)}
    for end in broker.endpoints:
        if end.listener in loopback and not _is_loopback(end.host):
            raise ConfigurationError(
                f"{_announced(settings)} is reached from this machine only, and broker"
                f" {broker.id} is at {end.host}:{end.port} ({end.listener}): set"
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
