"""Servers as settings, URLs and registrations name them: host:port, an IPv6 address in brackets."""

from __future__ import annotations

_SERVER = r"([^\s,/:\[\]]+|\[[^\s,/\[\]]+\]):[0-9]+"
SERVERS_PATTERN = rf"{_SERVER}(,{_SERVER})*"


def host_and_port(server: str) -> tuple[str, int]:
    """Return a server's host, without brackets, and its port."""
    host, _, port = server.rpartition(":")
    return host.removeprefix("[").removesuffix("]"), int(port)
