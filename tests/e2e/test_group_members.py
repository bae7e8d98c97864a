"""What members of groups live through with us as with Kafka's own coordinator: they are restarted,
paused and killed, and what they subscribe to grows.

Everything is real but Spark; the tests share a cluster, and each has topics and groups of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from streaming.demo.cluster import DemoCluster
from tests.e2e import first_clients
from tests.e2e.demo_cluster import demo_cluster
from tests.e2e.group_processes import (
    SESSION_MS,
    Members,
    java_command,
    java_member,
    python_members,
)
from tests.e2e.group_stage import TAKING_GROUPS_OVER, committed, kill_job_for, taken_over
from tests.e2e.group_topics import Topics, consumed, shared_out, written
from tests.e2e.shared import Shared
from tests.e2e.waiting import wait_for
from tests.fixtures.kafka_tools import NEWEST
from tests.fixtures.plain_job import without_spark

UNKNOWN_TOPIC_OR_PARTITION = 3

START_S = 240.0
"""A busy machine takes its time."""

RESTART_MS = 120_000
"""A session that a member's restart does not outlast, on a busy machine either."""

Start = Callable[..., Members]

pytestmark = [
    pytest.mark.timeout(900),
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),
]


@contextmanager
def coordinated(folder: Path) -> Iterator[DemoCluster]:
    """A cluster whose groups we coordinate."""
    with demo_cluster(folder, **TAKING_GROUPS_OVER) as cluster:
        without_spark(cluster.supervisor)
        cluster.embedded.start_brokers()
        committed(cluster.embedded.bootstrap_servers, "first")  # with it comes the topic of groups
        cluster.start_ours()
        wait_for("our leadership", lambda: taken_over(cluster), START_S)
        yield cluster


@pytest.fixture(scope="module")
def clusters(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shared[DemoCluster]]:
    with Shared(lambda: coordinated(tmp_path_factory.mktemp("members"))) as clusters:
        yield clusters


@pytest.fixture
def demo(clusters: Shared[DemoCluster]) -> DemoCluster:
    return clusters.get()


@pytest.fixture
def topics(demo: DemoCluster) -> Topics:
    return Topics(demo.embedded.bootstrap_servers, demo.folders)


@pytest.fixture
def clients(
    demo: DemoCluster, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[str, Start]]:
    """How to start a member of a group with each of the clients; all are ended after the test."""
    started: list[Members] = []
    brokers = ",".join(demo.embedded.bootstrap_servers)
    folder = tmp_path_factory.mktemp("java")

    def keep(members: Members) -> Members:
        started.append(members)
        return members

    def librdkafka(
        group: str, topic: str, instance: str | None = None, count: int = 1, **chosen: int
    ) -> Members:
        place: dict[str, Any] = {"bootstrap.servers": brokers, "group.id": group}
        config = place | {"partition.assignment.strategy": "range"}
        return keep(python_members("librdkafka", topic, count, instance, **chosen, **config))

    def kafka_python(
        group: str, topic: str, instance: str | None = None, count: int = 1, **chosen: int
    ) -> Members:
        place: dict[str, Any] = {"bootstrap.servers": brokers.split(","), "group.id": group}
        return keep(python_members("kafka-python", topic, count, instance, **chosen, **place))

    def java(group: str, topic: str, instance: str | None = None, **chosen: Any) -> Members:
        member = java_member(brokers, group, topic, folder, instance=instance, **chosen)
        return keep(member)

    def java_console(group: str, pattern: str) -> Members:
        config = ("auto.offset.reset=earliest", "auto.commit.interval.ms=200")
        words = ["--bootstrap-server", brokers, "--include", pattern, "--group", group]
        for one in (*config, "metadata.max.age.ms=1000"):
            words += ["--consumer-property", one]
        main = "org.apache.kafka.tools.consumer.ConsoleConsumer"
        return keep(Members(java_command(main, folder, words)))

    yield {
        "librdkafka": librdkafka,
        "kafka-python": kafka_python,
        "java": java,
        "java-4": partial(java, version=NEWEST),
        "java-console": java_console,
    }
    for one in started:
        one.kill()


