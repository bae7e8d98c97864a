"""What an active front appends when ZooKeeper changes under it."""

from __future__ import annotations

from typing import Any

import orjson

from streaming.zk.client import ZkSession
from streaming.zk.ops import Create, Delete
from streaming.zk.znodes import TopicZNode, broker_path, topic_bytes
from streaming.zk.znodes.admin import reassignment_bytes
from tests.fixtures.states import stored
from tests.fixtures.waiting import WAIT_S, wait_for
from tests.fixtures.znodes import isr_change_bytes, log_dir_event_bytes
from tests.fixtures.zookeeper import SESSION_TIMEOUT_MS
from tests.integration.front.harness import put_broker, put_config, put_state, put_topic

LONG_TIMEOUT_MS = 30_000


def test_brokers_come_and_go(zookeeper, zk_session, front):
    with ZkSession(zookeeper, SESSION_TIMEOUT_MS) as session:
        epoch = put_broker(session, 2)
        came = front.wait_events("broker_registrations_changed", 2)[1]
        assert [(b["id"], b["epoch"]) for b in came["registered"]] == [(2, epoch)]
        assert (came["unregistered"], came["bounced"], came["updated"]) == ([], [], [])
    went = front.wait_events("broker_registrations_changed", 3)[2]
    assert went == {"registered": [], "unregistered": [2], "bounced": [], "updated": []}


def test_a_bounce_without_a_change_of_children_is_seen(zk_session, front):
    before = zk_session.get(broker_path(1))
    zk_session.multi([Delete(broker_path(1)), Create(broker_path(1), before.data, ephemeral=True)])
    change = front.wait_events("broker_registrations_changed", 2)[1]
    assert [(b["id"], b["epoch"]) for b in change["bounced"]] == [
        (1, zk_session.get(broker_path(1)).czxid)
    ]
    assert (change["registered"], change["unregistered"], change["updated"]) == ([], [], [])


def test_new_endpoints_are_an_update_and_broken_data_is_none(zk_session, front):
    znode = orjson.loads(zk_session.get(broker_path(1)).data)
    zk_session.set(broker_path(1), b"{")
    wait_for("a complaint", lambda: front.status()["counters"].get("broken_broker_znodes") == 1)
    znode["endpoints"] = ["CLIENT://127.0.0.1:9999"]
    zk_session.set(broker_path(1), orjson.dumps(znode))
    change = front.wait_events("broker_registrations_changed", 2)[1]
    assert [b["endpoints"][0]["port"] for b in change["updated"]] == [9999]
    assert (change["registered"], change["unregistered"], change["bounced"]) == ([], [], [])


def test_topics_come_grow_and_go(zk_session, front):
    put_topic(zk_session, "u", [[1]], states=False)
    new = front.wait_events("topic_observed", 2)[1]
    assert (new["topic"], new["states"], new["zk_version"]) == ("u", None, 0)
    put_state(zk_session, "u", 0, (1, 0, [1]))
    zk_session.set("/brokers/topics/u", topic_bytes(TopicZNode({0: [1], 1: [2]})))
    grown = front.wait_events("topic_observed", 3)[2]
    assert (grown["partitions"], grown["replicas"], grown["zk_version"]) == ([0, 1], [[1], [2]], 1)
    assert grown["states"] == [stored(1, [1], controller_epoch=1, zk_version=1), None]
    for path in ("partitions/0/state", "partitions/0", "partitions"):
        zk_session.delete(f"/brokers/topics/u/{path}")
    zk_session.delete("/brokers/topics/u")
    assert front.wait_events("topic_removed", 1) == [{"topic": "u", "topic_id": None}]
    put_topic(zk_session, "u", [[2]], states=False)
    again = front.wait_events("topic_observed", 4)[3]
    assert (again["topic"], again["replicas"]) == ("u", [[2]])


def test_a_topic_that_was_replaced_is_removed_first(zk_session, front):
    put_topic(zk_session, "u", [[1]], states=False)
    front.wait_events("topic_observed", 2)
    znode = topic_bytes(TopicZNode({0: [2]}))
    zk_session.multi([Delete("/brokers/topics/u"), Create("/brokers/topics/u", znode)])
    front.wait_events("topic_observed", 3)
    kinds = [(kind, body.get("replicas")) for kind, key, body in front.events() if key == "u"]
    assert kinds == [
        ("topic_observed", [[1]]),
        ("topic_removed", None),
        ("topic_observed", [[2]]),
    ]


def test_isr_notifications_are_read_and_deleted(zk_session, front):
    put_state(zk_session, "t", 0, (1, 4, [1]))
    put_state(zk_session, "t", 1, (2, 4, [2]))
    folder = "/isr_change_notification"
    zk_session.create_sequential(f"{folder}/isr_change_", b"broken")
    zk_session.create_sequential(
        f"{folder}/isr_change_", isr_change_bytes([("t", 1), ("t", 0), ("gone", 3)])
    )
    wait_for("deleted notifications", lambda: zk_session.children(folder) == [])
    observed = {b["topic"]: b for b in front.wait_events("partition_states_observed", 2)}
    assert observed["t"] == {
        "topic": "t",
        "cause": "notification",
        "partitions": [0, 1],
        "states": [
            stored(1, [1], leader_epoch=4, controller_epoch=1, zk_version=2),
            stored(2, [2], leader_epoch=4, controller_epoch=1, zk_version=2),
        ],
    }
    assert observed["gone"]["states"] == [None]
    front.wait_status("a complaint", lambda told: told["counters"].get("broken_notifications") == 1)


