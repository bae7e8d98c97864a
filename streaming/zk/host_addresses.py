"""Where ZooKeeper's servers are, also while nobody can say it: their names are resolved beside."""

from __future__ import annotations

import logging
import socket
import threading
from collections.abc import Sequence
from concurrent.futures import Future, wait

logger = logging.getLogger(__name__)

Host = tuple[str, int]
"""Name and port."""
Address = tuple[str, str, int]
"""Name, address and port, as kazoo takes them."""


class HostAddresses:
    """What names resolved to last; used by one thread.

    A name that is not resolved in time, or not at all, stands for what it stood for before: when a
    server of names dies with one of ZooKeeper's, sessions find their way to the others.
    """

    def __init__(self) -> None:
        """Know none."""
        self._known: dict[Host, list[Address]] = {}
        self._asked: dict[Host, Future[list[Address]]] = {}

    def of(self, hosts: Sequence[Host], timeout_s: float) -> list[Address]:
        """Return the addresses of all hosts in their order, after timeout_s at the latest."""
        for host in hosts:
            if host not in self._asked:
                self._asked[host] = _ask(host)
        wait(self._asked.values(), timeout_s)
        for host in hosts:
            if self._asked[host].done():
                found = self._asked.pop(host).result()
                self._known[host] = found or self._known.get(host, [])
            else:
                logger.warning("the name %s is not resolved within %.1f s", host[0], timeout_s)
        return [address for host in hosts for address in self._known.get(host, [])]

    @property
    def is_empty(self) -> bool:
        """Whether no name was resolved yet."""
        return not any(self._known.values())


def _ask(host: Host) -> Future[list[Address]]:
    """Resolve a name on a thread of its own: nothing ends a resolver that hangs."""
    asked: Future[list[Address]] = Future()
    threading.Thread(
        target=lambda: asked.set_result(_resolved(*host)), name=f"resolve-{host[0]}", daemon=True
    ).start()
    return asked


def _resolved(name: str, port: int) -> list[Address]:
    try:
        found = socket.getaddrinfo(name.strip(), port, 0, 0, socket.IPPROTO_TCP)
    except (OSError, UnicodeError) as error:
        logger.warning("the name %s cannot be resolved: %s", name, error)
        return []
    return [(name, str(address[0]), int(address[1])) for *_, address in found]