def test_static_members_restart_one_by_one_without_a_rebalance(
    topics: Topics, clients: dict[str, Start]
) -> None:
    topics.create("rolling", 8)
    partitions = [("rolling", number) for number in range(8)]
    kinds = ("librdkafka", "kafka-python", "java", "java-4")

    def member(kind: str) -> Members:
        return clients[kind]("rolling", "rolling", kind, session_ms=RESTART_MS)

    members = {kind: member(kind) for kind in kinds}
    wait_for("the group", lambda: shared_out(members.values(), partitions, 4), START_S)
    topics.write(partitions)
    topics.wait_committed("rolling", partitions)
    generations = topics.generations("rolling")
    assert generations > 0
    ended = []
    for kind in kinds:
        owned = members[kind].owned
        members[kind].stop()
        ended.append(members[kind])
        topics.write(partitions)
        members[kind] = member(kind)
        wait_for(f"{kind}'s return", lambda has=owned, one=members[kind]: one.owned == has)
        topics.wait_committed("rolling", partitions)
    assert topics.generations("rolling") == generations
    records = written(topics, "rolling")
    counted = consumed([*ended, *members.values()], records)
    assert counted == dict.fromkeys(records, 1), "each record once"


# kafka-python stands still when a poll ends in the middle of its rebalance (`group_members.py`).
@pytest.mark.flaky(reruns=2, only_rerun=["did not come"])
def test_subscriptions_follow_topics_and_partitions_that_are_made(
    topics: Topics, clients: dict[str, Start]
) -> None:
    topics.create("like.one", 2)
    partitions = [("like.one", 0), ("like.one", 1)]
    groups = {"librdkafka": "^like[.].*", "kafka-python": "^like[.].*", "java-console": "like[.].*"}
    for kind, pattern in groups.items():
        clients[kind](f"like-{kind}", pattern)
    topics.write(partitions)
    for kind in groups:
        topics.wait_committed(f"like-{kind}", partitions)
    topics.grow("like.one", 4)
    topics.create("like.another", 2)
    partitions += [("like.one", 2), ("like.one", 3), ("like.another", 0), ("like.another", 1)]
    topics.write(partitions)
    for kind in groups:
        topics.wait_committed(f"like-{kind}", partitions)


def test_the_first_clients_commit_with_us_and_in_zookeeper(
    demo: DemoCluster, topics: Topics
) -> None:
    topics.create("first", 1)
    host, port = demo.embedded.bootstrap_servers[0].split(":")
    broker = (host, int(port))
    ours = first_clients.coordinator(broker, "first")
    assert ours != broker
    assert first_clients.commit(ours, 1, "first", "first", 5) == 0
    assert first_clients.commit(ours, 0, "first", "first", 3) == 0
    assert first_clients.commit(ours, 0, "first", "nothing", 3) == UNKNOWN_TOPIC_OR_PARTITION
    assert first_clients.fetched(ours, 1, "first", "first") == 5
    assert {first_clients.fetched(one, 0, "first", "first") for one in (ours, broker)} == {3}
    assert topics.committed("first") == {("first", 0): 5}


@pytest.mark.slow
@pytest.mark.parametrize(
    "assignor",
    ["RangeAssignor", "RoundRobinAssignor", "StickyAssignor", "CooperativeStickyAssignor"],
)
@pytest.mark.parametrize("kind", ["java", "java-4"])
def test_java_shares_out_with_each_of_its_assignors(
    topics: Topics, clients: dict[str, Start], assignor: str, kind: str
) -> None:
    name = f"{assignor}-{kind}"
    topics.create(name, 6)
    partitions = [(name, number) for number in range(6)]
    members: list[Members] = []
    for count in (1, 2, 3):
        members.append(clients[kind](name, name, assignor=assignor))
        wait_for(f"{count} members", lambda of=count: shared_out(members, partitions, of))
        topics.write(partitions)
        topics.wait_committed(name, partitions)
    members.pop(0).stop()
    wait_for("the others", lambda: shared_out(members, partitions, 2))
    topics.write(partitions)
    topics.wait_committed(name, partitions)
    members.pop(0).kill()
    members.append(clients[kind](name, name, assignor=assignor))
    wait_for("one in its place", lambda: shared_out(members, partitions, 2))
    topics.write(partitions)
    topics.wait_committed(name, partitions)


