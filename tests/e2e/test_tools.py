"""Kafka's own tools of 3.9 and 2.8, run for real, at the gateway and at a broker.

Each version at each place goes through the same stories; what a tool says and does is compared with
ZooKeeper and with what another tool shows.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from kafka import KafkaProducer

from tests.e2e.real_cluster import Kind, RealCluster, running
from tests.e2e.shared import Shared
from tests.e2e.waiting import wait_for
from tests.fixtures.kafka_tools import NEW, NEWEST, OLD, KafkaTools

pytestmark = [
    pytest.mark.timeout(900),
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),
]

_CONFIG = {
    "auto.create.topics.enable": "false",
    "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
    "allow.everyone.if.no.acl.found": "true",
}
_AT_ONCE = 2


@pytest.fixture(scope="module")
def clusters(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shared[RealCluster]]:
    kinds = {id_: Kind(config=_CONFIG) for id_ in (1, 2, 3)}
    with Shared(lambda: running(tmp_path_factory.mktemp("tools"), kinds, spark=False)) as clusters:
        yield clusters


@pytest.fixture
def cluster(clusters: Shared[RealCluster]) -> RealCluster:
    return clusters.get()


def tools_at(version: str, place: str, *, slow: bool) -> Any:
    """A case; each version and each place is in a quick one."""
    marks = [pytest.mark.slow] if slow else []
    return pytest.param((version, place), id=f"{version}-{place}", marks=marks)


@pytest.fixture(
    params=[
        tools_at(NEWEST, "gateway", slow=False),
        tools_at(NEWEST, "broker", slow=True),
        tools_at(NEW, "gateway", slow=False),
        tools_at(NEW, "broker", slow=True),
        tools_at(OLD, "gateway", slow=True),
        tools_at(OLD, "broker", slow=False),
    ]
)
def tools(request: pytest.FixtureRequest, cluster: RealCluster, tmp_path: Path) -> KafkaTools:
    version, place = request.param
    address = cluster.gateway if place == "gateway" else cluster.brokers[1].bootstrap_server
    return KafkaTools(version, ["--bootstrap-server", address], tmp_path)


def test_every_story_at_every_place(cluster: RealCluster, tools: KafkaTools) -> None:
    mark = f"{tools.version.replace('.', '-')}-{tools.place[1].rpartition(':')[2]}"
    stories = (reassignments, topics, configs, groups, access, the_rest)
    with ThreadPoolExecutor(_AT_ONCE) as threads:
        told = [threads.submit(story, cluster, tools, mark) for story in stories]
        failed = [error for one in told if (error := one.exception()) is not None]
    if failed:
        raise BaseExceptionGroup("stories that failed", failed)


def test_unclean_election(cluster: RealCluster, tmp_path: Path) -> None:
    new = KafkaTools(NEW, ["--bootstrap-server", cluster.gateway], tmp_path)
    old = KafkaTools(OLD, ["--bootstrap-server", cluster.brokers[3].bootstrap_server], tmp_path)
    name = "unclean"
    new("kafka-topics", "--create", "--topic", name, "--replica-assignment", "1:2,1:2")
    in_sync(cluster, name, 2, 2)
    states = [lambda key, number=number: cluster.state(name, number)[key] for number in (0, 1)]
    cluster.brokers[2].kill()
    wait_for("the first loss", lambda: [state("isr") for state in states] == [[1], [1]])
    cluster.brokers[1].kill()
    wait_for("the second loss", lambda: [state("leader") for state in states] == [-1, -1])
    cluster.brokers[2].start()
    wait_for("the return", lambda: 2 in cluster.status()["brokers"])
    for number, tools in enumerate((new, old)):
        subject = ("--topic", name, "--partition", str(number))
        preferred = ("kafka-leader-election", "--election-type", "preferred", *subject)
        assert "PreferredLeaderNotAvailable" in tools(*preferred, fails=True)
        done = tools("kafka-leader-election", "--election-type", "unclean", *subject)
        assert f"leader election (UNCLEAN) for partitions {name}-{number}" in done
        assert (states[number]("leader"), states[number]("isr")) == (2, [2])
    cluster.brokers[1].start()
    in_sync(cluster, name, 2, 2)


def described(tools: KafkaTools, topic: str) -> dict[int, dict[str, Any]]:
    """Partitions as `kafka-topics --describe` shows them."""
    text = tools("kafka-topics", "--describe", "--topic", topic)
    found = re.findall(r"Partition: (\d+)\s+Leader: (\S+)\s+Replicas: (\S+)\s+Isr: (\S*)", text)
    return {
        int(number): {
            "leader": leader,
            "replicas": [int(id_) for id_ in replicas.split(",")],
            "isr": sorted(int(id_) for id_ in isr.split(",")),
        }
        for number, leader, replicas, isr in found
    }


def replicas_shown(tools: KafkaTools, topic: str) -> dict[int, list[int]]:
    return {number: one["replicas"] for number, one in described(tools, topic).items()}


def in_sync(cluster: RealCluster, topic: str, partitions: int, replicas: int) -> None:
    wait_for(
        f"full ISRs of {topic}",
        lambda: all(
            len(cluster.state(topic, one).get("isr", ())) == replicas for one in range(partitions)
        ),
    )


def topics(cluster: RealCluster, tools: KafkaTools, mark: str) -> None:
    name, manual = f"topics-{mark}", f"manual-{mark}"
    size = ("--partitions", "3", "--replication-factor", "2")
    create = ("--create", "--topic", name, *size, "--config", "retention.ms=1000000")
    assert f"Created topic {name}." in tools("kafka-topics", *create)
    assert "already exists" in tools("kafka-topics", *create, fails=True)
    tools("kafka-topics", *create, "--if-not-exists")
    wide = ("--create", "--topic", f"{name}-wide", "--partitions", "1", "--replication-factor", "9")
    assert "InvalidReplicationFactor" in tools("kafka-topics", *wide, fails=True)
    bad = ("--create", "--topic", f"{name}-bad", *size, "--config", "retention.ms=never")
    assert "retention.ms" in tools("kafka-topics", *bad, fails=True)
    tools("kafka-topics", "--create", "--topic", manual, "--replica-assignment", "1:2,2:3")

    in_sync(cluster, name, 3, 2)
    shown = wait_for("the topic", lambda: len(now := described(tools, name)) == 3 and now)
    assert [len(one["replicas"]) for one in shown.values()] == [2, 2, 2]
    assert all(one["isr"] == sorted(one["replicas"]) for one in shown.values())
    assert all(int(one["leader"]) == one["replicas"][0] for one in shown.values())
    assert "retention.ms=1000000" in tools("kafka-topics", "--describe", "--topic", name)
    given = {0: [1, 2], 1: [2, 3]}
    wait_for(f"{manual} as given", lambda: replicas_shown(tools, manual) == given)

    tools("kafka-topics", "--alter", "--topic", name, "--partitions", "5")
    fewer = tools("kafka-topics", "--alter", "--topic", name, "--partitions", "4", fails=True)
    assert "InvalidPartitions" in fewer
    more = ("--partitions", "3", "--replica-assignment", "1:2,2:3,3:1")
    tools("kafka-topics", "--alter", "--topic", manual, *more)
    in_sync(cluster, name, 5, 2)
    wait_for("five partitions", lambda: len(described(tools, name)) == 5)
    wait_for(f"{manual} grown", lambda: replicas_shown(tools, manual) == given | {2: [3, 1]})

    listed = tools("kafka-topics", "--list").split()
    assert {name, manual} <= set(listed)
    assert not tools("kafka-topics", "--describe", "--unavailable-partitions", "--topic", name)
    for topic in (name, manual):
        tools("kafka-topics", "--delete", "--topic", topic)
        wait_for(f"the end of {topic}", lambda topic=topic: not cluster.replicas(topic))
    wait_for(
        "a list without them",
        lambda: not {name, manual} & set(tools("kafka-topics", "--list").split()),
    )
    assert "does not exist" in tools("kafka-topics", "--delete", "--topic", name, fails=True)


def configs(cluster: RealCluster, tools: KafkaTools, mark: str) -> None:
    name = f"configs-{mark}"
    one_replica = ("--partitions", "1", "--replication-factor", "1")
    tools("kafka-topics", "--create", "--topic", name, *one_replica)
    topic = ("--entity-type", "topics", "--entity-name", name)
    tools("kafka-configs", "--alter", *topic, "--add-config", "max.message.bytes=9999,flush.ms=7")
    shown = tools("kafka-configs", "--describe", *topic)
    assert "max.message.bytes=9999" in shown
    tools("kafka-configs", "--alter", *topic, "--delete-config", "max.message.bytes")
    stored = cluster.json(f"/config/topics/{name}")["config"]
    assert stored == {"flush.ms": "7"}
    assert "segment.bytes=" in tools("kafka-configs", "--describe", *topic, "--all")

    broker = ("--entity-type", "brokers", "--entity-name", "2")
    everyone = ("--entity-type", "brokers", "--entity-default")
    for entity, key in ((broker, "log.cleaner.backoff.ms"), (everyone, "log.segment.bytes")):
        value = f"{key}=20000"
        tools("kafka-configs", "--alter", *entity, "--add-config", value)
        wait_for(
            value,
            lambda of=entity, it=value: it in tools("kafka-configs", "--describe", *of),
        )
    all_brokers = tools("kafka-configs", "--describe", "--entity-type", "brokers")
    assert [f"configs for broker {id_} are" in all_brokers for id_ in (1, 2, 3, 1000)] == [True] * 4
    tools("kafka-configs", "--alter", *broker, "--delete-config", "log.cleaner.backoff.ms")
    tools("kafka-configs", "--alter", *everyone, "--delete-config", "log.segment.bytes")
    ours = ("--entity-type", "brokers", "--entity-name", "1000")
    assert "controller.id=1000" in tools("kafka-configs", "--describe", *ours, "--all")
    setting = ("--alter", *ours, "--add-config", "log.cleaner.threads=2")
    assert "InvalidRequest" in tools("kafka-configs", *setting, fails=True)
    loggers = ("--entity-type", "broker-loggers", "--entity-name", "3")
    tools("kafka-configs", "--alter", *loggers, "--add-config", "kafka.server.KafkaApis=WARN")
    assert "kafka.server.KafkaApis=WARN" in tools("kafka-configs", "--describe", *loggers)

    client = ("--entity-type", "clients", "--entity-name", f"client-{mark}")
    tools("kafka-configs", "--alter", *client, "--add-config", "producer_byte_rate=1000000")
    assert "producer_byte_rate=1000000" in tools("kafka-configs", "--describe", *client)

    user = ("--entity-type", "users", "--entity-name", f"user {mark}")
    secret = "SCRAM-SHA-256=[iterations=4096,password=secret]"
    tools("kafka-configs", "--alter", *user, "--add-config", secret)
    assert "SCRAM-SHA-256" in cluster.json(f"/config/users/user%20{mark}")["config"]
    assert "SCRAM-SHA-256=iterations=4096" in tools("kafka-configs", "--describe", *user)
    tools("kafka-configs", "--alter", *user, "--delete-config", "SCRAM-SHA-256")
    assert cluster.json(f"/config/users/user%20{mark}")["config"] == {}


def plan(tools: KafkaTools, name: str, moves: dict[tuple[str, int], list[int]]) -> str:
    partitions = [
        {"topic": topic, "partition": number, "replicas": ids}
        for (topic, number), ids in moves.items()
    ]
    return tools.file(name, json.dumps({"version": 1, "partitions": partitions}))


def reassignments(cluster: RealCluster, tools: KafkaTools, mark: str) -> None:
    """One after the other: a tool clears throttles only if nothing else is moving."""
    moves(cluster, tools, mark)
    a_move_taken_back(cluster, tools, mark)
    elections(cluster, tools, mark)


def moves(cluster: RealCluster, tools: KafkaTools, mark: str) -> None:
    name = f"moving-{mark}"
    tools("kafka-topics", "--create", "--topic", name, "--replica-assignment", "1:2,2:3")
    in_sync(cluster, name, 2, 2)
    listed = tools.file("topics.json", json.dumps({"version": 1, "topics": [{"topic": name}]}))
    where = ("--topics-to-move-json-file", listed, "--broker-list", "2,3")
    proposed = json.loads(tools("kafka-reassign-partitions", "--generate", *where).splitlines()[-1])
    assert all(set(one["replicas"]) == {2, 3} for one in proposed["partitions"])

    move = ("--reassignment-json-file", plan(tools, "move.json", {(name, 0): [3, 1]}))
    throttled = ("--throttle", "1000000")
    started = tools("kafka-reassign-partitions", "--execute", *move, *throttled)
    assert "Successfully started partition reassignment" in started
    wait_for("the move", lambda: cluster.replicas(name)["0"] == [3, 1])
    done = tools("kafka-reassign-partitions", "--verify", *move)
    assert re.search(rf"{name}-0 is completed?\.", done)
    assert "Clearing broker-level throttles" in done
    assert cluster.json(f"/config/topics/{name}")["config"] == {}
    wait_for("its place", lambda: described(tools, name)[0]["replicas"] == [3, 1])


def a_move_taken_back(cluster: RealCluster, tools: KafkaTools, mark: str) -> None:
    name = f"back-{mark}"
    tools("kafka-topics", "--create", "--topic", name, "--replica-assignment", "1:2")
    fill(cluster, name, batches=6, batch_bytes=900_000)
    move = ("--reassignment-json-file", plan(tools, "back.json", {(name, 0): [3, 2]}))
    slowly = ("--throttle", "1000")
    tools("kafka-reassign-partitions", "--execute", *move, *slowly)
    listed = tools("kafka-reassign-partitions", "--list")
    assert f"{name}-0: replicas: 3,2,1. adding: 3. removing: 1." in listed
    going_on = tools("kafka-reassign-partitions", "--verify", *move)
    assert f"{name}-0 is still in progress" in going_on
    again = tools("kafka-reassign-partitions", "--execute", *move, fails=True)
    assert "already" in again or "existing" in again
    back = tools("kafka-reassign-partitions", "--cancel", *move)
    assert "Successfully cancelled partition reassignment" in back
    wait_for("the way back", lambda: cluster.replicas(name)["0"] == [2, 1])
    assert f"{name}-0" not in tools("kafka-reassign-partitions", "--list")
    assert cluster.json(f"/config/topics/{name}")["config"] == {}


def fill(cluster: RealCluster, topic: str, *, batches: int, batch_bytes: int) -> None:
    producer = KafkaProducer(
        bootstrap_servers=[broker.bootstrap_server for broker in cluster.brokers.values()],
        acks="all",
        request_timeout_ms=60_000,
    )
    try:
        for _ in range(batches):
            producer.send(topic, bytes(batch_bytes)).get(120)
    finally:
        producer.close()


def elections(cluster: RealCluster, tools: KafkaTools, mark: str) -> None:
    name = f"led-{mark}"
    tools("kafka-topics", "--create", "--topic", name, "--replica-assignment", "1:2,1:2,1:2")
    in_sync(cluster, name, 3, 2)
    turned = {(name, number): [2, 1] for number in range(3)}
    order = ("--reassignment-json-file", plan(tools, "turned.json", turned))
    tools("kafka-reassign-partitions", "--execute", *order)
    wait_for("the new order", lambda: cluster.replicas(name) == {str(n): [2, 1] for n in range(3)})
    assert [cluster.state(name, number)["leader"] for number in range(3)] == [1, 1, 1]

    elect = ("kafka-leader-election", "--election-type", "preferred")
    done = tools(*elect, "--topic", name, "--partition", "0")
    assert f"Successfully completed leader election (PREFERRED) for partitions {name}-0" in done
    named = json.dumps({"partitions": [{"topic": name, "partition": 1}]})
    tools(*elect, "--path-to-json-file", tools.file("led.json", named))
    assert [cluster.state(name, number)["leader"] for number in range(3)] == [2, 2, 1]
    tools(*elect, "--all-topic-partitions")
    assert cluster.state(name, 2)["leader"] == 2
    for kind in ("preferred", "unclean"):
        subject = ("--topic", name, "--partition", "0")
        again = tools("kafka-leader-election", "--election-type", kind, *subject)
        assert "Valid replica already elected" in again


def groups(cluster: RealCluster, tools: KafkaTools, mark: str) -> None:
    name, group = f"read-{mark}", f"group-{mark}"
    tools("kafka-topics", "--create", "--topic", name, "--replica-assignment", "1,2")

    def ask(*options: str) -> str:
        # Its own patience is 5 s, which a busy machine uses up.
        return tools("kafka-consumer-groups", *options, "--timeout", "60000")

    reset = ("--reset-offsets", "--group", group, "--topic", name, "--to-earliest")
    assert name in ask(*reset, "--dry-run")
    assert name in ask(*reset, "--execute")
    assert group in ask("--list").split()
    if tools.version == NEWEST:
        listed = tools("kafka-groups", "--list")
        assert re.search(rf"{group}\s+Classic", listed)
    if tools.version != OLD:  # which has another name for --bootstrap-server there
        assert f"{name}:1:0" in tools("kafka-get-offsets", "--topic", name)
    shown = ask("--describe", "--group", group)
    assert re.search(rf"{group}\s+{name}\s+1\s+0\s+0\s+0", shown)
    assert "Empty" in ask("--describe", "--group", group, "--state")
    ask("--describe", "--all-groups")
    assert "Successful" in ask("--delete-offsets", "--group", group, "--topic", f"{name}:0")
    assert "successful" in ask("--delete", "--group", group)


def access(cluster: RealCluster, tools: KafkaTools, mark: str) -> None:
    user = f"User:{mark}"
    rule = ("--allow-principal", user, "--operation", "Read", "--topic", f"nothing-{mark}")
    tools("kafka-acls", "--add", *rule)
    assert user in tools("kafka-acls", "--list", "--topic", f"nothing-{mark}")
    tools("kafka-acls", "--remove", *rule, "--force")


def the_rest(cluster: RealCluster, tools: KafkaTools, mark: str) -> None:
    versions = tools("kafka-broker-api-versions")
    ids = sorted(int(id_) for id_ in re.findall(r"\(id: (\d+) rack", versions))
    assert ids == [1, 2, 3, 1000]
    folders = json.loads(tools("kafka-log-dirs", "--describe").splitlines()[-1])
    assert sorted(one["broker"] for one in folders["brokers"]) == [1, 2, 3, 1000]
    assert all(one["error"] is None for b in folders["brokers"] for one in b["logDirs"])
    if tools.version != OLD:
        tools("kafka-features", "describe")
        assert "TransactionalId" in tools("kafka-transactions", "list")
    else:
        tools("kafka-features", "--describe")
