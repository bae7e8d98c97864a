"""Free loopback ports for servers that must be told their port before they start."""

from __future__ import annotations

import random
import socket
from collections import deque
from contextlib import ExitStack, closing
from pathlib import Path

from streaming.errors import HelmstreamError

LOOPBACK = "127.0.0.1"
_LOWEST_PORT = 10_000
_DEFAULT_EPHEMERAL_LOW = 32_768
_ATTEMPTS = 200
_REMEMBERED = 500
_CONNECT_TIMEOUT_S = 0.5


class ServerPortTaken(HelmstreamError):
    """An embedded server cannot be started: something else listens on its port."""

    exit_code = 4

    def __init__(self, name: str, port: int) -> None:
        super().__init__(
            f"{name} cannot start: another program listens on {LOOPBACK}:{port}; stop that program"
        )
        self.name = name
        self.port = port


class PortPicker:
    """Picks free loopback TCP ports below the range of outgoing connections.

    A port inside that range can be taken by any client while its server is down for a restart; a
    client that keeps connecting to it can even meet itself. Ports picked lately, and those beside
    them, are left out: their servers may not have started.
    """

    def __init__(self, share: int = 0, shares: int = 1) -> None:
        self._given: deque[int] = deque(maxlen=_REMEMBERED)
        self.use_share(share, shares)

    def use_share(self, share: int, shares: int) -> None:
        """Pick from one of so many equal shares of the ports from now on.

        Processes that pick from different shares get no port that one of them has picked, nor one
        beside it.
        """
        self._share, self._shares = share, shares

    def pick(self, count: int) -> list[int]:
        """Pick `count` different free ports. Raises OSError when none is found."""
        size = (_ephemeral_low() - _LOWEST_PORT) // self._shares
        lowest = _LOWEST_PORT + self._share * size
        allowed = range(lowest, lowest + size - 1)  # without the neighbour of the next share
        with ExitStack() as held:
            ports: list[int] = []
            for _ in range(_ATTEMPTS):
                if len(ports) == count:
                    return ports
                port = random.SystemRandom().choice(allowed)
                if any(abs(port - one) <= 1 for one in self._given):
                    continue
                candidate = held.enter_context(closing(socket.socket()))
                try:
                    candidate.bind((LOOPBACK, port))
                except OSError:
                    continue
                ports.append(port)
                self._given.append(port)
            if len(ports) == count:
                return ports
        raise OSError(
            f"no {count} free loopback ports found between {allowed[0]} and {allowed[-1]}"
        )


PICKER = PortPicker()
"""This process's own."""
free_ports = PICKER.pick


def accepts_connections(port: int) -> bool:
    """Tell whether something listens on the loopback port."""
    try:
        with socket.create_connection((LOOPBACK, port), timeout=_CONNECT_TIMEOUT_S):
            return True
    except OSError:
        return False


def check_free(name: str, port: int) -> None:
    """Raise ServerPortTaken when something listens on the loopback port a server is to have."""
    if accepts_connections(port):
        raise ServerPortTaken(name, port)


def _ephemeral_low() -> int:
    try:
        text = Path("/proc/sys/net/ipv4/ip_local_port_range").read_text(encoding="ascii")
        low = int(text.split()[0])
    except (OSError, ValueError, IndexError):
        low = _DEFAULT_EPHEMERAL_LOW
    return low if low > _LOWEST_PORT + 1_000 else 65_536
