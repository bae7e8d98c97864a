"""A topic that is written all the time, who coordinates groups, and what they have committed."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from confluent_kafka import Producer
from kafka import KafkaAdminClient, KafkaConsumer, TopicPartition
from kafka.errors import InvalidReplicationFactorError

from streaming.demo.cluster import DemoCluster
from streaming.demo.metadata import ask_metadata
from streaming.internal_topics import GROUP_TOPIC
from streaming.sockets.status_socket import fetch_status
from streaming.supervisor.processes import JOB
from streaming.zk.client import ZkSession
from streaming.zk.znodes import entity_config_path, parse_config
from tests.e2e.group_clients import (
    TOPIC,
    Client,
    JavaClient,
    Member,
    Offsets,
    PythonClient,
    RdClient,
)
from tests.e2e.upgrading import PROTOCOL
from tests.e2e.waiting import wait_for
from tests.fixtures.kafka_tools import NEW, KafkaTools
from tests.fixtures.story import OURSELVES
from tests.integration.front.harness import put_config

logger = logging.getLogger(__name__)

PARTITIONS = 3
GROUP_PARTITIONS = 5
OPTIONS = ("--set=groups.takeover.enable=true", "--set=group.initial.rebalance.delay.ms=0")
BROKER_CONFIG = {
    "offsets.topic.replication.factor": "3",
    "offsets.topic.num.partitions": str(GROUP_PARTITIONS),
    "offsets.topic.compression.codec": "2",  # snappy: what brokers append, we read
}
TAKING_GROUPS_OVER = {"options": OPTIONS, "broker_config": BROKER_CONFIG}
"""A cluster whose groups go over to us."""
WITH_TRANSACTIONS = {
    "options": OPTIONS,
    "broker_config": {
        **BROKER_CONFIG,
        "transaction.state.log.replication.factor": "3",
        "transaction.state.log.min.isr": "2",
    },
}
"""The same, and transactions live through the death of a broker."""

_JOIN_S = 120.0
_PATIENCE_MS = 60_000
_STATUS_S = 5.0


class Writer(threading.Thread):
    """Produces a few records a second to every partition until it is stopped."""

    def __init__(self, brokers: Sequence[str]) -> None:
        super().__init__(name="writer", daemon=True)
        self._producer = Producer({"bootstrap.servers": ",".join(brokers), "log_level": 0})
        self._ended = threading.Event()

    def run(self) -> None:
        while not self._ended.wait(0.2):
            for partition in range(PARTITIONS):
                self._producer.produce(TOPIC, b"x", partition=partition)
            self._producer.poll(0)

    def stop(self) -> None:
        self._ended.set()
        self.join(_JOIN_S)
        self._producer.flush(_JOIN_S)


def coordinators(demo: DemoCluster) -> set[int]:
    """Return who leads the group topic, as all brokers tell it; -1 where one says nothing."""
    found: set[int] = set()
    for broker in demo.embedded.brokers.values():
        if broker.running:
            try:
                view = ask_metadata(broker.client_port)
            except OSError:
                return {-1}
            led = {leader for (topic, _), leader in view.leaders.items() if topic == GROUP_TOPIC}
            found |= led or {-1}
    return found


def taken_over(demo: DemoCluster) -> bool:
    """Return whether all brokers send clients to us."""
    return coordinators(demo) == {OURSELVES}


def configure(session: ZkSession, topic: str, config: Mapping[str, str]) -> None:
    """Change some of a topic's configuration."""
    znode = session.get(entity_config_path("topics", topic))
    before = {} if znode is None else parse_config(znode.data)
    put_config(session, "topics", topic, {**before, **config})


def refusals(demo: DemoCluster) -> set[str | None]:
    """Return why partitions of the group topic take no commits; None for one that does."""
    partitions = fetch_status(demo.folders.root, _STATUS_S)["groups"]["partitions"]
    return {one["refuses_commits"] for one in partitions.values()}


def kill_job_for(demo: DemoCluster, away_s: float) -> None:
    """Kill the job, which is started again after away_s.

    One that had run for long would be started at once, so its supervisor takes it for a new one.
    """
    job = demo.supervisor.roles[JOB]
    job.started_at, job.back_off.next_s = time.monotonic(), away_s
    demo.supervisor.kill(JOB)


