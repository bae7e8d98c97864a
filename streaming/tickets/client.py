"""Says by a ticket who we are (RFC 4752)."""

from __future__ import annotations

import ipaddress
import socket

from streaming.tickets.jgss import GssFailed, Jgss
from streaming.wire.conversation import Conversation

NO_LAYER = b"\x01\x00\x00\x00"
"""What follows is neither signed nor sealed: Kafka and ZooKeeper leave that to TLS."""


def kerberos_conversation(jgss: Jgss, service: str, host: str) -> Conversation:
    """Begin a login at a host's service; raises GssFailed and JvmFailed.

    Of a host that is an address the name is looked up, as by Java's clients.
    """
    context = jgss.initiator(service, _named(host))
    heard = b""
    while not context.is_established:
        heard = yield context.initiate(heard)
    if not takes_no_layer(context.unwrap(heard)):
        raise GssFailed(f"{service} of {host} wants what follows to be signed or sealed")
    yield context.wrap(NO_LAYER)


def takes_no_layer(said: bytes) -> bool:
    """Whether a side goes on without signing and sealing."""
    return len(said) >= len(NO_LAYER) and bool(said[0] & NO_LAYER[0])


def _named(host: str) -> str:
    try:
        ipaddress.ip_address(host)
        return socket.getnameinfo((host, 0), socket.NI_NAMEREQD)[0]
    except (ValueError, OSError):
        return host
