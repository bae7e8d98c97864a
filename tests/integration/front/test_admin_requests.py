"""Requests that tools leave under /admin become events, whenever they were left."""

from __future__ import annotations

from streaming.zk.znodes.admin import reassignment_bytes
from tests.fixtures.waiting import wait_for
from tests.fixtures.znodes import preferred_election_bytes
from tests.integration.front.harness import put_broker, put_topic

ELECTION = "/admin/preferred_replica_election"
PLAN = "/admin/reassign_partitions"


def test_elections_are_asked_for_topic_by_topic_and_then_it_is_said_that_this_is_all(
    zk_session, front
):
    zk_session.create(ELECTION, preferred_election_bytes([("u", 3), ("t", 1), ("t", 0), ("t", 1)]))
    assert front.wait_events("admin_znode_observed", 1) == [{"path": ELECTION, "zk_version": 0}]
    kinds = [(kind, key, body.get("partitions")) for kind, key, body in front.events()[-3:]]
    assert kinds == [
        ("elect_leaders_requested", "t", [0, 1]),
        ("elect_leaders_requested", "u", [3]),
        ("admin_znode_observed", "", None),
    ]
    zk_session.delete(ELECTION)
    zk_session.create(ELECTION, preferred_election_bytes([("t", 1)]))
    front.wait_events("admin_znode_observed", 2)
    assert [one["partitions"] for one in front.of_kind("elect_leaders_requested")[2:]] == [[1]]
    zk_session.set(ELECTION, preferred_election_bytes([("t", 0)]))
    assert front.wait_events("admin_znode_observed", 3)[2]["zk_version"] == 1


def test_a_request_that_waits_for_a_controller_comes_after_the_load(zk_session, start_with_job):
    put_broker(zk_session, 1)
    put_topic(zk_session, "t", [[1, 2]])
    zk_session.create("/admin", b"")
    zk_session.create(ELECTION, preferred_election_bytes([("t", 0)]))
    front = start_with_job()
    front.wait_events("admin_znode_observed", 1)
    kinds = [kind for kind, _, _ in front.events()]
    assert kinds.index("resync_completed") < kinds.index("elect_leaders_requested")


def test_what_nobody_can_read_asks_for_nothing_and_is_done_with(zk_session, front):
    zk_session.create(ELECTION, b'{"version":1,"partitions":[{"topic":"t"}]}')
    front.wait_events("admin_znode_observed", 1)
    assert front.of_kind("elect_leaders_requested") == []
    wait_for("a complaint", lambda: front.status()["counters"].get("broken_admin_requests") == 1)


def test_a_plan_becomes_reassignments_and_what_is_taken_out_of_it_is_no_news(zk_session, front):
    asked = {("u", 0): [3], ("t", 1): [1, 3], ("t", 0): [2, 1]}
    zk_session.create(PLAN, reassignment_bytes(asked))
    assert front.wait_events("alter_reassignments_requested", 2) == [
        {"request_id": None, "topic": "t", "partitions": [0, 1], "targets": [[2, 1], [1, 3]]},
        {"request_id": None, "topic": "u", "partitions": [0], "targets": [[3]]},
    ]
    zk_session.set(PLAN, reassignment_bytes({("u", 0): [3]}))
    zk_session.delete(PLAN)
    zk_session.create(PLAN, reassignment_bytes({("t", 0): [1]}))
    third = front.wait_events("alter_reassignments_requested", 3)[2]
    assert (third["topic"], third["targets"]) == ("t", [[1]])
    assert front.of_kind("admin_znode_observed") == []


def test_a_plan_that_asks_for_nothing_is_done_with(zk_session, front):
    zk_session.create(PLAN, reassignment_bytes({}))
    assert front.wait_events("admin_znode_observed", 1) == [{"path": PLAN, "zk_version": 0}]
    zk_session.delete(PLAN)
    zk_session.create(PLAN, b"[]")
    front.wait_events("admin_znode_observed", 2)
    wait_for("a complaint", lambda: front.status()["counters"].get("broken_admin_requests") == 1)
