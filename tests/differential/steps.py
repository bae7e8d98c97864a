"""What can happen to a cluster, and how it is done to one side.

A step is data: what it does and with what, so that two sides get the same and a report can show it.
What a step returns is what the controller answered, in a form that two sides can be compared by.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson

from state.protocol_errors import ProtocolError
from streaming.wire.apis import ApiKey
from streaming.zk.ops import Create, SetData
from streaming.zk.znodes import (
    CONFIG_CHANGE_PREFIX,
    CONFIG_CHANGES_PATH,
    CONTROLLER_PATH,
    ISR_CHANGE_PATH,
    LOG_DIR_EVENT_PATH,
    TopicZNode,
    config_bytes,
    config_change_bytes,
    entity_config_path,
    parse_topic,
    partition_state_path,
    topic_bytes,
    topic_deletion_path,
    topic_path,
)
from streaming.zk.znodes.admin import reassignment_bytes
from tests.differential.cluster import Cluster
from tests.differential.model import Model
from tests.fixtures.znodes import (
    ISR_CHANGE_PREFIX,
    LOG_DIR_EVENT_PREFIX,
    isr_change_bytes,
    log_dir_event_bytes,
    preferred_election_bytes,
)

PREFERRED_ELECTION_PATH = "/admin/preferred_replica_election"
REASSIGNMENT_PATH = "/admin/reassign_partitions"
UNCLEAN = "unclean.leader.election.enable"


@dataclass(frozen=True, slots=True)
class Step:
    """Something that happens; name is a key of ACTIONS, of what is done with."""

    name: str
    of: Mapping[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        return " ".join([self.name, *(f"{key}={value}" for key, value in self.of.items())])

    def apply(self, cluster: Cluster) -> Any:
        """Do it to one side."""
        return ACTIONS[self.name](cluster, **self.of)


def change_brokers(cluster: Cluster, **changed: list[int]) -> None:
    cluster.change_brokers(**changed)


def shut_down_broker(cluster: Cluster, broker: int) -> Any:
    body = {"broker_id": broker, "broker_epoch": cluster.epochs[broker]}
    answer = cluster.ask(ApiKey.CONTROLLED_SHUTDOWN, 3, body)
    remaining = [
        (one["topic_name"], one["partition_index"]) for one in answer["remaining_partitions"]
    ]
    return answer["error_code"], sorted(remaining)


def create_topic(
    cluster: Cluster,
    topic: str,
    assignment: list[list[int]],
    topic_id: str | None,
    unclean: str | None,
) -> None:
    """Write a topic into ZooKeeper, as tools and brokers do."""
    config = {} if unclean is None else {UNCLEAN: unclean}
    version = 2 if topic_id is None else 3
    znode = TopicZNode(dict(enumerate(assignment)), topic_id, version=version)
    _multi(
        cluster,
        Create(entity_config_path("topics", topic), config_bytes(config)),
        Create(topic_path(topic), topic_bytes(znode)),
    )


def request_topic(cluster: Cluster, topic: str, assignment: list[list[int]]) -> Any:
    """CreateTopics."""
    listed = [
        {"partition_index": partition, "broker_ids": ids}
        for partition, ids in enumerate(assignment)
    ]
    asked = {
        "name": topic,
        "num_partitions": -1,
        "replication_factor": -1,
        "assignments": listed,
        "configs": [],
    }
    body = {"topics": [asked], "timeout_ms": cluster.controller.timeout_ms, "validate_only": False}
    answer = cluster.ask(ApiKey.CREATE_TOPICS, 7, body)
    return [_in_time(cluster, one["error_code"]) for one in answer["topics"]]


def add_partitions(cluster: Cluster, topic: str, assignment: list[list[int]]) -> None:
    """Write a topic's znode with more partitions, as tools do."""
    znode = cluster.session.get(topic_path(topic))
    assert znode is not None
    now = parse_topic(znode.data)
    more = {len(now.replicas) + number: ids for number, ids in enumerate(assignment)}
    grown = TopicZNode(
        {**now.replicas, **more}, now.topic_id, now.adding, now.removing, now.version
    )
    cluster.session.set(topic_path(topic), topic_bytes(grown))