def committed(brokers: Sequence[str], group: str) -> Offsets:
    """Return what the coordinator says is committed; waits while it cannot say."""
    consumer = KafkaConsumer(
        group_id=group, bootstrap_servers=list(brokers), enable_auto_commit=False
    )
    try:
        found = {
            one: consumer.committed(TopicPartition(TOPIC, one), timeout_ms=_PATIENCE_MS)
            for one in range(PARTITIONS)
        }
    finally:
        consumer.close()
    return {one: offset or 0 for one, offset in found.items()}


def lost_commits(brokers: Sequence[str], member: Member) -> dict[int, tuple[int, int]]:
    """Return what a member was acknowledged and what is committed, where that is less."""
    acked = dict(member.acked)  # what is acked later is not asked for
    found = committed(brokers, member.group)
    return {one: (offset, found[one]) for one, offset in acked.items() if found[one] < offset}


def nothing_lost(brokers: Sequence[str], members: Sequence[Member]) -> None:
    """Fail when a commit that was acknowledged is not there."""
    for member in members:
        lost = lost_commits(brokers, member)
        assert not lost, f"LOST: {member.group}: acked and found {lost}"
        assert member.error is None, repr(member.error)


class Stage:
    """Groups of kafka-python, and later of librdkafka and Kafka's own consumer, that commit all the
    time.
    """

    def __init__(self, demo: DemoCluster, tools: KafkaTools) -> None:
        self.tools = tools
        self.brokers = demo.embedded.bootstrap_servers
        self._folder = demo.folders.root.parent
        older = {f"{PROTOCOL}={one}" for one in ("2.1", "2.2")}
        self._knows_static_members = older.isdisjoint(demo.embedded.settings())
        self.writer = Writer(self.brokers)
        self.writer.start()
        self.members: list[Member] = []
        self.join("python", PythonClient(self.brokers, "python"))
        self.join("python", PythonClient(self.brokers, "python"))

    def join(self, group: str, client: Client) -> None:
        """Let a client be a member."""
        self.members.append(Member(group, client))
        self.members[-1].start()

    def join_others(self) -> None:
        """Let the other clients come, one of them as a static member where brokers know such."""
        sticky = {"partition_assignment_strategy": "cooperative-sticky"}
        self.join("mixed", JavaClient(self.brokers, "mixed", self._folder))
        self.join("mixed", RdClient(self.brokers, "mixed"))
        named = {"group_instance_id": "one"} if self._knows_static_members else {}
        self.join("static", RdClient(self.brokers, "static", **named, **sticky))

    def check(self) -> None:
        """All go on committing, and find what they committed."""
        for member in self.members:
            member.goes_on()
        nothing_lost(self.brokers, self.members)

    @contextmanager
    def gaps(self, what: str) -> Iterator[None]:
        """Log how long each member had no commit acknowledged meanwhile, and until all go on."""
        since_s = time.monotonic()
        yield
        self.check()
        for member in self.members:
            logger.info("%s: %s: %.2f s", what, member.name, member.longest_gap_s(since_s))

    def stop(self) -> None:
        for member in self.members:
            member.stop()
        self.writer.stop()


def start_with_topic(demo: DemoCluster) -> None:
    """Start the brokers, and make the topic once one of them that controls knows them all."""
    demo.embedded.start_brokers()
    admin: Any = KafkaAdminClient(bootstrap_servers=demo.embedded.bootstrap_servers)

    def made() -> bool:
        try:
            admin.create_topics({TOPIC: {"num_partitions": PARTITIONS, "replication_factor": 3}})
        except InvalidReplicationFactorError:
            return False
        return True

    try:
        wait_for("all brokers", made)
    finally:
        admin.close()


@contextmanager
def staged(demo: DemoCluster) -> Iterator[Stage]:
    """Start the brokers, make the topic, and let the first members in; end them."""
    start_with_topic(demo)
    first = ["--bootstrap-server", demo.embedded.bootstrap_servers[0]]
    stage = Stage(demo, KafkaTools(NEW, first, demo.folders.root.parent))
    try:
        yield stage
    finally:
        stage.stop()
