"""Fenced writes on a real ZooKeeper: zombies, conflicts, repeats, large ones, lost connections."""

from __future__ import annotations

import threading
import time

import pytest
from kazoo.security import make_acl

from streaming.embedded.zookeeper import EmbeddedZooKeeper
from streaming.zk.claim import claim_controller
from streaming.zk.client import ZkSession
from streaming.zk.errors import SessionLost
from streaming.zk.fenced import FencedWriter
from streaming.zk.multiread import read_many
from streaming.zk.ops import Create, Delete, SetData
from streaming.zk.outcomes import OutcomeKind
from streaming.zk.write_limits import WriteLimits
from tests.fixtures.waiting import WAIT_S, wait_for
from tests.fixtures.zookeeper import SESSION_TIMEOUT_MS, zookeeper_without_multiread


@pytest.fixture
def writer(zk_session):
    return FencedWriter(
        zk_session, claim_controller(zk_session, 1000, steal=True).epoch_zk_version, WriteLimits()
    )


def create_states(writer: FencedWriter, count: int) -> list[str]:
    paths = [f"/s/{number}" for number in range(count)]
    outcomes = writer.write([Create("/s"), *(Create(path, b"0") for path in paths)])
    assert {(o.kind, o.version) for o in outcomes} == {("written", 0)}
    return paths


def kinds(outcomes) -> list[str]:
    return [outcome.kind.value for outcome in outcomes]


def test_a_zombie_writes_nothing(zookeeper, zk_session, writer):
    paths = create_states(writer, 1_200)
    with ZkSession(zookeeper, SESSION_TIMEOUT_MS) as other:
        claim = claim_controller(other, 2, steal=True)
        outcomes = writer.write([SetData(path, b"zombie", 0) for path in paths])
        assert kinds(outcomes) == ["fenced"] * len(paths)
        assert set(read_many(zk_session, paths).data) == {b"0"}
        new = FencedWriter(other, claim.epoch_zk_version, WriteLimits())
        assert kinds(new.write([SetData(paths[0], b"new", 0)])) == ["written"]
    assert kinds(writer.write([SetData(paths[0], b"zombie", 1)])) == ["fenced"]


def test_what_was_written_before_the_fence_fell_is_told_apart(zookeeper, zk_session, writer):
    """Another one steals in the middle: each outcome is what the znode shows."""
    paths = create_states(writer, 20_000)
    outcomes = []
    thread = threading.Thread(
        target=lambda: outcomes.extend(writer.write([SetData(p, b"mine", 0) for p in paths]))
    )
    with ZkSession(zookeeper, SESSION_TIMEOUT_MS) as other:
        thread.start()
        wait_for("the first writes", lambda: zk_session.get(paths[0]).version > 0)
        claim_controller(other, 2, steal=True)
    thread.join(WAIT_S)
    written = [kind == "written" for kind in kinds(outcomes)]
    assert [v == 1 for v in read_many(zk_session, paths).version.tolist()] == written
    assert set(kinds(outcomes)) <= {"written", "fenced"}
    assert written[0]


def test_three_conflicts_cost_the_other_497_nothing(zk_session, writer):
    paths = create_states(writer, 500)
    zk_session.set(paths[0], b"changed")
    zk_session.delete(paths[250])
    zk_session.set(paths[499], b"changed")
    outcomes = writer.write([SetData(path, b"1", 0) for path in paths])
    conflicts = [number for number, kind in enumerate(kinds(outcomes)) if kind == "conflict"]
    assert conflicts == [0, 250, 499]
    assert kinds(outcomes).count("written") == 497
    assert outcomes[250].current is None
    for number in (0, 499):
        assert outcomes[number].current == zk_session.get(paths[number])
        assert outcomes[number].current.data == b"changed"
    assert set(read_many(zk_session, paths[1:250]).data) == {b"1"}


def test_all_of_them_conflicts(zk_session, writer):
    paths = create_states(writer, 3_000)
    outcomes = writer.write([SetData(path, b"1", 7) for path in paths])
    assert set(kinds(outcomes)) == {"conflict"}
    assert {o.current.version for o in outcomes} == {0}


def test_writes_are_judged_without_multiread_while_others_are_on_their_way(tmp_path):
    """A server before 3.6 refuses a multiRead ahead of what it was asked before, and hangs up."""
    with (
        zookeeper_without_multiread(tmp_path / "old") as server,
        ZkSession(server.connect_string, SESSION_TIMEOUT_MS) as session,
    ):
        claim = claim_controller(session, 1000, steal=True)
        writer = FencedWriter(session, claim.epoch_zk_version, WriteLimits())
        check_conflicts(session, writer, create_states(writer, 6_000))


