"""Whether brokers can reach this node and it them, by what both announce; if not, no role is taken.

A controller that brokers cannot reach is worse than none: they register, hear from it, and cannot
answer, so ISRs stay as they are and acks=all waits.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence

from streaming.errors import ConfigurationError
from streaming.observers.brokers import Registration
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


def plaintext_listeners(settings: Settings, brokers: Sequence[Registration]) -> list[str]:
    """Return the names of the listeners that are PLAINTEXT at every broker that has them, in order
    of broker and listener: where this node can be announced, as it speaks nothing else.

    Clients of the others do not see this node. Raises ConfigurationError when there is none, or
    when such clients could not do without it.
    """
    secured = _secured(brokers)
    if secured and settings.groups_takeover_enable:
        raise ConfigurationError(
            "groups.takeover.enable = true lets this node coordinate the groups of all clients, and"
            f" it speaks PLAINTEXT only: {_listed(list(secured.values()))}; set it to false, or"
            " gateway.listeners to those that the clients of groups use"
        )
    found = _plaintext(brokers)
    if secured and not found:
        raise ConfigurationError(
            "the brokers have no listener that is PLAINTEXT, which is all that this node speaks:"
            f" {_listed(list(secured.values()))}; give them one, and set inter.broker.listener.name"
            " to it, or control.plane.listener.name, which costs controlled shutdowns"
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
        if end is not None and end.security_protocol is not SecurityProtocol.PLAINTEXT:
            return (
                f"broker {broker.id} asks for its controlled shutdown on {end.listener}, which is"
                f" {end.security_protocol.name}, and this node speaks PLAINTEXT only: each shutdown"
                " of such a broker will be an unclean one"
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
    missing = [name for name in _plaintext(brokers) if name not in ours]
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
    if end is not None and end.security_protocol is not SecurityProtocol.PLAINTEXT:
        raise ConfigurationError(
            f"broker {broker.id} hears the controller on {end.listener}, which is"
            f" {end.security_protocol.name}; allowed: PLAINTEXT; if the brokers have such a"
            " listener, let them use it among themselves and set inter.broker.listener.name to it,"
            " or for the controller alone (control.plane.listener.name), which costs controlled"
            " shutdowns"
        )


def _check_conversation(
    settings: Settings, announced: Sequence[Endpoint], broker: Registration
) -> None:
    """The controller is looked for where it is heard, and on the inter-broker listener."""
    ours = sorted(end.listener for end in announced)
    for name in settings.controller_listeners or [""]:
        end = _end_on(name, broker)
        if end is None or end.security_protocol is not SecurityProtocol.PLAINTEXT:
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
    configured = settings.gateway_listener_names
    ours = {*configured, *(end.listener for end in announced)}
    told = next((words for name, words in _secured(brokers).items() if name in ours), None)
    if told is None:
        return
    if settings.gateway_listeners:
        raise ConfigurationError(
            f"gateway.listeners = {settings.gateway_listeners!r}: {told}, and this node speaks"
            " PLAINTEXT only; take it out"
        )
    if settings.gateway_hidden:
        raise ConfigurationError(
            f"gateway.hidden = true with an empty gateway.listeners: {told}, and this node speaks"
            f" PLAINTEXT only; set gateway.listeners = {settings.controller_listener!r}, which"
            " costs controlled shutdowns"
        )
    raise ConfigurationError(
        f"{told}, and this node is announced on it and speaks PLAINTEXT only; a new start leaves it"
        " out"
    )


def _plaintext(brokers: Sequence[Registration]) -> list[str]:
    """Return the listeners that are PLAINTEXT at every broker that has them, in order."""
    secured = _secured(brokers)
    names = dict.fromkeys(end.listener for broker in brokers for end in broker.endpoints)
    return [name for name in names if name not in secured]


def _secured(brokers: Sequence[Registration]) -> dict[str, str]:
    """Return the listeners that are not PLAINTEXT at some broker, by name, and where in words."""
    found: dict[str, str] = {}
    for broker in brokers:
        for end in broker.endpoints:
            listener, protocol = end.listener, end.security_protocol
            if protocol is not SecurityProtocol.PLAINTEXT:
                found.setdefault(listener, f"{listener} is {protocol.name} at broker {broker.id}")
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
