"""Names of ZooKeeper's servers that are resolved, late, or not at all."""

from __future__ import annotations

import socket
import threading
from typing import Any

import pytest

from streaming.zk.client import ZkSession
from streaming.zk.errors import ZooKeeperUnreachable
from streaming.zk.host_addresses import HostAddresses

LATE_S = 0.1
BOTH = [("one", 1), ("two", 2)]


class Names:
    """A resolver. late: names that it does not answer for before it may; unknown: nor ever."""

    def __init__(self) -> None:
        self.late: set[str] = set()
        self.unknown: set[str] = set()
        self.asked: list[str] = []
        self.goes_on = threading.Event()

    def getaddrinfo(self, name: str, port: int, *_: object) -> list[Any]:
        self.asked.append(name)
        if name in self.late:
            self.goes_on.wait(30)
        if name in self.unknown:
            raise socket.gaierror("no such name")
        return [(0, 0, 0, "", (f"address-of-{name}", port))]


@pytest.fixture
def names(monkeypatch: pytest.MonkeyPatch) -> Names:
    found = Names()
    monkeypatch.setattr(socket, "getaddrinfo", found.getaddrinfo)
    return found


def address(name: str, port: int) -> tuple[str, str, int]:
    return name, f"address-of-{name}", port


ALL = [address(*host) for host in BOTH]


def test_a_name_that_is_late_stands_for_what_it_stood_for(names: Names) -> None:
    addresses = HostAddresses()
    assert addresses.of(BOTH, 10) == ALL
    names.late = {"one"}
    for _ in range(3):
        assert addresses.of(BOTH, LATE_S) == ALL
    assert names.asked.count("one") == 2, "not again while it is asked"
    names.late.clear()
    names.goes_on.set()
    assert addresses.of(BOTH, 10) == ALL


def test_a_name_that_is_gone_stands_for_what_it_stood_for(names: Names) -> None:
    addresses = HostAddresses()
    names.unknown = {"two"}
    assert addresses.of(BOTH, 10) == ALL[:1]
    assert not addresses.is_empty
    names.unknown = {"one"}
    assert addresses.of(BOTH, 10) == ALL


def test_a_name_that_was_never_resolved_stands_for_nothing(names: Names) -> None:
    names.late = {"one", "two"}
    addresses = HostAddresses()
    assert addresses.of(BOTH, LATE_S) == []
    assert addresses.is_empty
    names.goes_on.set()


@pytest.mark.timeout(20)
def test_a_resolver_that_hangs_holds_nobody_up(names: Names) -> None:
    names.late = {"nowhere"}
    session = ZkSession("nowhere:2181", 300)
    with pytest.raises(ZooKeeperUnreachable):
        session.connect(100)
    names.goes_on.set()
