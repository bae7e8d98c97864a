"""Which security protocols this node speaks, and on which of its listeners."""

from __future__ import annotations

from streaming.settings import Settings
from streaming.wire.endpoints import SecurityProtocol


def spoken_protocols(settings: Settings) -> frozenset[SecurityProtocol]:
    """Return the protocols that this node speaks, on listeners of its own and to brokers."""
    tls, sasl = bool(settings.ssl_keystore_location), bool(settings.sasl_mechanisms)
    return frozenset(
        protocol for protocol in SecurityProtocol if tls >= protocol.tls and sasl >= protocol.sasl
    )


def configured_listeners(settings: Settings) -> dict[str, SecurityProtocol]:
    """Return what is spoken on the listeners of gateway.listeners, or of a hidden gateway, by name:
    what the map says, else the protocol that a listener is called after if it is spoken at all,
    else PLAINTEXT.
    """
    mapped = settings.listener_protocol_names
    known = {one.name: one for one in spoken_protocols(settings)}
    return {
        name: known.get(mapped.get(name, name), SecurityProtocol.PLAINTEXT)
        for name in settings.gateway_listener_names
    }
