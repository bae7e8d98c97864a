"""What a front appends when it takes the role, on a ZooKeeper that brokers have filled."""

from __future__ import annotations

import orjson
import pytest

from state.topic_ids import topic_id_from_text, topic_id_to_text
from streaming.wire.endpoints import SecurityProtocol
from streaming.zk.claim import claim_controller
from streaming.zk.client import ZkSession
from streaming.zk.znodes import ProducerIdBlock, producer_id_block_bytes
from tests.fixtures.states import stored
from tests.fixtures.waiting import wait_for
from tests.fixtures.znodes import isr_change_bytes, log_dir_event_bytes
from tests.fixtures.zookeeper import SESSION_TIMEOUT_MS
from tests.integration.front.harness import (
    CONTROLLER_ID,
    put_broker,
    put_config,
    put_state,
    put_topic,
)

TOPIC_ID = "xVg7K6qyTvmxpuD7RnqU_w"


@pytest.fixture
def loaded(zk_session, start_with_job):
    """(broker epochs, events) of a load over a small cluster with a bit of everything."""
    epochs = [put_broker(zk_session, 1, rack="a"), put_broker(zk_session, 2, port=9093)]
    claim_controller(zk_session, 2, steal=False)
    put_topic(zk_session, "old", [[1, 2], [2, 1]], topic_id=TOPIC_ID)
    put_state(zk_session, "old", 1, (-1, 7, [2]))
    put_topic(zk_session, "new", [[2]], states=False)
    own = {"unclean.leader.election.enable": "true", "min.insync.replicas": "2"}
    put_config(zk_session, "topics", "old", own)
    put_config(zk_session, "brokers", "<default>", {"unclean.leader.election.enable": "true"})
    zk_session.create(
        "/latest_producer_id_block", producer_id_block_bytes(ProducerIdBlock(2, 1000, 1999))
    )
    front = start_with_job()
    front.wait_events("resync_completed", 1)
    return epochs, front.events()


def test_the_load_is_complete_and_in_order(loaded):
    _, events = loaded
    assert [(kind, key) for kind, key, _ in events] == [
        ("controller_elected", ""),
        ("broker_registrations_changed", ""),
        ("cluster_config_changed", ""),
        ("topic_observed", "new"),
        ("topic_observed", "old"),
        ("producer_id_block_observed", ""),
        ("resync_completed", ""),
    ]
    assert events[2][2] == {"config": {"unclean.leader.election.enable": True}}
    assert events[5][2] == {"block_end": 1999, "zk_version": 0}
    assert events[6][2] == {"topics": 2}


def test_the_election_and_the_brokers_of_a_load(loaded):
    epochs, events = loaded
    elected = events[0][2]
    endpoint = elected.pop("endpoints")[0]
    assert endpoint.pop("port") > 0
    assert endpoint == {"listener": "CLIENT", "host": "127.0.0.1", "security_protocol": 0}
    assert elected == {
        "controller_id": CONTROLLER_ID,
        "epoch": 2,
        "epoch_zk_version": 2,
        "config": {
            "unclean.leader.election.enable": False,
            "min.insync.replicas": 1,
            "leader.deprioritized.list": "",
            "unclean.recovery.manager.enabled": False,
            "leader.recovery.supported": True,
            "delete.topic.enable": True,
            "auto.leader.rebalance.enable": True,
            "leader.imbalance.per.broker.percentage": 10,
            "leader.imbalance.check.interval.ms": 300_000,
            "leader.rebalance.partitions.max": 200,
            "leader.rebalance.step.interval.ms": 1_000,
            "leader.rebalance.sync.wait.ms": 0,
            "controlled.shutdown.safety.check.enable": False,
        },
    }
    registered = events[1][2]
    assert [(b["id"], b["epoch"], b["rack"]) for b in registered["registered"]] == [
        (1, epochs[0], "a"),
        (2, epochs[1], None),
    ]
    assert registered["registered"][1]["endpoints"] == [
        {"listener": "CLIENT", "host": "127.0.0.1", "port": 9093, "security_protocol": 0}
    ]
    assert [registered[k] for k in ("unregistered", "bounced", "updated")] == [[], [], []]


