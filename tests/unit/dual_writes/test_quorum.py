"""What a quorum knows after records of its log."""

from __future__ import annotations

from uuid import UUID

import pytest

from streaming.dual_writes.knowledge import HIDDEN, Fact, Matter, Partition, Secret
from streaming.dual_writes.quorum import MigrationState, QuorumKnowledge
from streaming.metadata_log.records import Record, RecordType
from streaming.security.scram import ScramCredential
from streaming.wire.schema_codec import Body
from tests.unit.metadata_log.metadata_records import T_ID, T, U, change, partition, topic

BEGIN, END, ABORT = (
    Record(kind, {})
    for kind in (
        RecordType.BEGIN_TRANSACTION,
        RecordType.END_TRANSACTION,
        RecordType.ABORT_TRANSACTION,
    )
)
P = Partition(1, 0, (1, 2), (2, 1), (), ())
GONE = Record(RecordType.REMOVE_TOPIC, {"topic_id": T})


def after(*records: Record) -> QuorumKnowledge:
    knowledge = QuorumKnowledge()
    knowledge.apply(records)
    return knowledge


def facts(*records: Record) -> dict[tuple[Matter, str], dict[str, Fact]]:
    return {(*subject,): said for subject, said in after(*records).known.facts.items() if said}


def partition_after(*changes: Record) -> Partition | None:
    known = after(topic("t"), partition(), *changes).known
    assert known.partitions == 1
    return known.topics["t"].partitions[0]


def config(kind: int, name: str, key: str, value: str | None) -> Record:
    body = {"resource_type": kind, "resource_name": name, "name": key, "value": value}
    return Record(RecordType.CONFIG, body)


def quota(value: float, *entity: tuple[str, str | None], remove: bool = False) -> Record:
    parts = [{"entity_type": kind, "entity_name": name} for kind, name in entity]
    body = {"entity": parts, "key": "rate", "value": value, "remove": remove}
    return Record(RecordType.CLIENT_QUOTA, body)


def test_topics_come_and_go() -> None:
    known = after(topic("t"), partition(), topic("u", U), partition(0, U), GONE).known
    assert list(known.topics) == ["u"]
    again = after(topic("t"), GONE, topic("t", U), partition(3, U)).known
    assert list(again.topics["t"].partitions) == [3]
    assert after(topic("t")).known.topics["t"].topic_id == T_ID


def test_a_topic_takes_its_configuration_along() -> None:
    assert not facts(topic("t"), config(2, "t", "a", "b"), GONE)


def test_a_partition_changes_in_what_is_said() -> None:
    assert partition_after() == P
    assert partition_after(change()) == P
    assert partition_after(change(isr=[2])) == P._replace(isr=(2,))
    moving = {"replicas": [3, 2, 1], "adding_replicas": [3], "removing_replicas": [2, 1]}
    moved = P._replace(replicas=(3, 2, 1), adding=(3,), removing=(1, 2))
    assert partition_after(change(**moving)) == moved
    assert partition_after(change(**moving), change(adding_replicas=[])) == moved._replace(
        adding=()
    )


def test_whoever_is_said_to_lead_has_the_next_epoch() -> None:
    assert partition_after(change(leader=1)) == P._replace(leader_epoch=1)
    assert partition_after(change(leader=-1), change(leader=2)) == P._replace(
        leader=2, leader_epoch=2
    )


def test_configurations_are_called_as_in_zookeeper() -> None:
    assert facts(
        config(2, "t", "retention.ms", "1"),
        config(4, "", "a", "x"),
        config(4, "1", "b", "y"),
        config(4, "1", "b", None),
        config(4, "1", "listener.name.x.ssl.keystore.password", "s3cret"),
        config(16, "metrics", "interval.ms", "1"),
    ) == {
        (Matter.CONFIG, "client-metrics/metrics"): {"interval.ms": "1"},
        (Matter.CONFIG, "topics/t"): {"retention.ms": "1"},
        (Matter.CONFIG, "brokers/<default>"): {"a": "x"},
        (Matter.CONFIG, "brokers/1"): {"listener.name.x.ssl.keystore.password": HIDDEN},
    }