@pytest.mark.slow
def test_no_member_gives_up_while_the_job_is_away_for_longer_than_a_session(
    demo: DemoCluster, topics: Topics, clients: dict[str, Start]
) -> None:
    """All of them want to commit meanwhile, and go on in the generation that they are in."""
    kinds = ("librdkafka", "kafka-python", "java", "java-4")
    topics.create("patient", 2)
    partitions = [("patient", 0), ("patient", 1)]
    members = {kind: clients[kind](f"patient-{kind}", "patient") for kind in kinds}
    members["static"] = clients["librdkafka"]("patient-static", "patient", "one")
    for kind, one in members.items():
        wait_for(kind, lambda its=one: shared_out([its], partitions, 1), START_S)
    generations = {kind: topics.generations(f"patient-{kind}") for kind in members}
    kill_job_for(demo, 2 * SESSION_MS / 1000)
    topics.write(partitions)
    ends = {one: topics.written[one] for one in partitions}

    def all_go_on() -> bool:
        topics.write(partitions, 1)  # a member that could not commit does it with its next record
        return all(topics.reached(f"patient-{kind}", ends) for kind in members)

    wait_for("commits of all", all_go_on, START_S)
    assert {kind: topics.generations(f"patient-{kind}") for kind in members} == generations


@pytest.mark.slow
def test_members_that_are_paused_past_their_session_come_back(
    topics: Topics, clients: dict[str, Start]
) -> None:
    groups: dict[str, tuple[Members, Members]] = {}
    for kind in ("librdkafka", "kafka-python", "java", "java-4"):
        topics.create(f"paused-{kind}", 4)
        groups[kind] = tuple(clients[kind](f"paused-{kind}", f"paused-{kind}") for _ in range(2))
    parts = {kind: [(f"paused-{kind}", number) for number in range(4)] for kind in groups}
    everything = [one for of_kind in parts.values() for one in of_kind]

    def all_committed() -> None:
        topics.write(everything)
        for kind in groups:
            topics.wait_committed(f"paused-{kind}", parts[kind])

    for kind, pair in groups.items():
        wait_for(f"{kind}'s group", lambda of=pair, its=parts[kind]: shared_out(of, its, 2))
    all_committed()
    for pair in groups.values():
        pair[0].pause()
    for kind, pair in groups.items():
        wait_for(f"{kind}'s other", lambda one=pair[1:], its=parts[kind]: shared_out(one, its, 1))
    all_committed()
    for pair in groups.values():
        pair[0].resume()
    for kind, pair in groups.items():
        wait_for(f"{kind}'s group", lambda of=pair, its=parts[kind]: shared_out(of, its, 2))
    all_committed()
    for kind, pair in groups.items():
        records = written(topics, f"paused-{kind}")
        assert consumed(pair, records).keys() == records


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["librdkafka", "kafka-python"])
def test_fifty_members_share_what_there_is_whoever_dies(
    topics: Topics, clients: dict[str, Start], kind: str
) -> None:
    """Five processes of ten: one is killed, one paused, and then each is restarted."""
    name = f"fifty-{kind}"
    topics.create(name, 50)
    partitions = [(name, number) for number in range(50)]
    started: list[Members] = []

    def start() -> Members:
        started.append(clients[kind](name, name, count=10))
        return started[-1]

    def settled(count: int, live: list[Members]) -> None:
        wait_for(f"{count} members", lambda: shared_out(live, partitions, count), START_S)
        topics.write(partitions)
        topics.wait_committed(name, partitions)

    live = [start() for _ in range(5)]
    settled(50, live)
    live.pop().kill()
    paused = live.pop()
    paused.pause()
    settled(30, live)
    paused.resume()
    live += [paused, start()]
    settled(50, live)
    records = written(topics, name)
    disturbed = consumed(started, records)
    assert disturbed.keys() == records
    for old in list(live):
        old.stop()
        live.remove(old)
        live.append(start())
        settled(50, live)
    records = written(topics, name)
    after = consumed(started, records)
    assert after.keys() == records
    again = {one: count - disturbed[one] for one, count in after.items()}
    assert max(again.values()) == 1, "a rolling restart lets nothing be consumed twice"
