"""What a session makes of its connection: which id it has, and how long it tries one address."""

from __future__ import annotations

import threading
from types import SimpleNamespace

import pytest
from kazoo.handlers.threading import SequentialThreadingHandler
from kazoo.protocol.states import KazooState

from streaming.zk.reader import ZkReader


def test_a_session_keeps_its_id_until_it_is_lost():
    session = ZkReader("localhost:1")
    assert session.session_id is None
    for kazoo_state, client_id, held in (
        (KazooState.CONNECTED, (5, b""), 5),
        (KazooState.SUSPENDED, None, 5),
        (KazooState.CONNECTED, (5, b""), 5),
        (KazooState.SUSPENDED, None, 5),
        (KazooState.LOST, None, None),
        (KazooState.CONNECTED, (6, b""), 6),
    ):
        session._kazoo = SimpleNamespace(client_id=client_id)
        session._on_kazoo_state(kazoo_state)
        assert session.session_id == held


@pytest.mark.parametrize(
    ("hosts", "allowed_s"),
    [("127.0.0.1:1,127.0.0.1:2,127.0.0.1:3/a,b", 2.0), ("127.0.0.1:1", 6.0)],
)
def test_all_addresses_have_their_turn_in_the_last_third_of_a_session(
    monkeypatch, hosts, allowed_s
):
    tried = {}
    all_tried = threading.Event()

    def refuse(_, *, address, timeout, **__):
        tried[address[1]] = timeout
        if len(tried) == hosts.count("127.0.0.1"):
            all_tried.set()
        raise ConnectionRefusedError

    monkeypatch.setattr(SequentialThreadingHandler, "create_connection", refuse)
    session = ZkReader(hosts, 18_000)
    session._kazoo.start_async()
    assert all_tried.wait(60)
    session.close()
    assert set(tried.values()) == {allowed_s}