def test_a_session_that_moves_to_a_server_without_multiread(tmp_path):
    """As while the servers of an ensemble are upgraded, or the upgrade is taken back."""
    new = EmbeddedZooKeeper(tmp_path / "one")
    old = zookeeper_without_multiread(tmp_path / "one", port=new.port)
    with new, ZkSession(new.connect_string, SESSION_TIMEOUT_MS) as session:
        claim = claim_controller(session, 1000, steal=True)
        writer = FencedWriter(session, claim.epoch_zk_version, WriteLimits())
        paths, session_id = create_states(writer, 6_000), session.session_id
        new.stop()
        with old:
            session.sync()
            check_conflicts(session, writer, paths)
            assert session.session_id == session_id


def check_conflicts(session, writer, paths):
    """Have somebody else change some of many znodes that are written at once."""
    states = []
    session.add_state_listener(states.append)
    changed = paths[100::600]
    for path in changed:
        session.set(path, b"changed")
    outcomes = writer.write([SetData(path, b"1", 0) for path in paths])
    conflicts = [one for one in outcomes if one.kind is OutcomeKind.CONFLICT]
    assert {one.current.data for one in conflicts} == {b"changed"}
    assert len(conflicts) == len(changed)
    assert kinds(outcomes).count("written") == len(paths) - len(changed)
    assert states == [], "the connection held"