def test_the_topics_of_a_load(loaded):
    _, events = loaded
    assert topic_id_to_text(topic_id_from_text(events[3][2].pop("new_topic_id")))
    assert events[3][2] == {
        "topic": "new",
        "topic_id": None,
        "unclean": None,
        "min_insync_replicas": None,
        "partitions": [0],
        "replicas": [[2]],
        "adding": [[]],
        "removing": [[]],
        "states": None,
        "zk_version": 0,
    }
    assert events[4][2] == {
        "topic": "old",
        "topic_id": TOPIC_ID,
        "new_topic_id": None,
        "unclean": True,
        "min_insync_replicas": 2,
        "partitions": [0, 1],
        "replicas": [[1, 2], [2, 1]],
        "adding": [[], []],
        "removing": [[], []],
        "states": [
            stored(1, [1, 2], leader_epoch=4, controller_epoch=1, zk_version=1),
            stored(-1, [2], leader_epoch=7, controller_epoch=1, zk_version=2),
        ],
        "zk_version": 0,
    }


def test_brokers_of_an_old_protocol_get_no_topic_ids(zk_session, start_with_job):
    put_broker(zk_session, 1)
    put_topic(zk_session, "t", [[1]])
    front = start_with_job(inter_broker_protocol_version="2.7")
    front.wait_events("resync_completed", 1)
    assert front.of_kind("topic_observed")[0]["new_topic_id"] is None
    assert not front.of_kind("controller_elected")[0]["config"]["leader.recovery.supported"]


def test_what_a_controller_leaves_in_zookeeper(zk_session, start_with_job):
    put_broker(zk_session, 1)
    put_topic(zk_session, "t", [[1]])
    for folder in ("/isr_change_notification", "/log_dir_event_notification"):
        zk_session.ensure_path(folder)
    zk_session.create_sequential(
        "/isr_change_notification/isr_change_", isr_change_bytes([("t", 0)])
    )
    zk_session.create_sequential(
        "/log_dir_event_notification/log_dir_event_", log_dir_event_bytes(1)
    )
    front = start_with_job()
    status = front.wait_role("active")

    holder = orjson.loads(zk_session.get("/controller").data)
    assert (holder["brokerid"], holder["version"]) == (CONTROLLER_ID, 2)
    assert zk_session.get("/controller_epoch").data == b"1"
    assert zk_session.get("/feature").data == b'{"features":{},"version":2,"status":1}'
    ours = zk_session.get(f"/brokers/ids/{CONTROLLER_ID}")
    assert ours.ephemeral_owner == zk_session.get("/controller").ephemeral_owner
    assert orjson.loads(ours.data)["listener_security_protocol_map"] == {"CLIENT": "PLAINTEXT"}
    assert zk_session.children("/isr_change_notification") == []
    assert zk_session.children("/log_dir_event_notification") == []
    # The states were read after the notifications were deleted: they bring no events of their own.
    assert not front.of_kind("partition_states_observed")
    assert not front.of_kind("log_dir_failure_notified")
    assert front.of_kind("broker_registrations_changed")[0]["registered"][0]["id"] == 1
    assert status["epoch"] == 1 and status["controller"] == CONTROLLER_ID
    assert front.of_kind("producer_id_block_observed") == [{"block_end": -1, "zk_version": -1}]


