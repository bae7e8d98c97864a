"""What of a real ZooKeeper a KRaft quorum would know."""

from __future__ import annotations

import orjson
import pytest

from streaming.dual_writes.knowledge import Known, LeftOut, Matter, Partition, Subject
from streaming.dual_writes.naming import PRODUCER_IDS
from streaming.dual_writes.znodes import ZooKeeperKnowledge, read_knowledge
from streaming.security.delegation_tokens import DelegationToken
from streaming.zk.client import ZkSession
from streaming.zk.znodes import (
    PRODUCER_ID_BLOCK_PATH,
    ProducerIdBlock,
    TopicZNode,
    config_bytes,
    partition_state_bytes,
    partition_state_path,
    producer_id_block_bytes,
    topic_bytes,
    topic_deletion_path,
    topic_path,
)
from streaming.zk.znodes.delegation_tokens import token_bytes, token_path
from tests.fixtures.znodes import hide, put_config, put_znode

ID = "AAAAAAAAAAAAAAAAAAAAAQ"
MOVING = TopicZNode({0: [3, 1, 2], 1: [1]}, ID, adding={0: [3]}, removing={0: [2, 1]})
TOKEN = DelegationToken("x", "User:a", "User:b", ("User:d", "User:c"), 1, 2, 3)


def read(session: ZkSession) -> Known:
    found = read_knowledge(session)
    assert not found.gaps
    return found.known


def test_nothing(zk_session: ZkSession) -> None:
    assert read_knowledge(zk_session) == ZooKeeperKnowledge()


def test_topics(zk_session: ZkSession) -> None:
    put_znode(zk_session, topic_path("t"), topic_bytes(MOVING))
    put_znode(zk_session, topic_path("gone"), topic_bytes(MOVING))
    put_znode(zk_session, topic_deletion_path("gone"))
    (state,) = partition_state_bytes([1], [7], [[2, 1, -1]], 3, [0])
    put_znode(zk_session, partition_state_path("t", 0), state)
    (topic,) = read(zk_session).topics.values()
    assert topic.topic_id == ID
    assert topic.partitions == {0: Partition(1, 7, (1, 2), (3, 1, 2), (3,), (1, 2)), 1: None}
    assert read_knowledge(zk_session).left_out.subjects == {Subject(Matter.TOPIC, "gone")}


def test_configurations_and_quotas(zk_session: ZkSession) -> None:
    put_config(zk_session, "topics/t", retention_ms="1")
    put_config(zk_session, "brokers/<default>", ssl_key_password="encoded")
    put_config(zk_session, "users/a%40b", rate="1e3")
    put_config(zk_session, "users/a%40b/clients/<default>", rate="2")
    put_config(zk_session, "clients/c", rate="3.5")
    put_config(zk_session, "ips/10.0.0.1")
    facts = {subject.name: said for subject, said in read(zk_session).facts.items()}
    assert str(facts["brokers/<default>"].pop("ssl.key.password")) == "(secret)"
    assert facts == {
        "topics/t": {"retention.ms": "1"},
        "brokers/<default>": {},
        "users/a%40b": {"rate": 1000.0},
        "users/a%40b/clients/<default>": {"rate": 2.0},
        "clients/c": {"rate": 3.5},
        "ips/10.0.0.1": {},
    }


def test_lists_and_tokens(zk_session: ZkSession) -> None:
    entry = {"principal": "User:a", "permissionType": "Allow", "operation": "Read", "host": "*"}
    put_znode(zk_session, "/kafka-acl-extended/prefixed/Group/g", orjson.dumps({"acls": [entry]}))
    put_znode(zk_session, token_path("x"), token_bytes(TOKEN))
    facts = read(zk_session).facts
    assert facts[Subject(Matter.ACL, "Group/prefixed/g")] == {"User:a from * may read": True}
    assert facts[Subject(Matter.DELEGATION_TOKEN, "x")]["renewers"] == ("User:c", "User:d")


def test_producer_ids(zk_session: ZkSession) -> None:
    """A broker's block was given, a quorum's is what comes next."""
    for broker, following in ((1, 3000), (-1, 2000)):
        block = producer_id_block_bytes(ProducerIdBlock(broker, 2000, 2999))
        put_znode(zk_session, PRODUCER_ID_BLOCK_PATH, block)
        assert read(zk_session).facts[PRODUCER_IDS] == {"next": following}


def test_what_cannot_be_read_is_a_gap(zk_session: ZkSession) -> None:
    broken = [
        topic_path("t"),
        "/config/topics/t",
        "/kafka-acl/Topic/t",
        token_path("x"),
        PRODUCER_ID_BLOCK_PATH,
    ]
    for path in broken:
        put_znode(zk_session, path, b"{")
    put_znode(zk_session, topic_path("s"), topic_bytes(TopicZNode({0: [1]}, ID)))
    put_znode(zk_session, state := partition_state_path("s", 0), b"{")
    put_znode(
        zk_session, "/config/users/u", config_bytes({"rate": "fast", "SCRAM-SHA-256": "salt=?"})
    )
    found = read_knowledge(zk_session)
    told = [gap.split(":")[0] for gap in found.gaps]
    assert told == [broken[0], state, broken[1], "/config/users/u", *broken[2:]]
    assert found.left_out == LeftOut(
        subjects={
            Subject(Matter.TOPIC, "t"),
            Subject(Matter.PARTITION, "s-0"),
            Subject(Matter.CONFIG, "topics/t"),
            Subject(Matter.CONFIG, "users/u"),
            Subject(Matter.ACL, "Topic/t"),
            Subject(Matter.DELEGATION_TOKEN, "x"),
            PRODUCER_IDS,
        }
    )
    assert not found.known.facts


@pytest.mark.parametrize("kind", ["config/users", "kafka-acl", "delegation_token/tokens"])
def test_what_may_not_be_read_is_left_out(zookeeper: str, zk_session: ZkSession, kind: str) -> None:
    hide(zookeeper, f"/{kind}")
    found = read_knowledge(zk_session)
    (gap,) = found.gaps
    assert f"NO_AUTH for /{kind}" in gap
    (matter,) = found.left_out.matters
    assert matter.value in {"config", "acl", "delegation_token"}
