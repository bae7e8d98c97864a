"""Ports for servers that start a moment later."""

from __future__ import annotations

from streaming.embedded.ports import free_ports


def test_a_port_is_not_given_twice_before_its_server_listens():
    given = [port for _ in range(200) for port in free_ports(2)]
    apart = [later - port for port, later in zip(sorted(given), sorted(given)[1:], strict=False)]
    assert min(apart) > 1, "a server may take the next port too"
