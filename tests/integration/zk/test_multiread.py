"""Bulk reads on a real ZooKeeper, and on one that is too old for multiRead."""

from __future__ import annotations

import pytest

from streaming.zk.claim import claim_controller
from streaming.zk.client import ZkSession
from streaming.zk.fenced import FencedWriter
from streaming.zk.multiread import children_many, read_many
from streaming.zk.ops import Create, SetData
from streaming.zk.write_limits import WriteLimits
from tests.fixtures.zookeeper import SESSION_TIMEOUT_MS, zookeeper_without_multiread


def fill(session: ZkSession, count: int) -> None:
    claim = claim_controller(session, 1000, steal=True)
    creates = [Create(f"/n/{i}", b"%d" % i) for i in range(0, count, 2)]
    changes = [SetData(f"/n/{i}", b"changed %d" % i, 0) for i in range(0, count, 10)]
    outcomes = FencedWriter(session, claim.epoch_zk_version, WriteLimits()).write(
        [Create("/n"), *creates, *changes]
    )
    assert {outcome.kind for outcome in outcomes} == {"written"}


def check(session: ZkSession, count: int) -> None:
    paths = [f"/n/{i}" for i in range(count)]
    columns = read_many(session, paths)
    assert columns.data == [
        None if i % 2 else b"changed %d" % i if i % 10 == 0 else b"%d" % i for i in range(count)
    ]
    assert columns.version.tolist() == [
        -1 if i % 2 else 1 if i % 10 == 0 else 0 for i in range(count)
    ]
    for row in (0, 1, 2, count - 2, count - 1):
        assert columns.znode(row) == session.get(paths[row])
    children = children_many(session, ["/n", "/missing", "/n/0"])
    assert sorted(children[0]) == sorted(str(i) for i in range(0, count, 2))
    assert children[1:] == [None, []]


def test_ten_thousand_znodes_every_second_missing(zk_session):
    fill(zk_session, 10_000)
    check(zk_session, 10_000)


def test_nothing_to_read(zk_session):
    assert read_many(zk_session, []).data == []
    assert children_many(zk_session, []) == []


def test_large_znodes_are_read_in_small_batches(zk_session):
    zk_session.create("/large")
    contents = [bytes([65 + i % 26]) * 900_000 for i in range(12)]
    for number, content in enumerate(contents):
        zk_session.create(f"/large/{number}", content)
    paths = [f"/large/{i % 12}" for i in range(36)]
    assert read_many(zk_session, paths).data == [contents[i % 12] for i in range(36)]


def test_long_paths_stay_under_the_request_limit(zk_session):
    paths = ["/" + "é" * 2_000 + str(i) for i in range(1_500)]
    zk_session.create(paths[7], b"here")
    data = read_many(zk_session, paths).data
    assert data[7] == b"here"
    assert data.count(None) == len(paths) - 1


def test_reading_goes_on_after_a_server_restart(zookeeper_server):
    with ZkSession(zookeeper_server.connect_string, SESSION_TIMEOUT_MS) as session:
        fill(session, 2_000)
        zookeeper_server.kill()
        zookeeper_server.start()
        check(session, 2_000)


def test_a_server_without_multiread(tmp_path):
    with (
        zookeeper_without_multiread(tmp_path / "old") as server,
        ZkSession(server.connect_string, SESSION_TIMEOUT_MS) as session,
    ):
        fill(session, 1_200)
        check(session, 1_200)
        session.lacks_multi_read = False  # as if another server had answered just now
        check(session, 1_200)
    assert "zookeeper.version=3.5.9" in server.log_path.read_text()


@pytest.mark.parametrize("read", [read_many, children_many])
def test_no_permission_is_not_taken_for_missing(zookeeper, zk_session, read):
    from streaming.zk.errors import RequestFailed

    private = ((31, "digest", "someone:x1nq8J5GOJVPY6zgzhtTtA9izLc="),)
    with ZkSession(zookeeper, SESSION_TIMEOUT_MS, default_acl=private) as owner:
        owner.create("/private", b"secret")
    with pytest.raises(RequestFailed, match="NO_AUTH for /private"):
        read(zk_session, ["/missing", "/private"])
