"""What is found of a cluster that is to be migrated to KRaft."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import pytest

from streaming.migration.brokers import broker_findings
from streaming.migration.configs import config_findings
from streaming.migration.controllers import Controller
from streaming.migration.findings import Finding, Weight, such_as
from streaming.migration.metadata import metadata_findings
from streaming.security.scram import credential_of_password, credential_text
from streaming.verification.cluster import Cluster, Leadership, Topic
from streaming.wire.partition_rows import BrokerNode
from streaming.zk.znodes import config_bytes
from tests.fixtures.encoded_passwords import BY_CBC, SECRET

ID = "AAAAAAAAAAAAAAAAAAAAAQ"
STOPS, CHANGES, TO_DO = Weight.STOPS, Weight.CHANGES, Weight.TO_DO
READY = {
    "zookeeper.metadata.migration.enable": "true",
    "inter.broker.protocol.version": "3.9-IV0",
    "log.dirs": "/a",
    "broker.id.generation.enable": "true",
    "reserved.broker.max.id": "1000",
}


def told(findings: Iterable[Finding]) -> list[tuple[Weight, str, str]]:
    return [(one.weight, one.where, one.what) for one in findings]


def topic(*assigned: list[int], topic_id: str | None = ID, led: bool = True) -> Topic:
    held = {
        number: Leadership(ids[0], 0, tuple(ids), tuple(ids)) if led else None
        for number, ids in enumerate(assigned)
    }
    return Topic(topic_id, held, dict(enumerate(assigned)))


def cluster(topics: Mapping[str, Topic], **more: object) -> Cluster:
    brokers = {id_: BrokerNode(id_, None, ()) for id_ in (1, 2)}
    return Cluster(1, brokers, topics, **more)


def test_nothing_is_found_of_a_cluster_that_can_be_migrated() -> None:
    assert not told(metadata_findings(cluster({"t": topic([1, 2], [2, 1])})))
    assert not told(broker_findings({1: READY, 2: READY}))


def test_a_broker_that_is_gone_is_waited_for() -> None:
    topics = {"a": topic([1, 9], [9, 8], led=False), "b": topic([2, 9], [1, 9], [9, 1])}
    found = [one for one in told(metadata_findings(cluster(topics))) if one[0] is STOPS]
    assert found == [
        (STOPS, "broker 8", found[0][2]),
        (
            STOPS,
            "broker 9",
            "it is not running, and 5 partitions have a replica on it (a-0, a-1, b-0, ...): the"
            " migration waits for it",
        ),
    ]
    assert "1 partitions have a replica on it (a-1)" in found[0][2]


def test_what_cannot_be_taken_as_it_is() -> None:
    topics = {"a": topic([1], topic_id=None), "b": topic([1], [2], led=False)}
    broken = "/brokers/topics/x: broken topic znode: 'a: b'"
    looked_at = cluster(topics, deleted=frozenset({"c"}), unread=[broken])
    assert told(metadata_findings(looked_at)) == [
        (STOPS, "/brokers/topics/x", "it cannot be read: broken topic znode: 'a: b'"),
        (STOPS, "topics", "1 have no id (a)"),
        (
            CHANGES,
            "partitions",
            "2 never had a leader (b-0, b-1): they would begin with all replicas in sync",
        ),
        (
            CHANGES,
            "topics",
            "1 are being deleted (c): they are not migrated, and brokers delete what they have of"
            " them",
        ),
    ]


def test_many_are_not_all_named() -> None:
    assert such_as({"b", "a"}) == "a, b"
    assert such_as({f"n{number}" for number in range(9)}) == "n0, n1, n2, ..."


SCRAM = credential_text(credential_of_password("SCRAM-SHA-256", b"salted", b"salt", 4096))


@pytest.mark.parametrize(
    ("path", "config", "found"),
    [
        ("topics/t", {"retention.ms": "any"}, []),
        ("brokers/1", {"log.cleaner.threads": "2"}, []),
        ("brokers/<default>", {"log.cleaner.threads": "2"}, []),
        ("brokers/b", {}, ["b is no broker"]),
        ("users/u", {"SCRAM-SHA-256": SCRAM, "producer_byte_rate": " 1.5e3f"}, []),
        ("users/u/clients/c", {"consumer_byte_rate": ".5"}, []),
        ("clients/c", {"request_percentage": "NaN"}, []),
        ("ips/10.0.0.1", {"connection_creation_rate": "-7"}, []),
        (
            "users/u",
            {"producer_byte_rate": "fast"},
            ["producer_byte_rate cannot be read: 'fast' is no number"],
        ),
        (
            "users/u",
            {"producer_byte_rate": "1_0"},
            ["producer_byte_rate cannot be read: '1_0' is no number"],
        ),
        (
            "ips/a",
            {"connection_creation_rate": ""},
            ["connection_creation_rate cannot be read: '' is no number"],
        ),
        ("users/u", {"SCRAM-SHA-512": "x"}, ["SCRAM-SHA-512 cannot be read: "]),
        (
            "users/u/clients/c",
            {"SCRAM-SHA-256": "x"},
            ["SCRAM-SHA-256 cannot be read: 'x' is no number"],
        ),
    ],
)
def test_configurations_that_a_kraft_controller_cannot_read(
    path: str, config: dict[str, str], found: list[str]
) -> None:
    ones = told(config_findings({f"/config/{path}": config_bytes(config)}))
    assert [(weight, where) for weight, where, _ in ones] == [(STOPS, f"/config/{path}")] * len(
        found
    )
    assert all(what.startswith(begin) for (_, _, what), begin in zip(ones, found, strict=True))


def test_a_configuration_that_is_none() -> None:
    ((weight, where, what),) = told(config_findings({"/config/topics/t": b"{"}))
    assert (weight, where) == (STOPS, "/config/topics/t") and what.startswith("it cannot be read: ")


def test_passwords_are_encoded() -> None:
    config = config_bytes({"listener.name.a.ssl.key.password": "x"})
    ones = told(config_findings({f"/config/brokers/{name}": config for name in ("2", "1")}))
    where = "/config/brokers/1, /config/brokers/2"
    assert ones == [(TO_DO, where, "there are passwords that brokers have encoded")]


@pytest.mark.parametrize(("secret", "found"), [(SECRET, 0), ("another", 1), ("", 0)])
def test_controllers_have_the_secret_of_brokers(secret: str, found: int) -> None:
    key, path = "listener.name.a.ssl.key.password", "/config/brokers/1"
    configs = {path: config_bytes({key: BY_CBC})}
    controller = Controller("c.properties", {"password.encoder.secret": secret})
    ones = [one for one in config_findings(configs, [controller]) if one.weight is STOPS]
    assert [one.where for one in ones] == ["c.properties"] * found
    assert all(f"does not decode {key} of {path}: it is encoded with" in one.what for one in ones)


@pytest.mark.parametrize(
    ("changed", "weight", "what"),
    [
        ({"inter.broker.protocol.version": "3.3-IV3"}, STOPS, "3.4 is the oldest that migrates"),
        ({"inter.broker.protocol.version": None}, STOPS, "version = None, and 3.4"),
        ({"log.dirs": "/a,/b", "inter.broker.protocol.version": "3.7-IV1"}, STOPS, "2 disks, and"),
        ({"log.dirs": "/a,/b", "inter.broker.protocol.version": "3.7"}, CHANGES, "several disks"),
        ({"log.dirs": None, "log.dir": "/a,/b"}, CHANGES, "several disks"),
        ({"reserved.broker.max.id": "6"}, STOPS, "its id was generated"),
        ({"zookeeper.metadata.migration.enable": "false"}, TO_DO, "is not set"),
        ({"control.plane.listener.name": "C"}, TO_DO, "control.plane.listener.name = C"),
        (
            {"authorizer.class.name": "kafka.security.authorizer.AclAuthorizer"},
            TO_DO,
            "kafka.security.authorizer.AclAuthorizer does not work in KRaft mode",
        ),
        ({"authorizer.class.name": "a.B"}, TO_DO, "a.B has to work without ZooKeeper"),
    ],
)
def test_what_brokers_are_not_ready_for(
    changed: dict[str, str | None], weight: Weight, what: str
) -> None:
    ((found, where, said),) = told(broker_findings({7: READY | changed}))
    assert (found, where) == (weight, "broker 7") and what in said


def test_brokers_that_are_too_old_say_nothing_of_it() -> None:
    old = {"inter.broker.protocol.version": "2.8-IV1", "log.dirs": "/a,/b"}
    what = "it is older than Kafka 3.4, which cannot be migrated"
    assert told(broker_findings({3: old})) == [(STOPS, "broker 3", what)]


def test_brokers_differ_and_helmstream_is_none() -> None:
    ours, others = (
        {"gateway.advertised.host": ""},
        READY | {"inter.broker.protocol.version": "3.8-IV0"},
    )
    (us, differ) = broker_findings({1000: ours, 1: READY, 2: others})
    assert (us.weight, us.where) == (TO_DO, "broker 1000") and us.remedy.startswith("stop it")
    assert (differ.weight, differ.where) == (STOPS, "brokers")
    assert "(3.8-IV0, 3.9-IV0)" in differ.what
