"""Ports for servers that start a moment later."""

from __future__ import annotations

import itertools

from streaming.embedded.ports import PortPicker


def test_a_port_is_not_given_twice_before_its_server_listens():
    picker = PortPicker()
    given = sorted(port for _ in range(200) for port in picker.pick(2))
    assert apart(given) > 1, "a server may take the next port too"


def test_two_processes_that_have_shares_are_given_no_port_of_each_other():
    first, second = PortPicker(0, 2), PortPicker(1, 2)
    ports = [{port for _ in range(200) for port in picker.pick(2)} for picker in (first, second)]
    assert apart([max(ports[0]), min(ports[1])]) > 1


def apart(ports: list[int]) -> int:
    """Return how far apart the nearest two of sorted ports are."""
    return min(later - port for port, later in itertools.pairwise(ports))
