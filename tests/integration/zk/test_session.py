"""A session's states, watches and errors against a server that stops, restarts and forgets."""

from __future__ import annotations

import queue
import socket
import threading
import time
from contextlib import closing, suppress

import pytest

from streaming.embedded.ports import free_ports
from streaming.observers.tree import DirtyPaths, WatchedTree
from streaming.zk.client import ZkSession
from streaming.zk.errors import (
    NodeExists,
    NodeMissing,
    RequestFailed,
    SessionLost,
    VersionMismatch,
    ZooKeeperUnreachable,
)
from streaming.zk.types import SessionState, WatchEvent, WatchKind
from tests.fixtures.waiting import WAIT_S
from tests.fixtures.zookeeper import SESSION_TIMEOUT_MS


def next_value(values: queue.Queue, wanted):
    """Take values until one satisfies `wanted`, and return it."""
    deadline = time.monotonic() + WAIT_S
    while True:
        value = values.get(timeout=deadline - time.monotonic())
        if wanted(value):
            return value


class Follower:
    """Reads what a tree watches when it is marked as dirty, and at no other time."""

    def __init__(self, session: ZkSession) -> None:
        self.marks: queue.Queue[None] = queue.Queue()
        self.tree = WatchedTree(session, DirtyPaths(lambda: self.marks.put(None)))

    def wait_for(self, read, wanted):
        deadline = time.monotonic() + WAIT_S
        while (value := read()) != wanted:
            try:
                self.marks.get(timeout=max(deadline - time.monotonic(), 0))
            except queue.Empty:
                pytest.fail(f"{value!r} was read last, {wanted!r} never")

    def children(self, path, wanted):
        self.wait_for(lambda: self.tree.children(path), wanted)

    def data(self, path, wanted):
        self.wait_for(lambda: (znode := self.tree.get(path)) and znode.data, wanted)


def test_that_no_zookeeper_answers_is_said_with_where_and_how_long_it_was_waited_for():
    hosts = f"127.0.0.1:{free_ports(1)[0]}"
    with pytest.raises(ZooKeeperUnreachable, match=f"{hosts} did not answer within 700 ms") as e:
        ZkSession(hosts, SESSION_TIMEOUT_MS).connect(timeout_ms=700)
    assert (e.value.hosts, e.value.waited_ms) == (hosts, 700)


def test_basic_operations_and_their_errors(zk_session):
    zk_session.create("/a", b"one")
    assert zk_session.set("/a", b"two", 0) == 1
    znode = zk_session.get("/a")
    assert (znode.data, znode.version, znode.ephemeral_owner) == (b"two", 1, 0)
    assert znode.mzxid > znode.czxid > 0
    assert zk_session.create_sequential("/a/n_", b"") == "/a/n_0000000000"
    assert zk_session.children("/a") == ["n_0000000000"]
    with pytest.raises(NodeExists):
        zk_session.create("/a")
    with pytest.raises(NodeMissing):
        zk_session.create("/missing/child")
    with pytest.raises(VersionMismatch):
        zk_session.set("/a", b"three", 0)
    with pytest.raises(RequestFailed, match="NOT_EMPTY for /a"):
        zk_session.delete("/a")
    with pytest.raises(NodeMissing):
        zk_session.delete("/missing")
    assert zk_session.get("/missing") is None
    assert zk_session.children("/missing") is None
    zk_session.ensure_path("/x/y/z")
    assert zk_session.children("/x/y") == ["z"]


def test_the_data_has_an_owner_while_the_session_lives(zookeeper, zk_session):
    with ZkSession(zookeeper, SESSION_TIMEOUT_MS) as other:
        other.create("/mine", b"", ephemeral=True)
        assert zk_session.get("/mine").ephemeral_owner == other.session_id
    assert zk_session.get("/mine") is None


def test_one_shot_watches_see_creation_change_children_and_deletion(zk_session):
    events: queue.Queue[WatchEvent] = queue.Queue()
    assert zk_session.get("/w", events.put) is None
    zk_session.create("/w")
    assert events.get(timeout=WAIT_S) == WatchEvent(WatchKind.CREATED, "/w")
    zk_session.get("/w", events.put)
    zk_session.set("/w", b"x")
    assert events.get(timeout=WAIT_S) == WatchEvent(WatchKind.CHANGED, "/w")
    zk_session.children("/w", events.put)
    zk_session.create("/w/child")
    assert events.get(timeout=WAIT_S) == WatchEvent(WatchKind.CHILDREN_CHANGED, "/w")
    zk_session.delete("/w/child")
    zk_session.get("/w", events.put)
    zk_session.delete("/w")
    assert events.get(timeout=WAIT_S) == WatchEvent(WatchKind.DELETED, "/w")
    assert zk_session.children("/w", events.put) is None
    zk_session.create("/w")
    assert events.get(timeout=WAIT_S) == WatchEvent(WatchKind.CREATED, "/w")


