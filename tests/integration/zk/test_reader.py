"""A session that only reads: nothing it is asked changes ZooKeeper, whatever is tried."""

from __future__ import annotations

import queue
from collections.abc import Callable, Iterator

import pytest

from streaming.zk.client import ZkSession
from streaming.zk.errors import WriteRefused
from streaming.zk.multiread import read_many
from streaming.zk.ops import OPEN_ACL, Create, MultiRequest
from streaming.zk.reader import ZkReader
from streaming.zk.types import WatchEvent, WatchKind
from tests.fixtures.zookeeper import SESSION_TIMEOUT_MS


@pytest.fixture
def reader(zk_session: ZkSession) -> Iterator[ZkReader]:
    zk_session.create("/there", b"x")
    with ZkReader(zk_session.hosts, SESSION_TIMEOUT_MS) as reader:
        yield reader


def test_a_reader_gets_znodes_and_children_and_hears_of_changes(
    reader: ZkReader, zk_session: ZkSession
) -> None:
    znode = reader.get("/there")
    assert znode is not None
    assert znode.data == b"x"
    assert reader.children("/") == ["there"]
    assert read_many(reader, ["/there", "/missing"]).data == [b"x", None]
    fired: queue.Queue[WatchEvent] = queue.Queue()
    reader.get("/there", fired.put)
    zk_session.set("/there", b"y")
    reader.sync()
    assert fired.get(timeout=60) == WatchEvent(WatchKind.CHANGED, "/there")
    assert reader.get("/there").data == b"y"


@pytest.mark.parametrize(
    "write",
    [
        lambda it: it._kazoo.create_async("/new", b"").get(timeout=60),
        lambda it: it._kazoo.set_async("/there", b"z"),
        lambda it: it._kazoo.delete_async("/there"),
        lambda it: it._kazoo.ensure_path_async("/a/b").get(timeout=60),
        lambda it: it._kazoo.set_acls_async("/there", []),
        lambda it: it._kazoo.transaction().commit_async(),
        lambda it: it.submit(MultiRequest([Create("/new", b"")], "", OPEN_ACL), "/new"),
    ],
    ids=["create", "set", "delete", "ensure_path", "set_acls", "transaction", "multi"],
)
def test_a_reader_refuses_to_write(
    reader: ZkReader, zk_session: ZkSession, write: Callable[[ZkReader], object]
) -> None:
    with pytest.raises(WriteRefused):
        write(reader)
    assert zk_session.children("/") == ["there"]
    znode = zk_session.get("/there")
    assert znode is not None
    assert (znode.data, znode.version) == (b"x", 0)


def test_a_chroot_is_not_created(zk_session: ZkSession) -> None:
    with ZkReader(f"{zk_session.hosts}/missing", SESSION_TIMEOUT_MS) as reader:
        assert reader.get("/x") is None
    assert zk_session.children("/") == []
