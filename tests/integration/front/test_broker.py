"""A front beside a real, unmodified broker: takes the role from it, and gives it back by dying."""

from __future__ import annotations

import orjson
from kafka.admin import KafkaAdminClient, NewTopic

from streaming.demo.metadata import ask_metadata
from tests.fixtures.states import stored
from tests.fixtures.waiting import wait_for
from tests.integration.front.harness import CONTROLLER_ID


def holder(zk_session) -> int | None:
    znode = zk_session.get("/controller")
    return None if znode is None else orjson.loads(znode.data)["brokerid"]


def test_the_role_goes_back_and_forth(kafka_cluster, zk_session, start_front, start_job):
    cluster = kafka_cluster(brokers=1, config={"zookeeper.session.timeout.ms": "9000"})
    port = cluster.brokers[1].client_port
    wait_for("the built-in controller", lambda: ask_metadata(port).controller_id == 1)
    admin = KafkaAdminClient(bootstrap_servers=cluster.bootstrap_servers)
    admin.create_topics([NewTopic("t", 2, 1)])
    admin.close()

    settings = {
        "gateway_listeners": "",
        "inter_broker_listener_name": "INTERNAL",
        "zookeeper_session_timeout_ms": 6_000,
    }
    front = start_front(**settings)
    front.wait_listening()
    job = start_job()
    front.wait_role("active")
    assert holder(zk_session) == CONTROLLER_ID
    elected = front.of_kind("controller_elected")[0]
    assert elected["epoch"] == 2
    assert [end["listener"] for end in elected["endpoints"]] == ["CLIENT", "INTERNAL"]
    (registered,) = front.of_kind("broker_registrations_changed")[0]["registered"]
    assert (registered["id"], registered["epoch"]) == (1, zk_session.get("/brokers/ids/1").czxid)
    assert [end["port"] for end in registered["endpoints"]] == [
        cluster.brokers[1].client_port,
        cluster.brokers[1].internal_port,
    ]
    (topic,) = front.of_kind("topic_observed")
    assert (topic["topic"], topic["replicas"]) == ("t", [[1], [1]])
    assert topic["states"] == [stored(1, [1], controller_epoch=1)] * 2
    assert len(topic["topic_id"]) == 22
    status = front.status()
    assert len(status["cluster_id"]) == 22

    front.process.kill()
    wait_for("the built-in controller", lambda: holder(zk_session) == 1)
    front = start_front(**settings)
    job.resume()
    wait_for("the role", lambda: front.process.running and holder(zk_session) == CONTROLLER_ID)
    elected = front.wait_events("controller_elected", 2)[1]
    assert elected["epoch"] == 4
    front.wait_role("active")

    cluster.brokers[1].kill()
    gone = front.wait_events("broker_registrations_changed", 3)[2]
    assert gone["unregistered"] == [1]
    cluster.brokers[1].start()
    back = front.wait_events("broker_registrations_changed", 4)[3]
    assert [broker["id"] for broker in back["registered"]] == [1]
    assert front.stop() == 0
    wait_for("the built-in controller", lambda: holder(zk_session) == 1)