def request_partitions(
    cluster: Cluster, topic: str, count: int, assignment: list[list[int]]
) -> Any:
    """CreatePartitions."""
    asked = {
        "name": topic,
        "count": count,
        "assignments": [{"broker_ids": ids} for ids in assignment],
    }
    body = {"topics": [asked], "timeout_ms": cluster.controller.timeout_ms, "validate_only": False}
    answer = cluster.ask(ApiKey.CREATE_PARTITIONS, 3, body)
    return [_in_time(cluster, one["error_code"]) for one in answer["results"]]


def delete_topic(cluster: Cluster, topic: str) -> None:
    """Name a topic under /admin/delete_topics, as tools do."""
    cluster.session.create(topic_deletion_path(topic))


def request_deletion(cluster: Cluster, topic: str) -> Any:
    """DeleteTopics."""
    asked = {"name": topic, "topic_id": uuid.UUID(int=0)}
    body = {"topics": [asked], "timeout_ms": cluster.controller.timeout_ms}
    answer = cluster.ask(ApiKey.DELETE_TOPICS, 6, body)
    return [_in_time(cluster, one["error_code"]) for one in answer["responses"]]


def alter_isr(
    cluster: Cluster, topic: str, partition: int, isr: list[int], wrong: Mapping[str, int]
) -> Any:
    """AlterPartition from the partition's leader; wrong: by how much it is off in what it says."""
    state, version = _state(cluster, topic, partition)
    topic_id = cluster.topic_id(topic)
    moving = Model.of(cluster.tree()).moving((topic, partition))
    asked: dict[str, Any] = {
        "partition_index": partition,
        "leader_epoch": state["leader_epoch"] + wrong.get("leader_epoch", 0),
        "leader_recovery_state": 0,
        "partition_epoch": version + wrong.get("partition_epoch", 0),
    }
    if topic_id is None:
        asked["new_isr"] = isr
        named: dict[str, Any] = {"topic_name": topic}
    else:
        asked["new_isr_with_epochs"] = [
            {"broker_id": id_, "broker_epoch": cluster.epochs.get(id_, -1)} for id_ in isr
        ]
        named = {"topic_id": topic_id}
    body = {
        "broker_id": state["leader"],
        "broker_epoch": cluster.epochs[state["leader"]] + wrong.get("broker_epoch", 0),
        "topics": [{**named, "partitions": [asked]}],
    }
    answer = cluster.ask(ApiKey.ALTER_PARTITION, 1 if topic_id is None else 3, body)
    told = [one for entry in answer["topics"] for one in entry["partitions"]]
    if moving:  # it may have arrived, and what is answered of its leader and ISR is out of date
        return answer["error_code"], [one["error_code"] for one in told]
    return answer["error_code"], [{name: one[name] for name in _IN_ANSWER} for one in told]


def write_isr(cluster: Cluster, topic: str, partition: int, isr: list[int]) -> None:
    """A leader of an old inter-broker protocol writes its state and leaves a notification."""
    state, version = _state(cluster, topic, partition)
    state.pop("leader_recovery_state", None)
    cluster.session.set(
        partition_state_path(topic, partition), orjson.dumps({**state, "isr": isr}), version
    )
    cluster.session.create_sequential(
        f"{ISR_CHANGE_PATH}/{ISR_CHANGE_PREFIX}", isr_change_bytes([(topic, partition)])
    )


def request_reassignment(
    cluster: Cluster, topic: str, partition: int, target: list[int] | None
) -> Any:
    """AlterPartitionReassignments; without a target what is under way is cancelled."""
    asked = {"partition_index": partition, "replicas": target}
    body = {
        "timeout_ms": cluster.controller.timeout_ms,
        "topics": [{"name": topic, "partitions": [asked]}],
    }
    answer = cluster.ask(ApiKey.ALTER_PARTITION_REASSIGNMENTS, 0, body)
    codes = [one["error_code"] for entry in answer["responses"] for one in entry["partitions"]]
    return answer["error_code"], codes


