"""A topic's znode that ZooKeeper takes no write of, from a tool's request to its end."""

from __future__ import annotations

from typing import Any

import pytest

from state.protocol_errors import ProtocolError
from streaming.settings_loader import load_settings
from streaming.wire.apis import ApiKey
from streaming.zk.client import ZkSession
from streaming.zk.znodes import TopicZNode, parse_topic, topic_bytes, topic_path
from tests.fixtures.folding_job import BackgroundJob
from tests.fixtures.gateway_client import ask_once
from tests.fixtures.waiting import wait_for
from tests.fixtures.zookeeper import SESSION_TIMEOUT_MS
from tests.integration.front.harness import put_broker, put_state

READ_ONLY = ((31, "auth", ""), (1, "world", "anyone"))
OWNER = [("digest", "somebody:else")]
TOPIC = TopicZNode({0: [1]}, "xVg7K6qyTvmxpuD7RnqU_w")


@pytest.fixture
def front(zookeeper, zk_session, start_front, data_dir):
    """A front and a job that decides; topic t may be read by everybody and written by nobody."""
    put_broker(zk_session, 1)
    zk_session.ensure_path("/brokers/topics")
    with ZkSession(
        zookeeper, SESSION_TIMEOUT_MS, auth_data=OWNER, default_acl=READ_ONLY
    ) as session:
        session.create(topic_path("t"), topic_bytes(TOPIC))
    with ZkSession(zookeeper, SESSION_TIMEOUT_MS, auth_data=OWNER) as session:
        session.ensure_path(f"{topic_path('t')}/partitions/0")
        put_state(session, "t", 0, (1, 0, [1]))
    front = start_front(controller_lease_ms=120_000)
    front.wait_listening()
    given = {"data.dir": data_dir, "zookeeper.connect": zookeeper}
    job = BackgroundJob(load_settings((), [f"{key}={value}" for key, value in given.items()], {}))
    yield front
    job.close()
    assert job.failure is None


def folded(front):
    status = front.status()
    return status["role"] == "active" and not status["job"]["lag"] and status


def test_who_asks_for_what_zookeeper_rejects_hears_why_and_the_topic_stays(zk_session, front):
    wait_for("the load", lambda: folded(front))
    (elected,) = front.of_kind("controller_elected")
    asked: dict[str, Any] = {"topics": [{"name": "t", "count": 2, "assignments": None}]}
    asked |= {"timeout_ms": 60_000, "validate_only": False}
    port = elected["endpoints"][0]["port"]
    (answer,) = ask_once(port, ApiKey.CREATE_PARTITIONS, 3, asked)["results"]
    assert answer["error_code"] == ProtocolError.UNKNOWN_SERVER_ERROR
    assert "ZooKeeper rejects it" in answer["error_message"]
    assert "NO_AUTH for /brokers/topics/t" in answer["error_message"]
    loaded, again = front.wait_events("topic_observed", 2)
    assert again == loaded | {"observed_again": True, "unwritable": True}
    status = wait_for("its end", lambda: folded(front))
    assert (status["counters"]["rejected_writes"] > 0, status["partitions"]) == (True, 1)
    assert len(front.of_kind("topic_observed")) == 2, "it is not tried again and again"
    assert parse_topic(zk_session.get(topic_path("t")).data).replicas == {0: [1]}
