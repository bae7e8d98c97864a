"""Carries operations out on a cluster: each is asked for until somebody answers, or given up."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from kafka import KafkaAdminClient, TopicPartition, errors
from kafka.errors import KafkaError

from state.cluster.config import DEPRIORITIZED
from streaming.demo.cluster import DemoCluster
from streaming.process.polling import polls
from streaming.zk.client import ZkSession
from streaming.zk.errors import NodeExists, ZooKeeperError
from streaming.zk.znodes import topic_deletion_path, topic_path
from streaming.zk.znodes.admin import reassignment_bytes
from tests.e2e.demo_cluster import start_again
from tests.e2e.random_ours import Ours
from tests.e2e.random_plan import Operation
from tests.e2e.replica_folders import delete_earlier
from tests.e2e.waiting import wait_for
from tests.fixtures.znodes import preferred_election_bytes
from tests.integration.front.harness import put_config

PLAN = "/admin/reassign_partitions"
ELECTION = "/admin/preferred_replica_election"
UNCLEAN = "unclean.leader.election.enable"
KEEPING_RECORDS = {"min.insync.replicas": "2", UNCLEAN: "false"}
"""A topic's configuration with which no acknowledged record is lost, whatever the cluster's is."""

_ANSWER_S = 15.0
_ASK_MS = 10_000
_AGAIN_S = 0.5
_TERMINATE_S = 20.0
_START_S = 60.0
_PREFERRED, _UNCLEAN = 0, 1
_NOBODY_DECIDED = (
    errors.NotControllerError,
    errors.RequestTimedOutError,
    errors.KafkaTimeoutError,
    errors.KafkaConnectionError,
    errors.MetadataEmptyBrokerList,
    errors.NodeNotReadyError,
    errors.BrokerNotAvailableError,
    errors.UnknownBrokerIdError,
    RuntimeError,  # no controller is known
    OSError,
)


class Stage:
    """A cluster with traffic. `perform` returns what came of an operation in a word or two.

    down: brokers that are stopped.
    """

    def __init__(self, demo: DemoCluster, session: ZkSession, ours: Ours) -> None:
        """Take a running cluster, a ZooKeeper session beside it, and what carries out operations
        on us.
        """
        self.demo = demo
        self.session = session
        self.ours = ours
        self.down: set[int] = set()
        self._cluster_config: dict[str, str] = {}

    def perform(self, operation: Operation) -> str:
        """Carry one operation out."""
        name = operation.name.replace(" ", "_").lower()
        method = getattr(self, f"_{name}", None) or getattr(self.ours, name)
        try:
            return str(method(**operation.of) or "done")
        except ZooKeeperError as error:
            return type(error).__name__

    def return_all(self) -> None:
        """Bring everything back that is away."""
        for broker_id, broker in self.demo.embedded.brokers.items():
            if broker.running:
                broker.resume()
            else:
                self._start_broker(broker_id)
        self.ours.return_all()
        delete_earlier(self.demo, self.session, _START_S)

    def create_replicated_topic(self, topic: str, partitions: int) -> None:
        """Create a topic of three replicas, whoever controls the cluster."""
        wanted = {topic: {"num_partitions": partitions, "replication_factor": 3}}
        wait_for(topic, lambda: self._ask(lambda admin: admin.create_topics(wanted)) == "done")

    def _create_topic(self, topic: str, assignment: Mapping[int, list[int]]) -> str:
        return self._ask(lambda admin: admin.create_topics({topic: {"assignments": assignment}}))

    def _delete_topic(self, topic: str) -> str:
        return self._ask(lambda admin: admin.delete_topics([topic]))

    def _mark_topic_for_deletion(self, topic: str) -> str:
        return self._create(topic_deletion_path(topic), b"")

    def _add_partitions(self, topic: str, count: int) -> str:
        return self._ask(lambda admin: admin.create_partitions({topic: count}))

    def _reassign(self, moves: Mapping[tuple[str, int], list[int]]) -> str:
        return self._move(moves)

    def _cancel_reassignment(self, partitions: list[tuple[str, int]]) -> str:
        return self._move(dict.fromkeys(partitions))

    def _move(self, moves: Mapping[tuple[str, int], list[int] | None]) -> str:
        asked = {TopicPartition(*one): target for one, target in moves.items()}
        return self._ask(lambda admin: _refusals(admin.alter_partition_reassignments(asked)))

    def _reassign_by_znode(self, moves: Mapping[tuple[str, int], list[int]]) -> str:
        return self._create(PLAN, reassignment_bytes(moves))

    def _elect_preferred(self, partitions: list[tuple[str, int]]) -> str:
        return self._elect(_PREFERRED, partitions)

    def _elect_preferred_by_znode(self, partitions: list[tuple[str, int]]) -> str:
        return self._create(ELECTION, preferred_election_bytes(partitions))

    def _elect_unclean(self, partitions: list[tuple[str, int]]) -> str:
        return self._elect(_UNCLEAN, partitions)

    def _elect(self, how: int, partitions: list[tuple[str, int]]) -> str:
        by_topic: dict[str, list[int]] = {}
        for topic, partition in partitions:
            by_topic.setdefault(topic, []).append(partition)
        return self._ask(lambda admin: admin.elect_leaders(how, by_topic))

    def _set_topic_config(self, topic: str, unclean: bool | None) -> str:
        if self.session.get(topic_path(topic)) is None:
            return "no such topic"
        config = {} if unclean is None else {UNCLEAN: str(unclean).lower()}
        put_config(self.session, "topics", topic, config)
        return "done"

    def _set_cluster_config(self, unclean: bool | None) -> str:
        return self._change_cluster(UNCLEAN, None if unclean is None else str(unclean).lower())

    def _deprioritize_brokers(self, brokers: Sequence[int]) -> str:
        return self._change_cluster(DEPRIORITIZED, ",".join(map(str, brokers)) or None)

    def _change_cluster(self, key: str, value: str | None) -> str:
        self._cluster_config.pop(key, None)
        if value is not None:
            self._cluster_config[key] = value
        put_config(self.session, "brokers", "<default>", self._cluster_config)
        return "done"

    def _kill_broker(self, broker: int) -> None:
        self.down.add(broker)
        self.demo.broker(broker).kill()

    def _terminate_broker(self, broker: int) -> str:
        self.down.add(broker)
        ended = self.demo.broker(broker).terminate(_TERMINATE_S)
        return "ended by itself" if ended else "killed in the end"

    def _pause_broker(self, broker: int) -> None:
        self.down.add(broker)
        self.demo.broker(broker).pause()

    def _return_broker(self, broker: int, was: str, version: str = "") -> None:
        if was == "paused":
            self.demo.broker(broker).resume()
        else:
            if version:
                self.demo.broker(broker).change_version(version)
            self._start_broker(broker)
        self.down.discard(broker)

    def _start_broker(self, broker: int) -> None:
        start_again(self.demo, self.session, broker, _START_S)

    def _create(self, path: str, data: bytes) -> str:
        try:
            self.session.create(path, data)
        except NodeExists:
            return "there is one already"
        return "done"

    def _ask(self, call: Callable[[Any], Any]) -> str:
        """Ask the controller, whoever it is, again and again while nobody answers."""
        reason = ""
        for _ in polls(_ANSWER_S, _AGAIN_S):
            try:
                with self._admin() as admin:
                    found = call(admin)
                return found if isinstance(found, str) else "done"
            except _NOBODY_DECIDED as error:
                reason = type(error).__name__
            except KafkaError as error:
                return type(error).__name__
        return f"no answer ({reason})"

    @contextlib.contextmanager
    def _admin(self) -> Any:
        servers = [self.demo.gateway, *self.demo.embedded.bootstrap_servers]
        admin: Any = KafkaAdminClient(
            bootstrap_servers=servers, request_timeout_ms=_ASK_MS, bootstrap_timeout_ms=_ASK_MS
        )
        try:
            yield admin
        finally:
            admin.close()


def _refusals(answer: Mapping[Any, type[KafkaError] | None]) -> str:
    refused = sorted({error.__name__ for error in answer.values() if error is not None})
    return ", ".join(refused) or "done"