def test_broken_znodes_cost_only_themselves(zk_session, start_with_job):
    put_broker(zk_session, 1)
    zk_session.create("/brokers/ids/2", b"{broken", ephemeral=True)
    put_topic(zk_session, "good", [[1], [1]])
    zk_session.set("/brokers/topics/good/partitions/1/state", b"no state")
    zk_session.create("/brokers/topics/bad", b"{}")
    zk_session.ensure_path("/config/topics/good")
    zk_session.set("/config/topics/good", b"[")
    zk_session.create("/latest_producer_id_block", b"?")
    zk_session.ensure_path("/config/changes")
    front = start_with_job()
    status = front.wait_role("active")
    assert [b["id"] for b in front.of_kind("broker_registrations_changed")[0]["registered"]] == [1]
    (topic,) = front.of_kind("topic_observed")
    assert topic["topic"] == "good" and topic["unclean"] is None
    assert topic["states"] == [
        stored(1, [1], leader_epoch=4, controller_epoch=1, zk_version=1),
        None,
    ]
    assert front.of_kind("producer_id_block_observed") == [{"block_end": -1, "zk_version": -1}]
    assert status["counters"] == {
        "broken_broker_znodes": 1,
        "broken_configs": 1,
        "broken_partition_states": 1,
        "broken_producer_id_blocks": 1,
        "broken_topic_znodes": 1,
        "controller_claims": 1,
    }

    # What is mended is seen.
    zk_session.set("/brokers/topics/bad", b'{"version":1,"partitions":{"0":[1]}}')
    assert front.wait_events("topic_observed", 2)[1]["topic"] == "bad"
    zk_session.set("/brokers/ids/2", zk_session.get("/brokers/ids/1").data)
    change = front.wait_events("broker_registrations_changed", 2)[1]
    assert [b["id"] for b in change["registered"]] == [2]


def test_many_topics_are_loaded_in_groups(zk_session, start_with_job):
    put_broker(zk_session, 1)
    names = [f"topic-{number:04}" for number in range(1_203)]
    zk_session.ensure_path("/brokers/topics")
    for name in names:
        zk_session.create(f"/brokers/topics/{name}", b'{"version":1,"partitions":{"0":[1]}}')
    front = start_with_job()
    front.wait_events("resync_completed", 1)
    assert [body["topic"] for body in front.of_kind("topic_observed")] == names
    zk_session.set("/brokers/topics/topic-0777", b'{"version":1,"partitions":{"0":[1],"1":[1]}}')
    changed = front.wait_events("topic_observed", 1_204)[-1]
    assert (changed["topic"], changed["partitions"]) == ("topic-0777", [0, 1])


def test_a_chroot_that_is_not_there_is_named_and_not_made(zk_session, start_with_job):
    """It may be a wrong one; the first broker to start makes it if it is not."""
    where = f"{zk_session.hosts}/missing"
    front = start_with_job(where, gateway_listeners="", inter_broker_listener_name="INTERNAL")
    log = front.data_dir / "log" / "front.log"
    said = f"no broker is registered in ZooKeeper at {where}: one is waited for"
    wait_for("what is waited for", lambda: said in log.read_text())
    assert front.status()["role"] == "claiming"
    assert zk_session.children("/") == []
    with ZkSession(where, SESSION_TIMEOUT_MS) as broker:
        put_broker(broker, 1, listeners=("INTERNAL",))
        front.wait_role("active")
    assert log.read_text().count(said) == 1


def test_our_endpoints_follow_the_brokers_listeners(zk_session, start_with_job):
    front = start_with_job(gateway_listeners="", inter_broker_listener_name="INTERNAL")
    front.wait_role("claiming")  # no broker yet: nobody knows which listeners brokers will have
    assert zk_session.get("/controller") is None
    secured = {"CLIENT": SecurityProtocol.SASL_SSL}  # ours would be plain text there
    put_broker(zk_session, 1, listeners=("INTERNAL", "EDGE"), protocols=secured)
    front.wait_role("active")
    (elected,) = front.of_kind("controller_elected")
    assert [end["listener"] for end in elected["endpoints"]] == ["INTERNAL", "EDGE"]

    # A listener that comes later is told of, once, whoever has it.
    for broker_id in (2, 3):
        put_broker(zk_session, broker_id, listeners=("INTERNAL", "EDGE", "LATE"), port=9093)
        front.wait_events("broker_registrations_changed", broker_id)
    put_topic(zk_session, "t", [[1]])
    front.wait_events("topic_observed", 1)
    said = (front.data_dir / "log" / "front.log").read_text()
    assert said.count("came after this node had bound its own: LATE;") == 1