def test_repeating_a_call_is_recognised_whole_and_half_done(zk_session, writer):
    paths = create_states(writer, 2_000)
    ops = [
        op
        for path in paths
        for op in (SetData(path, b"1", 0), SetData(path, b"2", 1), SetData(path, b"3", 2))
    ]
    first = writer.write(ops[: len(ops) // 2])  # the crash comes here
    assert set(kinds(first)) == {"written"}
    again = writer.write(ops)
    assert [o.version for o in again] == [1, 2, 3] * len(paths)
    assert set(kinds(again)) == {"written"}
    assert writer.write(ops) == again
    columns = read_many(zk_session, paths)
    assert set(columns.data) == {b"3"}
    assert set(columns.version.tolist()) == {3}


def test_a_chain_longer_than_a_multi(zk_session, writer):
    ops = [Create("/long", b"")] + [SetData("/long", b"%d" % i, i) for i in range(1_300)]
    outcomes = writer.write(ops)
    assert [o.version for o in outcomes] == list(range(1_301))
    assert zk_session.get("/long").data == b"1299"


def test_a_chain_with_a_conflict_in_the_middle_stops_there(zk_session, writer):
    zk_session.create("/c", b"")
    outcomes = writer.write(
        [SetData("/c", b"a", 0), SetData("/c", b"b", 5), SetData("/c", b"c", 6)]
    )
    # All three were in one multi, which failed: the first is made in the second try.
    assert kinds(outcomes) == ["written", "conflict", "conflict"]
    assert zk_session.get("/c").data == b"a"


def test_trees_are_made_and_deleted_in_order_although_multis_fail(zk_session, writer):
    """A multi with a parent fails for another reason; its children in later multis survive that."""
    zk_session.create("/taken", b"by another")
    topics = [f"/t{i}" for i in range(300)]
    creates = []
    for topic in topics:
        creates += [Create(topic), *(Create(f"{topic}/{p}", b"x") for p in range(5))]
        creates += [Create("/taken", b"mine")] if topic in {"/t3", "/t99"} else []
    outcomes = writer.write(creates)
    taken = [place for place, op in enumerate(creates) if op.path == "/taken"]
    assert [place for place, kind in enumerate(kinds(outcomes)) if kind != "written"] == taken
    assert all(zk_session.children(topic) == list("01234") for topic in topics[::50])
    zk_session.create("/t7/in-the-way")
    deletes = []
    for topic in topics:
        deletes += [*(Delete(f"{topic}/{p}", 0) for p in range(5)), Delete(topic)]
    outcomes = writer.write(deletes)
    left = [deletes[place].path for place, kind in enumerate(kinds(outcomes)) if kind != "written"]
    assert left == ["/t7"]
    assert zk_session.children("/t7") == ["in-the-way"]
    assert writer.write(deletes)[0].kind == "written"  # already gone


def test_a_missing_parent_is_a_conflict(writer):
    outcomes = writer.write([Create("/here"), Create("/missing/child"), Create("/here/child")])
    assert kinds(outcomes) == ["written", "conflict", "written"]
    assert "NO_NODE" in outcomes[1].reason


def test_what_can_never_be_written_is_rejected_alone(zookeeper, zk_session, writer):
    private = ((31, "digest", "someone:x1nq8J5GOJVPY6zgzhtTtA9izLc="),)
    with ZkSession(zookeeper, SESSION_TIMEOUT_MS, default_acl=private) as owner:
        owner.create("/private", b"secret")
    outcomes = writer.write(
        [
            Create("/a"),
            Create("/too-large", bytes(1_100_000)),
            SetData("/private", b"x", 0),
            Create("/a-control\x01character"),
            SetData("/conflict", b"x", 4),
            Create("/b"),
        ]
    )
    assert kinds(outcomes) == [
        "written",
        "rejected",
        "rejected",
        "rejected",
        "conflict",
        "written",
    ]
    assert "1040000" in outcomes[1].reason
    assert "NO_AUTH" in outcomes[2].reason
    assert "BAD_ARGUMENTS" in outcomes[3].reason
    assert outcomes[4].current is None
    assert [one.current for one in outcomes[1:4]] == [None] * 3, "missing, or not to be read"


def test_what_has_children_and_may_not_be_read_is_rejected(zk_session, writer):
    writer.write([Create("/a"), Create("/a/child"), Create("/b")])
    zk_session._kazoo.set_acls("/a", [make_acl("world", "anyone", create=True)])
    deleted = writer.write([Delete("/a"), Delete("/b")])
    assert kinds(deleted) == ["rejected", "written"]
    assert "NO_AUTH" in deleted[0].reason


def test_what_may_be_written_follows_the_servers_limit(zk_session):
    version = claim_controller(zk_session, 1000, steal=True).epoch_zk_version
    writer = FencedWriter(zk_session, version, WriteLimits(jute_maxbuffer=100_000))
    sizes = (60_000, 91_000, 92_000, 60_000)
    outcomes = writer.write([Create(f"/s{i}", bytes(size)) for i, size in enumerate(sizes)])
    assert kinds(outcomes) == ["written", "written", "rejected", "written"]
    assert "jute.maxbuffer" in outcomes[2].reason


def test_no_permission_for_any_of_many(zookeeper, zk_session, writer):
    acl = ((31, "auth", ""),)
    credentials = [("digest", "kafka:secret")]
    with ZkSession(zookeeper, SESSION_TIMEOUT_MS, auth_data=credentials, default_acl=acl) as owner:
        claim = claim_controller(owner, 1000, steal=True)
        create_states(FencedWriter(owner, claim.epoch_zk_version, WriteLimits()), 1_500)
    world = FencedWriter(zk_session, claim.epoch_zk_version, WriteLimits())
    zk_session.create("/open", b"")
    outcomes = world.write(
        [*(SetData(f"/s/{i}", b"x", 0) for i in range(1_500)), SetData("/open", b"x", 0)]
    )
    assert kinds(outcomes) == ["rejected"] * 1_500 + ["written"]


def test_multis_stay_under_the_servers_byte_limit(zk_session, writer):
    sizes = [300_000, 300_000, 1_030_000, 10, 600_000, 200_000, 1_030_000] + [4_000] * 400
    outcomes = writer.write([Create(f"/b{i}", bytes(size)) for i, size in enumerate(sizes)])
    assert set(kinds(outcomes)) == {"written"}
    data = read_many(zk_session, [f"/b{i}" for i in range(len(sizes))]).data
    assert [len(value) for value in data] == sizes


def test_nothing_to_write(writer):
    assert writer.write([]) == []


@pytest.mark.parametrize("downtime_s", [0.0, 0.5])
def test_a_server_killed_and_restarted_in_the_middle(zookeeper_server, downtime_s):
    # The server counts its sessions' time anew when it starts; the writer waits for its start too.
    with ZkSession(zookeeper_server.connect_string, 30_000) as session:
        claim = claim_controller(session, 1000, steal=True)
        writer = FencedWriter(session, claim.epoch_zk_version, WriteLimits())
        paths = create_states(writer, 30_000)
        ops = [op for p in paths for op in (SetData(p, b"1", 0), SetData(p, b"2", 1))]
        outcomes = []
        thread = threading.Thread(target=lambda: outcomes.extend(writer.write(ops)))
        thread.start()
        wait_for("the first writes", lambda: session.get(paths[2_000]).version > 0)
        assert not outcomes, "all was written before the server is killed"
        zookeeper_server.kill()
        time.sleep(downtime_s)
        zookeeper_server.start()
        thread.join(WAIT_S)
        assert [(o.kind, o.version) for o in outcomes] == [("written", 1), ("written", 2)] * len(
            paths
        )
        assert set(read_many(session, paths).version.tolist()) == {2}
        assert session.get("/controller").ephemeral_owner == claim.claimed_by


@pytest.mark.parametrize("end", ["kill", "pause"])
def test_a_server_that_does_not_come_back_ends_the_call(zookeeper_server, end):
    session = ZkSession(zookeeper_server.connect_string, 4_000)
    session.connect()
    claim = claim_controller(session, 1000, steal=True)
    writer = FencedWriter(session, claim.epoch_zk_version, WriteLimits())
    paths = create_states(writer, 10)
    getattr(zookeeper_server, end)()
    with pytest.raises(SessionLost):
        writer.write([SetData(path, b"1", 0) for path in paths])
    session.close()
