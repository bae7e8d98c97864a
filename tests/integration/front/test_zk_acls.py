"""Access control lists in a real ZooKeeper, followed as they change."""

from __future__ import annotations

import threading

import orjson
import pytest

from streaming.embedded.zookeeper import EmbeddedZooKeeper
from streaming.front import zk_acls
from streaming.front.zk_acls import ZkAcls, ignored_rights
from streaming.security.acls import AclTable, Client, Operation, ResourceType
from streaming.settings_loader import load_settings
from streaming.zk.client import ZkSession
from streaming.zk.reader import ZkReader
from streaming.zk.types import SessionState
from tests.fixtures.waiting import wait_for

ALICE = Client("User:alice", "10.0.0.1")
TOPIC, READ = ResourceType.TOPIC, Operation.READ


def acls(permission: str = "Allow", operation: str = "Read") -> bytes:
    entry = {
        "principal": "User:alice",
        "permissionType": permission,
        "operation": operation,
        "host": "*",
    }
    return orjson.dumps({"version": 1, "acls": [entry]})


class Tables:
    """What is told."""

    def __init__(self) -> None:
        self.last: AclTable | None = None

    def take(self, table: AclTable) -> None:
        self.last = table

    def may_read(self, topic: str) -> bool | None:
        assert self.last is not None
        return self.last.permits(ALICE, READ, TOPIC, topic)


@pytest.fixture
def tables() -> Tables:
    return Tables()


def following(zookeeper: str, tables: Tables) -> ZkAcls:
    given = [f"zookeeper.connect={zookeeper}", "zookeeper.session.timeout.ms=6000"]
    return ZkAcls(load_settings(overrides=given, environment={}), tables.take)


def put(session: ZkSession, path: str, data: bytes) -> None:
    session.ensure_path(path.rpartition("/")[0])
    session.create(path, data)


def notify(session: ZkSession, extended: bool = False) -> None:
    """What whoever changes lists leaves behind."""
    path = "/kafka-acl-extended-changes" if extended else "/kafka-acl-changes"
    session.ensure_path(path)
    session.create_sequential(f"{path}/acl_changes_", b"Topic:whatever")


def test_lists_are_followed_from_the_first_on(
    zookeeper: str, zk_session: ZkSession, tables: Tables
) -> None:
    followed = following(zookeeper, tables)
    followed.start()
    try:
        wait_for("the lists", lambda: tables.last is not None)
        assert tables.may_read("a") is None
        put(zk_session, "/kafka-acl/Topic/a", acls())
        notify(zk_session)
        wait_for("the list", lambda: tables.may_read("a"))
        put(zk_session, "/kafka-acl-extended/prefixed/Topic/b", acls())
        notify(zk_session, extended=True)
        wait_for("what names begin with", lambda: tables.may_read("b-1"))
        zk_session.set("/kafka-acl/Topic/a", acls("Deny"), 0)
        notify(zk_session)
        wait_for("the change", lambda: tables.may_read("a") is False)
        zk_session.delete("/kafka-acl/Topic/a", 1)
        notify(zk_session)
        wait_for("the end of the list", lambda: tables.may_read("a") is None)
        assert tables.may_read("b-1")
    finally:
        followed.close()


def test_what_nobody_can_read_is_for_nobody(
    zookeeper: str, zk_session: ZkSession, tables: Tables, caplog: pytest.LogCaptureFixture
) -> None:
    put(zk_session, "/kafka-acl/Topic/*", acls())
    put(zk_session, "/kafka-acl/Topic/broken", b"no json")
    put(zk_session, "/kafka-acl/Topic/new", acls(operation="Levitate"))
    put(zk_session, "/kafka-acl/Gremlin/x", acls())
    followed = following(zookeeper, tables)
    followed.start()
    try:
        wait_for("the lists", lambda: tables.last is not None)
        assert tables.may_read("other") is True
        assert (tables.may_read("broken"), tables.may_read("new")) == (False, False)
        assert "/kafka-acl/Topic/broken: broken znode" in caplog.text
    finally:
        followed.close()


def test_lists_that_cannot_be_read_at_the_start_are_read_later(
    zookeeper_server: EmbeddedZooKeeper, tables: Tables, caplog: pytest.LogCaptureFixture
) -> None:
    zookeeper_server.kill()
    given = [
        f"zookeeper.connect={zookeeper_server.connect_string}",
        "zookeeper.connection.timeout.ms=300",
    ]
    followed = ZkAcls(load_settings(overrides=given, environment={}), tables.take)
    followed.start()
    try:
        wait_for("a word of it", lambda: "may be out of date" in caplog.text)
        assert tables.last is None
        zookeeper_server.start()
        wait_for("the lists", lambda: tables.last is not None)
    finally:
        followed.close()


def test_what_changed_while_zookeeper_was_away_is_seen_after_it(
    zookeeper_server: EmbeddedZooKeeper, tables: Tables
) -> None:
    followed = following(zookeeper_server.connect_string, tables)
    followed.start()
    try:
        wait_for("the lists", lambda: tables.last is not None)
        with ZkSession(zookeeper_server.connect_string, 6_000) as session:
            put(session, "/kafka-acl/Topic/a", acls())
        zookeeper_server.kill()
        zookeeper_server.start()
        wait_for("the list", lambda: tables.may_read("a"))
    finally:
        followed.close()


def test_rights_that_are_not_looked_at_are_told_of(zk_session: ZkSession) -> None:
    with_rights = ["authorizer.class.name=kafka.security.authorizer.AclAuthorizer"]
    settings = [load_settings(overrides=one, environment={}) for one in ([], with_rights)]
    assert [ignored_rights(zk_session, one) for one in settings] == [None, None]
    zk_session.create("/kafka-acl", b"")
    told = [ignored_rights(zk_session, one) for one in settings]
    assert "set authorizer.class.name" in str(told[0]) and told[1] is None


def test_whatever_goes_wrong_lists_are_read_again(
    zookeeper: str,
    tables: Tables,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    def fails(*_: object) -> None:
        raise RuntimeError("out of luck")

    followed = following(zookeeper, tables)
    with monkeypatch.context() as broken:
        broken.setattr(zk_acls, "read_many", fails)
        followed.start()
        wait_for("a word of it", lambda: "out of luck" in caplog.text)
    try:
        wait_for("the lists", lambda: tables.last is not None)
    finally:
        followed.close()


def test_it_ends_at_once_and_leaves_no_session(
    zookeeper: str, tables: Tables, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[ZkReader] = []
    connect = ZkReader.connect

    def slowly(reader: ZkReader, timeout_ms: int) -> None:
        opened.append(reader)
        connecting.set()
        assert stopping.wait(20)
        connect(reader, timeout_ms)

    connecting, stopping = threading.Event(), threading.Event()
    monkeypatch.setattr(ZkReader, "connect", slowly)
    followed = following(zookeeper, tables)
    followed.start()
    assert connecting.wait(20)
    closing = threading.Thread(target=followed.close)
    closing.start()
    wait_for("the order to stop", lambda: followed._stopping)
    stopping.set()
    closing.join(5)
    assert not closing.is_alive()
    assert [one.state for one in opened] == [SessionState.LOST] and tables.last is None
