"""A topic deleted while one of its brokers is dead, on real brokers, with a job that is killed."""

from __future__ import annotations

from typing import Any

import pytest
from kafka import KafkaAdminClient

from streaming.demo.cluster import DemoCluster
from streaming.demo.steps import CRASHED, OURS
from streaming.sockets.status_socket import fetch_status
from streaming.supervisor.processes import JOB
from streaming.zk.client import ZkSession
from streaming.zk.znodes import entity_config_path, topic_deletion_path, topic_path
from tests.e2e.demo_cluster import take_control
from tests.e2e.replica_folders import replica_folders
from tests.e2e.waiting import wait_for

PARTITIONS = 4
GONE, KEPT = "gone", "kept"

pytestmark = [
    pytest.mark.timeout(900),
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),
    pytest.mark.usefixtures("plain_job"),
]


def folders(demo: DemoCluster, broker_id: int, topic: str) -> list[str]:
    """The partitions of a topic that a broker has on its disk."""
    found = [one for one in replica_folders(demo) if (one.broker, one.topic) == (broker_id, topic)]
    return sorted(one.path.name for one in found)


def told_of(demo: DemoCluster) -> set[str]:
    """The topics that running brokers tell of."""
    views = [view for view in demo.broker_views().values() if view is not None]
    return {topic for view in views for topic, _ in view.leaders}


def settled(demo: DemoCluster) -> bool:
    """Every partition is led by a broker that runs, which all brokers tell of."""
    now = demo.look()
    views = demo.broker_views().values()
    leaders = {key: one.leader for key, one in now.partitions.items() if one is not None}
    return now.controller_id == OURS and all(v and v.leaders == leaders for v in views)


def without_the_crashed(demo: DemoCluster) -> bool:
    """The broker is gone, and so it is from every ISR: clients do not hear of it any more."""
    now = demo.look()
    states = [one for one in now.seen() if one is not None]
    return CRASHED not in now.brokers and all(CRASHED not in one.isr for one in states)


def in_sync(demo: DemoCluster) -> bool:
    states = demo.look().seen()
    return all(one is not None and len(one.isr) == 3 for one in states) and settled(demo)


def delete(demo: DemoCluster, topic: str) -> None:
    """Delete a topic through the gateway with an unmodified client."""
    admin: Any = KafkaAdminClient(bootstrap_servers=[demo.gateway], request_timeout_ms=120_000)
    try:
        admin.delete_topics([topic], timeout_ms=60_000)
    finally:
        admin.close()


def znodes(session: ZkSession, topic: str) -> list[str]:
    paths = (topic_path(topic), entity_config_path("topics", topic), topic_deletion_path(topic))
    return [path for path in paths if session.get(path) is not None]


def test_a_topic_is_deleted_when_its_dead_broker_returns(
    demo: DemoCluster, session: ZkSession
) -> None:
    take_control(demo)
    for topic in (GONE, KEPT):
        demo.create_topic(topic, PARTITIONS)
    wait_for("full ISRs", lambda: in_sync(demo))
    wait_for(
        "all replicas",
        lambda: [len(folders(demo, id_, GONE)) for id_ in (1, 2, 3)] == [PARTITIONS] * 3,
    )

    demo.broker(CRASHED).kill()
    wait_for("the broker's end", lambda: without_the_crashed(demo) and settled(demo))
    delete(demo, GONE)
    demo.supervisor.kill(JOB)
    for id_ in (1, 2):
        wait_for(f"empty disks of broker {id_}", lambda id_=id_: not folders(demo, id_, GONE))
    assert len(znodes(session, GONE)) == 3
    assert len(folders(demo, CRASHED, GONE)) == PARTITIONS
    status = wait_for(
        "the deletion in the status",
        lambda: (s := fetch_status(demo.folders.root, 60))["deleting"] and s,
    )
    assert status["deleting"] == [GONE]
    wait_for("brokers that have forgotten it", lambda: told_of(demo) == {KEPT})

    demo.broker(CRASHED).start()
    wait_for("the end of the znodes", lambda: not znodes(session, GONE))
    assert not folders(demo, CRASHED, GONE)
    wait_for("full ISRs", lambda: in_sync(demo))

    demo.create_topic(GONE, 1)
    wait_for("the new topic", lambda: in_sync(demo))
    wait_for(
        "its replicas",
        lambda: [folders(demo, id_, GONE) for id_ in (1, 2, 3)] == [[f"{GONE}-0"]] * 3,
    )

    session.create(topic_deletion_path(KEPT))
    wait_for("the end of the other topic", lambda: not znodes(session, KEPT))
    assert not any(folders(demo, id_, KEPT) for id_ in (1, 2, 3))
