"""What is written of a real ZooKeeper, and what is not."""

from __future__ import annotations

from pathlib import Path

import orjson
import pytest

from streaming.dual_writes.knowledge import differences
from streaming.dual_writes.run import read_quorum
from streaming.dual_writes.znodes import read_knowledge
from streaming.kraft_snapshot.run import Written, cluster_records, write_kraft_snapshot
from streaming.kraft_snapshot.topics import TopicsUnreadable
from streaming.metadata_log.records import Record, RecordType
from streaming.security.delegation_tokens import DelegationToken
from streaming.security.scram import ScramCredential, credential_text
from streaming.settings_loader import load_settings
from streaming.zk.client import ZkSession
from streaming.zk.znodes import (
    PRODUCER_ID_BLOCK_PATH,
    ProducerIdBlock,
    TopicZNode,
    config_bytes,
    entity_config_path,
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
CREDENTIAL = credential_text(ScramCredential(b"salt", b"stored", b"server", 4096))
ENTRY = {"principal": "User:a", "permissionType": "Allow", "operation": "Read", "host": "*"}
NOW_MS = 1_000


def written(zookeeper: str, folder: Path) -> Written:
    settings = load_settings(overrides=[f"zookeeper.connect={zookeeper}"], environment={})
    return write_kraft_snapshot(settings, folder, NOW_MS)


def read(session: ZkSession) -> tuple[list[Record], list[str]]:
    gaps: list[str] = []
    return list(cluster_records(session, (), gaps)), gaps


def fill(session: ZkSession) -> None:
    put_znode(session, topic_path("t"), topic_bytes(MOVING))
    put_znode(session, topic_path("gone"), topic_bytes(MOVING))
    put_znode(session, topic_deletion_path("gone"))
    for partition, isr in enumerate(([2, 1, -1], [1, -1, -1])):
        (state,) = partition_state_bytes([1], [7], [isr], 3, [1 - partition])
        put_znode(session, partition_state_path("t", partition), state)
    put_config(session, "topics/t", retention_ms="1")
    put_config(session, "brokers/<default>", log_cleaner_threads="2")
    put_config(session, "brokers/7", log_cleaner_threads="3")
    put_config(session, "users/a%40b", producer_byte_rate="1e3")
    put_znode(
        session,
        entity_config_path("users", "alice"),
        config_bytes({"SCRAM-SHA-512": CREDENTIAL, "request_percentage": " 5d "}),
    )
    put_config(session, "users/<default>/clients/c", rate="2")
    put_config(session, "clients/<default>", rate="3.5")
    put_config(session, "ips/10.0.0.1", rate="4")
    deny = {**ENTRY, "permissionType": "Deny"}
    put_znode(session, "/kafka-acl/Topic/t", orjson.dumps({"acls": [ENTRY, ENTRY, deny]}))
    put_znode(session, "/kafka-acl-extended/prefixed/Group/g", orjson.dumps({"acls": [ENTRY]}))
    put_znode(session, token_path("x"), token_bytes(TOKEN))
    put_znode(
        session, PRODUCER_ID_BLOCK_PATH, producer_id_block_bytes(ProducerIdBlock(1, 2000, 2999))
    )


def test_a_quorum_would_know_all_that_zookeeper_has(
    zookeeper: str, zk_session: ZkSession, tmp_path: Path
) -> None:
    fill(zk_session)
    put_znode(zk_session, "/brokers/ids/3")
    found = written(zookeeper, tmp_path)
    assert (found.topics, found.partitions, found.others) == (1, 2, 14)
    assert (found.running_brokers, found.gaps) == ([3], [])
    known = read_knowledge(zk_session).known
    assert not list(differences(known, read_quorum(tmp_path).known))
    assert known.partitions == 2 and known.others == 12


def test_the_same_cluster_has_the_same_snapshot(
    zookeeper: str, zk_session: ZkSession, tmp_path: Path
) -> None:
    fill(zk_session)
    first, second = (written(zookeeper, tmp_path / name).path for name in "ab")
    assert first.read_bytes() == second.read_bytes()


def test_states_are_taken_over_whole(zk_session: ZkSession) -> None:
    """With how often they were written, and whether the leader recovers."""
    fill(zk_session)
    records, _ = read(zk_session)
    first, second = (record.body for record in records if record.kind is RecordType.PARTITION)
    assert (first["partition_epoch"], first["leader_recovery_state"]) == (1, 1)
    assert (first["isr"], first["replicas"]) == ([2, 1], [3, 1, 2])
    assert (second["isr"], second["leader_recovery_state"]) == ([1], 0)


def test_a_partition_that_never_had_a_leader_begins(zk_session: ZkSession) -> None:
    put_znode(zk_session, topic_path("t"), topic_bytes(TopicZNode({0: [3, 1]}, ID)))
    (_, partition), _ = read(zk_session)
    state = {key: partition.body[key] for key in ("leader", "leader_epoch", "isr")}
    assert state == {"leader": 3, "leader_epoch": 0, "isr": [3, 1]}


def test_what_cannot_be_taken_over_is_told(zk_session: ZkSession) -> None:
    put_znode(zk_session, topic_path("t"), topic_bytes(TopicZNode({0: [1]}, ID)))
    broken = ["/config/topics/t", "/config/clients/c", "/kafka-acl/Topic/t", token_path("x")]
    for path in (*broken, PRODUCER_ID_BLOCK_PATH, "/config/topics/gone"):
        put_znode(zk_session, path, b"{")
    put_config(zk_session, "users/u", rate="fast")
    put_config(zk_session, "brokers/seven", rate="1")
    put_config(zk_session, "brokers/7", ssl_key_password="encoded", log_cleaner_threads="3")
    records, gaps = read(zk_session)
    told = dict(gap.split(": ", 1) for gap in gaps)
    assert told.keys() == {
        *broken,
        PRODUCER_ID_BLOCK_PATH,
        "/config/users/u",
        "/config/brokers/seven",
        "/config/brokers/7",
    }
    assert told["/config/users/u"] == "rate: 'fast' is no number"
    assert (
        told["/config/brokers/7"]
        == "ssl.key.password: it is encoded with a secret that is not known"
    )
    (kept,) = (record.body for record in records[2:])
    assert (kept["resource_name"], kept["name"]) == ("7", "log.cleaner.threads")


@pytest.mark.parametrize(
    ("broken", "why"),
    [
        ((topic_path("t"), b"{"), f"1 topics .*{topic_path('t')}: "),
        ((topic_path("t"), topic_bytes(TopicZNode({0: [1]}))), "t has no id"),
        ((partition_state_path("s", 0), b"{"), f"{partition_state_path('s', 0)}: "),
    ],
)
def test_without_one_topic_nothing_is_written(
    zookeeper: str, zk_session: ZkSession, tmp_path: Path, broken: tuple[str, bytes], why: str
) -> None:
    put_znode(zk_session, topic_path("s"), topic_bytes(TopicZNode({0: [1]}, ID)))
    put_znode(zk_session, *broken)
    with pytest.raises(TopicsUnreadable, match=why):
        written(zookeeper, tmp_path)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("kind", ["config/users", "kafka-acl", "delegation_token/tokens"])
def test_what_may_not_be_read_is_told(zookeeper: str, zk_session: ZkSession, kind: str) -> None:
    hide(zookeeper, f"/{kind}")
    _, (gap,) = read(zk_session)
    assert f"NO_AUTH for /{kind}" in gap
