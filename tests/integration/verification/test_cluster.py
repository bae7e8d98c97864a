"""A cluster read from a real ZooKeeper, with what should not be in one."""

from __future__ import annotations

from streaming.verification.cluster import Cluster, Leadership, Topic, read_cluster
from streaming.zk.client import ZkSession
from streaming.zk.znodes import (
    BROKER_IDS_PATH,
    CONTROLLER_PATH,
    controller_bytes,
    partition_state_path,
    topic_deletion_path,
    topic_path,
)
from tests.integration.front.harness import put_broker, put_state, put_topic

ID = "AAAAAAAAAAAAAAAAAAAAAQ"


def test_nothing_is_there_before_the_first_broker(zk_session: ZkSession) -> None:
    assert read_cluster(zk_session) == Cluster(None, {}, {}, unread=[])


def test_all_of_a_cluster_is_read(zk_session: ZkSession) -> None:
    put_broker(zk_session, 1)
    put_broker(zk_session, 20, rack="r", port=9093)
    zk_session.create(CONTROLLER_PATH, controller_bytes(20, 1), ephemeral=True)
    put_topic(zk_session, "t", [[1, 20], [20, 1]], topic_id=ID)
    put_state(zk_session, "t", 1, (1, 7, [20, 1]))
    put_topic(zk_session, "new", [[1]], states=False)
    put_topic(zk_session, "going", [[1]])
    zk_session.ensure_path(topic_deletion_path("going"))

    cluster = read_cluster(zk_session)
    assert (cluster.controller_id, cluster.unread) == (20, [])
    assert {id_: one.endpoints[0].port for id_, one in cluster.brokers.items()} == {
        1: 9092,
        20: 9093,
    }
    states = {0: Leadership(1, 4, (1, 20), (1, 20)), 1: Leadership(1, 7, (1, 20), (20, 1))}
    assert cluster.topics == {"t": Topic(ID, states), "new": Topic(None, {0: None})}
    assert cluster.left_out == {"going"}


def test_a_controller_of_a_kraft_quorum(zk_session: ZkSession) -> None:
    data = b'{"version":2,"brokerid":3000,"timestamp":"1","kraftControllerEpoch":4}'
    zk_session.create(CONTROLLER_PATH, data)
    cluster = read_cluster(zk_session)
    assert (cluster.controller_id, cluster.in_kraft) == (3000, True)


def test_what_cannot_be_read_is_told_and_left_out(zk_session: ZkSession) -> None:
    put_broker(zk_session, 1)
    zk_session.create(f"{BROKER_IDS_PATH}/2", b"not one")
    zk_session.create(CONTROLLER_PATH, b"nor this")
    put_topic(zk_session, "t", [[1], [1]])
    zk_session.set(partition_state_path("t", 1), b"{}")
    zk_session.ensure_path(topic_path("broken"))

    cluster = read_cluster(zk_session)
    assert (cluster.controller_id, list(cluster.brokers)) == (None, [1])
    assert cluster.topics["t"].partitions[1] is None
    assert cluster.left_out == {"broken"}
    assert [one.partition(": ")[0] for one in cluster.unread] == [
        f"{BROKER_IDS_PATH}/2",
        topic_path("broken"),
        partition_state_path("t", 1),
    ]