def test_a_restarted_server_keeps_the_session_and_what_is_watched_is_read_again(zookeeper_server):
    states: queue.Queue[SessionState] = queue.Queue()
    hosts = zookeeper_server.connect_string
    with ZkSession(hosts, SESSION_TIMEOUT_MS, on_state=states.put) as session:
        session.create("/ids")
        session.create("/mine", ephemeral=True)
        session_id = session.session_id
        follower = Follower(session)
        follower.children("/ids", [])
        follower.data("/value", None)
        zookeeper_server.kill()
        next_value(states, lambda state: state is SessionState.IN_DOUBT)
        zookeeper_server.start()
        next_value(states, lambda state: state is SessionState.HELD)
        assert session.session_id == session_id
        assert session.get("/mine").ephemeral_owner == session_id
        with ZkSession(hosts, SESSION_TIMEOUT_MS) as other:
            other.create("/ids/1")
            other.create("/value", b"first")
            follower.children("/ids", ["1"])
            follower.data("/value", b"first")
            other.create("/ids/2")
            other.set("/value", b"second")
            follower.children("/ids", ["1", "2"])
            follower.data("/value", b"second")


def test_an_expired_session_is_lost_and_a_new_one_follows(zookeeper_server):
    states: queue.Queue[SessionState] = queue.Queue()
    with ZkSession(
        zookeeper_server.connect_string, SESSION_TIMEOUT_MS, on_state=states.put
    ) as session:
        session.create("/mine", ephemeral=True)
        session.create("/ids")
        first_id = session.session_id
        follower = Follower(session)
        follower.children("/ids", [])
        end_session(session)
        next_value(states, lambda state: state is SessionState.LOST)
        next_value(states, lambda state: state is SessionState.HELD)
        assert session.session_id not in {None, first_id}
        assert session.get("/mine") is None
        session.create("/ids/1")
        follower.children("/ids", ["1"])


def end_session(victim: ZkSession) -> None:
    """End another client's session: connect with its id and password, and close."""
    from kazoo.client import KazooClient

    client = KazooClient(victim.hosts, timeout=1, client_id=victim._kazoo.client_id)
    client.start(timeout=WAIT_S)
    client.stop()
    client.close()


def test_calls_on_a_server_that_is_gone_are_bounded(zookeeper_server):
    with ZkSession(zookeeper_server.connect_string, 4_000) as session:
        zookeeper_server.kill()
        with pytest.raises(ZooKeeperUnreachable):
            session.get("/a")
        session.close()
        with pytest.raises(SessionLost):
            session.get("/a")


class _SilentServers:
    """Stands before a server: after `silence` the next connections are taken, and nothing is said.

    silent: how many are still to be taken so.
    """

    def __init__(self, server_port: int) -> None:
        self._server_port = server_port
        self._ends: list[socket.socket] = []
        self.silent = 0
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listening.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def silence(self, connections: int) -> None:
        self.silent = connections
        self.close_connections()

    def close_connections(self) -> None:
        for end in self._ends:
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        with suppress(OSError):
            self._listening.shutdown(socket.SHUT_RDWR)
        self.close_connections()
        for end in (self._listening, *self._ends):
            end.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client = self._listening.accept()[0]
                self._ends.append(client)
                if self.silent:
                    self.silent -= 1
                    continue
                server = socket.create_connection(("127.0.0.1", self._server_port))
                self._ends.append(server)
                for ends in ((client, server), (server, client)):
                    threading.Thread(target=_pass_on, args=ends, daemon=True).start()


def _pass_on(source: socket.socket, target: socket.socket) -> None:
    with suppress(OSError):
        while data := source.recv(65536):
            target.sendall(data)
        target.shutdown(socket.SHUT_RDWR)


def test_servers_that_take_a_connection_and_say_nothing_do_not_cost_the_session(shared_zookeeper):
    states: queue.Queue[SessionState] = queue.Queue()
    with (
        closing(_SilentServers(int(shared_zookeeper.rpartition(":")[2]))) as servers,
        ZkSession(f"127.0.0.1:{servers.port}", 6_000, on_state=states.put) as session,
    ):
        session_id = session.session_id
        servers.silence(2)
        next_value(states, lambda state: state is SessionState.IN_DOUBT)
        assert next_value(states, lambda state: True) is SessionState.HELD
        assert session.session_id == session_id
        assert not servers.silent


def test_digest_credentials_open_what_they_protect(zookeeper, zk_session):
    acl = ((31, "auth", ""), (1, "world", "anyone"))
    credentials = [("digest", "kafka:secret")]
    with ZkSession(
        zookeeper, SESSION_TIMEOUT_MS, auth_data=credentials, default_acl=acl
    ) as secured:
        secured.create("/secured", b"x")
        assert zk_session.get("/secured").data == b"x"
        with pytest.raises(RequestFailed, match="NO_AUTH"):
            zk_session.set("/secured", b"y")
        assert secured.set("/secured", b"y") == 1