def test_quotas_are_called_as_in_zookeeper() -> None:
    assert facts(
        quota(1, ("user", "a@b")),
        quota(2, ("user", None), ("client-id", None)),
        quota(3, ("client-id", "c d"), ("user", "u")),
        quota(4, ("client-id", "app")),
        quota(4, ("client-id", "app"), remove=True),
        quota(5, ("ip", "10.0.0.1")),
    ) == {
        (Matter.CONFIG, "users/a%40b"): {"rate": 1},
        (Matter.CONFIG, "users/<default>/clients/<default>"): {"rate": 2},
        (Matter.CONFIG, "users/u/clients/c%20d"): {"rate": 3},
        (Matter.CONFIG, "ips/10.0.0.1"): {"rate": 5},
    }


def test_credentials() -> None:
    name: Body = {"name": "a@b", "mechanism": 2}
    keys = {"salt": b"1", "stored_key": b"2", "server_key": b"3", "iterations": 4096}
    given = Record(RecordType.USER_SCRAM_CREDENTIAL, name | keys)
    credential = Secret(ScramCredential(b"1", b"2", b"3", 4096))
    assert facts(given) == {(Matter.CONFIG, "users/a%40b"): {"SCRAM-SHA-512": credential}}
    assert not facts(given, Record(RecordType.REMOVE_USER_SCRAM_CREDENTIAL, name))


def acl(id_: UUID, **other: object) -> Record:
    body: Body = {
        "id": id_,
        "resource_type": 3,
        "resource_name": "g",
        "pattern_type": 3,
        "principal": "User:bob",
        "host": "*",
        "operation": 3,
        "permission_type": 3,
    }
    return Record(RecordType.ACCESS_CONTROL_ENTRY, body | other)


def test_access_control_lists() -> None:
    of_group, read = (Matter.ACL, "Group/g"), "User:bob from * may read"
    assert facts(acl(T), acl(U, permission_type=2)) == {
        of_group: {read: True, "User:bob from * may not read": True}
    }
    assert facts(acl(T, pattern_type=4, operation=10, resource_type=2)) == {
        (Matter.ACL, "Topic/prefixed/g"): {"User:bob from * may describe_configs": True}
    }
    gone = Record(RecordType.REMOVE_ACCESS_CONTROL_ENTRY, {"id": T})
    assert not facts(acl(T), gone)
    assert facts(acl(T), acl(U), gone) == {of_group: {read: True}}


def test_delegation_tokens() -> None:
    body: Body = {
        "token_id": "x",
        "owner": "User:a",
        "requester": "User:b",
        "renewers": ["User:d", "User:c"],
        "issue_timestamp": 1,
        "expiration_timestamp": 2,
        "max_timestamp": 3,
    }
    token = Record(RecordType.DELEGATION_TOKEN, body)
    said = facts(token)[Matter.DELEGATION_TOKEN, "x"]
    assert said["renewers"] == ("User:c", "User:d")
    assert (said["issued_ms"], said["expires_ms"], said["max_ms"]) == (1, 2, 3)
    assert not facts(token, Record(RecordType.REMOVE_DELEGATION_TOKEN, {"token_id": "x"}))


def test_the_last_of_producer_ids_and_states_counts() -> None:
    blocks = [Record(RecordType.PRODUCER_IDS, {"next_producer_id": n}) for n in (1000, 2000)]
    assert list(facts(*blocks).values()) == [{"next": 2000}]
    states = [Record(RecordType.ZK_MIGRATION_STATE, {"zk_migration_state": n}) for n in (2, 1)]
    assert after().migration is MigrationState.NONE
    assert after(*states).migration is MigrationState.MIGRATION


def test_a_transaction_counts_when_it_is_committed() -> None:
    inside = [topic("t"), partition()]
    assert not after(BEGIN, *inside).known.topics
    assert after(BEGIN, *inside, END).known.partitions == 1
    assert not after(BEGIN, *inside, ABORT).known.topics
    assert after(BEGIN, *inside, ABORT, topic("u", U)).known.topics.keys() == {"u"}


@pytest.mark.parametrize("misfit", [partition(), change(), GONE, change(number=9)])
def test_what_fits_nothing_is_an_error(misfit: Record) -> None:
    known = [topic("t"), partition()] if misfit.body.get("partition_id") == 9 else []
    with pytest.raises(KeyError):
        after(*known, misfit)
