"""A broker was dead when its replica was moved away, and refuses one of a topic of that name."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from kafka import TopicPartition

from state.protocol_errors import ProtocolError
from streaming.demo.cluster import DemoCluster
from streaming.explain.story import Explainer
from streaming.zk.client import ZkSession
from streaming.zk.znodes import broker_path, partition_state_path, topic_path
from tests.e2e.replica_folders import delete_earlier, on_disk, replica_folders, topics_of
from tests.e2e.waiting import wait_for

TOPIC = "again"
ASK_MS = 120_000
START_S = 120.0

pytestmark = [
    pytest.mark.timeout(900),
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),
    pytest.mark.usefixtures("plain_job"),
]


def create(admin: Any, demo: DemoCluster, replicas: list[int]) -> None:
    """Create the topic and wait until its brokers have it on their disks, with its id: that they
    note a moment later, and a broker without it takes the replica for one of any topic.
    """
    admin.create_topics({TOPIC: {"assignments": {0: replicas}}}, timeout_ms=ASK_MS)
    wait_for("the replicas", lambda: set(replicas) <= with_id(demo))


def with_id(demo: DemoCluster) -> set[int]:
    """Return the brokers whose replica says of which topic it is."""
    found = replica_folders(demo)
    return {one.broker for one in found if one.topic == TOPIC and one.topic_id is not None}


def isr(session: ZkSession) -> list[int]:
    znode = session.get(partition_state_path(TOPIC, 0))
    return [] if znode is None else sorted(orjson.loads(znode.data)["isr"])


def move(admin: Any, replicas: list[int]) -> None:
    admin.alter_partition_reassignments({TopicPartition(TOPIC, 0): replicas}, timeout_ms=ASK_MS)


def refusal(demo: DemoCluster, broker: int) -> int | None:
    """What `explain` says of the last change of the partition."""
    with Explainer(demo.folders) as explainer:
        (change,) = explainer.story(TOPIC, 0, 1)
    return change.refused_by(broker)


def test_explain_tells_of_a_replica_that_its_broker_refuses(
    demo: DemoCluster, session: ZkSession, admin: Any
) -> None:
    create(admin, demo, [1, 2])
    demo.broker(2).kill()
    wait_for("its session's end", lambda: session.get(broker_path(2)) is None)
    move(admin, [1])
    wait_for("the move's end", lambda: topics_of(session)[TOPIC].replicas == {0: [1]})
    admin.delete_topics([TOPIC], timeout_ms=ASK_MS)
    wait_for("the topic's end", lambda: session.get(topic_path(TOPIC)) is None)
    wait_for("its replica's end", lambda: on_disk(demo, TOPIC) == [2])
    create(admin, demo, [1])
    demo.broker(2).start()

    move(admin, [1, 2])
    wait_for("its refusal", lambda: refusal(demo, 2) == ProtocolError.INCONSISTENT_TOPIC_ID)
    assert isr(session) == [1]

    assert delete_earlier(demo, session, START_S) == [f"{TOPIC}-0 on 2"]
    wait_for("both in sync", lambda: isr(session) == [1, 2])
    wait_for("the move's end", lambda: not topics_of(session)[TOPIC].adding)
    assert refusal(demo, 2) is None