def reassign(cluster: Cluster, targets: Mapping[tuple[str, int], list[int]]) -> None:
    """Ask through /admin/reassign_partitions."""
    cluster.session.create(REASSIGNMENT_PATH, reassignment_bytes(targets))


def request_election(
    cluster: Cluster, election_type: int, partitions: list[tuple[str, int]] | None
) -> Any:
    """ElectLeaders; type 0 preferred, 1 unclean; of all partitions when none are named."""
    by_topic: dict[str, list[int]] = {}
    for topic, partition in partitions or ():
        by_topic.setdefault(topic, []).append(partition)
    listed = [{"topic": name, "partitions": numbers} for name, numbers in by_topic.items()]
    body = {
        "election_type": election_type,
        "topic_partitions": None if partitions is None else listed,
        "timeout_ms": cluster.controller.timeout_ms,
    }
    answer = cluster.ask(ApiKey.ELECT_LEADERS, 2, body)
    results = [
        (entry["topic"], one["partition_id"], _in_time(cluster, one["error_code"]))
        for entry in answer["replica_election_results"]
        for one in entry["partition_result"]
    ]
    return answer["error_code"], sorted(results)


def elect_preferred(cluster: Cluster, partitions: list[tuple[str, int]]) -> None:
    """Ask through /admin/preferred_replica_election."""
    cluster.session.create(PREFERRED_ELECTION_PATH, preferred_election_bytes(partitions))


def fail_disk(cluster: Cluster, broker: int, partitions: list[tuple[str, int]]) -> None:
    """A broker loses a log directory with these partitions, and says so."""
    error = int(ProtocolError.KAFKA_STORAGE_ERROR)
    cluster.stubs[broker].errors.update(dict.fromkeys(partitions, error))
    cluster.session.create_sequential(
        f"{LOG_DIR_EVENT_PATH}/{LOG_DIR_EVENT_PREFIX}", log_dir_event_bytes(broker)
    )


def configure_topic(cluster: Cluster, topic: str, config: Mapping[str, str]) -> None:
    _configure(cluster, "topics", topic, config)


def configure_brokers(cluster: Cluster, config: Mapping[str, str]) -> None:
    """Set the default of all brokers."""
    _configure(cluster, "brokers", "<default>", config)


def change_controller(cluster: Cluster) -> None:
    """Take the role away: whoever had it claims it again."""
    cluster.session.delete(CONTROLLER_PATH)


ACTIONS: Mapping[str, Callable[..., Any]] = {
    action.__name__: action
    for action in (
        change_brokers,
        shut_down_broker,
        create_topic,
        request_topic,
        add_partitions,
        request_partitions,
        delete_topic,
        request_deletion,
        alter_isr,
        write_isr,
        request_reassignment,
        reassign,
        request_election,
        elect_preferred,
        fail_disk,
        configure_topic,
        configure_brokers,
        change_controller,
    )
}


def _configure(cluster: Cluster, kind: str, name: str, config: Mapping[str, str]) -> None:
    path = entity_config_path(kind, name)
    data = config_bytes(config)
    present = cluster.session.get(path)
    change = config_change_bytes(f"{kind}/{name}")
    _multi(cluster, Create(path, data) if present is None else SetData(path, data, -1))
    cluster.session.create_sequential(f"{CONFIG_CHANGES_PATH}/{CONFIG_CHANGE_PREFIX}", change)


def _state(cluster: Cluster, topic: str, partition: int) -> tuple[dict[str, Any], int]:
    znode = cluster.session.get(partition_state_path(topic, partition))
    assert znode is not None
    return orjson.loads(znode.data), znode.version


def _multi(cluster: Cluster, *ops: Create | SetData) -> None:
    results = cluster.session.multi(ops)
    assert all(code == 0 for code, _ in results), (ops, results)


def _in_time(cluster: Cluster, error: int) -> int:
    """Return an answer as if brokers had followed in time: only Kafka's controller waits for it."""
    waits = cluster.controller.waits_for_brokers
    return int(ProtocolError.NONE) if waits and error == _REQUEST_TIMED_OUT else error


_REQUEST_TIMED_OUT = 7
_IN_ANSWER = ("error_code", "leader_id", "isr", "leader_recovery_state")