def test_log_dir_events_name_the_brokers_and_are_deleted(zk_session, front):
    folder = "/log_dir_event_notification"
    zk_session.create_sequential(f"{folder}/log_dir_event_", log_dir_event_bytes(1))
    assert front.wait_events("log_dir_failure_notified", 1) == [{"broker_ids": [1]}]
    wait_for("deleted events", lambda: zk_session.children(folder) == [])


def test_configuration_changes_that_matter_are_appended(zk_session, front):
    unclean = {"unclean.leader.election.enable": "true"}
    put_config(zk_session, "topics", "t", {"retention.ms": "1"})
    put_config(zk_session, "topics", "t", unclean)
    own = {"topic": "t", "unclean": True, "min_insync_replicas": None}
    assert front.wait_events("topic_config_changed", 1) == [own]
    put_config(zk_session, "topics", "t", {"min.insync.replicas": "2"})
    own = {"topic": "t", "unclean": None, "min_insync_replicas": 2}
    assert front.wait_events("topic_config_changed", 2)[1] == own
    put_config(zk_session, "brokers", "<default>", unclean)
    put_config(zk_session, "brokers", "1", unclean)
    expected: dict[str, Any] = {"config": {"unclean.leader.election.enable": True}}
    assert front.wait_events("cluster_config_changed", 1) == [expected]
    put_config(zk_session, "brokers", "<default>", {"min.insync.replicas": "3"})
    expected = {"config": {"unclean.leader.election.enable": False, "min.insync.replicas": 3}}
    assert front.wait_events("cluster_config_changed", 2)[1] == expected
    # Brokers purge what is old; we never delete an entry.
    assert len(zk_session.children("/config/changes")) == 6


def test_a_zookeeper_that_comes_back_loses_and_doubles_nothing(zookeeper_server, start_with_job):
    connect = zookeeper_server.connect_string
    with ZkSession(connect, LONG_TIMEOUT_MS) as session:  # with it would go broker 1
        put_broker(session, 1)
        put_topic(session, "t", [[1]])
        front = start_with_job(connect, zookeeper_session_timeout_ms=LONG_TIMEOUT_MS)
        front.wait_role("active")
        zookeeper_server.kill()
        wait_for("doubt", lambda: front.status()["in_doubt"])
        zookeeper_server.start()
        session.wait_until_held(WAIT_S)
        put_topic(session, "u", [[1]])
        put_broker(session, 2)
        front.wait_events("broker_registrations_changed", 2)
        front.wait_events("topic_observed", 2)
        put_topic(session, "v", [[1]])
        session.set("/brokers/topics/t", topic_bytes(TopicZNode({0: [1], 1: [1]})))
        front.wait_events("topic_observed", 4)
        assert front.status()["epoch"] == 1
        seen = [(b["topic"], b["zk_version"]) for b in front.of_kind("topic_observed")]
        assert sorted(seen) == [("t", 0), ("t", 1), ("u", 0), ("v", 0)]
        changes = front.of_kind("broker_registrations_changed")
        assert [[b["id"] for b in change["registered"]] for change in changes] == [[1], [2]]
        assert not any(c["unregistered"] or c["bounced"] or c["updated"] for c in changes)
        assert len(front.of_kind("controller_elected")) == 1


def test_what_the_job_wants_observed_again_is_appended_unchanged(
    zk_session, start_front, start_job
):
    put_topic(zk_session, "t", [[1]], topic_id="xVg7K6qyTvmxpuD7RnqU_w")
    front = start_front()
    front.wait_listening()
    job = start_job()
    front.wait_role("active")
    job.say({"type": "reobserve", "topics": ["t", "unknown"]})
    first, again = front.wait_events("topic_observed", 2)
    assert again == first | {"observed_again": True}
    assert front.of_kind("topic_removed") == [{"topic": "unknown", "topic_id": None}]
    job.say({"type": "reobserve", "topics": ["t"], "unwritable": ["t"]})
    *_, rejected = front.wait_events("topic_observed", 3)
    assert rejected == again | {"unwritable": True}


def test_what_a_tool_asked_of_a_topic_is_asked_again_with_it(zk_session, start_front, start_job):
    put_topic(zk_session, "t", [[1]])
    put_topic(zk_session, "u", [[1]])
    front = start_front()
    front.wait_listening()
    job = start_job()
    front.wait_role("active")
    zk_session.ensure_path("/admin")
    asked = {("t", 0): [2], ("u", 0): [2]}
    zk_session.create("/admin/reassign_partitions", reassignment_bytes(asked))
    of_t, _ = front.wait_events("alter_reassignments_requested", 2)
    job.say({"type": "reobserve", "topics": ["t", "u"], "unwritable": ["u"]})
    *_, again = front.wait_events("alter_reassignments_requested", 3)
    assert again == of_t
    last = [(kind, key) for kind, key, _ in front.events()[-3:]]
    assert last == [
        ("topic_observed", "t"),
        ("topic_observed", "u"),
        ("alter_reassignments_requested", "t"),
    ]
