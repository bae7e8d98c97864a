"""Builds the world a scenario starts from: znodes, and machines that know them."""

from __future__ import annotations

from typing import Any

import numpy as np
import orjson

from checkpoints.machine_format import encode_machine
from state.cluster.authority import Authority, Phase
from state.cluster.brokers import Brokers
from state.cluster.cluster import Cluster
from state.cluster.config import ClusterConfig, checked_config
from state.cluster.leader_rebalance import LEADER_REBALANCE_TIMER
from state.partitions.slot import Slot
from state.partitions.table import Deletion, PartitionTable
from state.payloads.brokers import BrokerRegistration
from state.routing import CLUSTER_KEY
from streaming.zk.znodes import (
    CONTROLLER_EPOCH_PATH,
    CONTROLLER_PATH,
    TopicZNode,
    config_bytes,
    controller_bytes,
    entity_config_path,
    epoch_bytes,
    partition_state_bytes,
    partition_state_path,
    topic_bytes,
    topic_deletion_path,
    topic_path,
)
from tests.conformance import names
from tests.conformance.given_tables import add_topic, set_replica_states
from tests.conformance.load import Scenario
from tests.conformance.verdict import only
from tests.conformance.world import CONTROLLER_ID, SLOTS, World

GIVEN = {
    "controller",
    "controller_epoch",
    "controller_epoch_zk_version",
    "live_brokers",
    "shutting_down",
    "unclean_default",
    "topics",
    "offline_dirs",
    "broker_config",
    "inter_broker_protocol",
    "mock",
    "rpc_check",
    "topic_list_answer",
    # There is one look-up of a topic here, in its slot: no answer of its own to mock.
    "topic_exists_answer",
    "delete_enabled",
    "strict_transitions",
    "topics_to_be_deleted",
    "topics_with_deletion_started",
    "znodes",
}
TOPIC = {"config", "partitions", "topic_id"}
PARTITION = {
    "replicas",
    "adding",
    "removing",
    "state",
    "leader",
    "leader_epoch",
    "isr",
    "zk_version",
    "controller_epoch",
    "leader_recovery_state",
    "replica_states",
    # Leadership is in the store and not cached: a slot is the cache of the store, so it has it.
    "znode_only",
}
_FIRST_REBALANCE_MS = 5_000


def build(scenario: Scenario) -> World:
    """Return the world of a scenario's `given`."""
    given = scenario.given
    only(given, GIVEN, "given")
    world = World()
    world.keep_dead = given.get("rpc_check") == "batch_input"
    mock = given.get("mock", {})
    only(mock, {"update_returns_zk_version"}, "given.mock")
    world.store.answers = mock.get("update_returns_zk_version")
    world.config = cluster_config(given)
    world.protocol = _version(given.get("inter_broker_protocol"))
    _lay_down(world, given.get("znodes", []))
    world.labels = _id_labels(scenario)
    world.brokers_answer = scenario.area == "integration"
    world.strict = bool(given.get("strict_transitions", False))
    world.controller_broker = given.get("controller")
    for broker in given.get("live_brokers", []):
        described = broker if isinstance(broker, dict) else {"id": broker}
        only(described, {"id", "epoch", "rack"}, "broker")
        world.brokers[described["id"]] = (described.get("epoch", 1), described.get("rack"))
    world.told = sorted(world.brokers)
    for topic, body in _topics(given).items():
        _store_topic(world, topic, body)
    if "controller" not in given or given["controller"] is not None:
        _start_machines(world, scenario)
    return world


def _lay_down(world: World, znodes: list[dict[str, Any]]) -> None:
    """Put znodes into the store; only writes to them are what the scenario is about."""
    for znode in znodes:
        only(znode, {"path", "value", "zk_version"}, "znode")
        if znode["value"] is not None:
            world.store.put(znode["path"], orjson.dumps(znode["value"]), znode["zk_version"])
    world.watched = frozenset(znode["path"] for znode in znodes)


def _id_labels(scenario: Scenario) -> dict[str, str]:
    """Return what a scenario calls the ids of its topics."""
    result = scenario.then.get("result", {})
    said = [result.get(f"topic_ids_in_{place}", {}) for place in ("memory", "znode")]
    said += [{one.get("topic"): one.get("topic_id_in_znode")} for one in scenario.when]
    return {topic: label for ids in said for topic, label in ids.items() if label is not None}


def cluster_config(given: dict[str, Any]) -> dict[str, Any]:
    """Return the configuration that travels in controller_elected."""
    kafka = dict(given.get("broker_config", {}))
    seconds = kafka.pop("leader.imbalance.check.interval.seconds", None)
    if seconds is not None:
        kafka["leader.imbalance.check.interval.ms"] = seconds * 1000
    if "delete_enabled" in given:
        kafka["delete.topic.enable"] = given["delete_enabled"]
    if "unclean_default" in given:
        kafka["unclean.leader.election.enable"] = given["unclean_default"]
    kafka["leader.recovery.supported"] = _version(given.get("inter_broker_protocol")) >= (3, 2)
    return checked_config(kafka)


def _version(protocol: str | None) -> tuple[int, int]:
    if protocol in {None, "latest"}:
        return (3, 9)
    assert protocol is not None
    major, minor = protocol.split("-")[0].split(".")[:2]
    return int(major), int(minor)


def _topics(given: dict[str, Any]) -> dict[str, Any]:
    listed = {topic: {"partitions": {}} for topic in given.get("topic_list_answer", [])}
    return listed | given.get("topics", {})


def _store_topic(world: World, topic: str, body: dict[str, Any]) -> None:
    only(body, TOPIC, f"topic {topic}")
    partitions = {int(number): row for number, row in body["partitions"].items()}
    lists = {
        name: {number: row[name] for number, row in partitions.items() if row.get(name)}
        for name in ("replicas", "adding", "removing")
    }
    znode = TopicZNode(
        lists["replicas"], names.topic_id(body.get("topic_id")), lists["adding"], lists["removing"]
    )
    world.store.put(topic_path(topic), topic_bytes(znode))
    if body.get("config"):
        config = {name: str(value).lower() for name, value in body["config"].items()}
        world.store.put(entity_config_path("topics", topic), config_bytes(config))
    for number, row in partitions.items():
        only(row, PARTITION, f"partition {topic}-{number}")
        if row.get("leader") is not None:
            _store_state(world, topic, number, row)


def _store_state(world: World, topic: str, partition: int, row: dict[str, Any]) -> None:
    [data] = partition_state_bytes(
        [row["leader"]],
        [row["leader_epoch"]],
        np.array([row["isr"]], dtype=np.int32).reshape(1, -1),
        [row.get("controller_epoch", 0)],
        [row.get("leader_recovery_state", 0)],
    )
    world.store.put(partition_state_path(topic, partition), data, row.get("zk_version", 0))


def _start_machines(world: World, scenario: Scenario) -> None:
    given = scenario.given
    epoch = given.get("controller_epoch") or 0
    fence = given.get("controller_epoch_zk_version") or 0
    world.store.put(CONTROLLER_EPOCH_PATH, epoch_bytes(epoch), fence)
    world.store.put(CONTROLLER_PATH, controller_bytes(CONTROLLER_ID, 0))
    cluster = Cluster(*_common(world, given, epoch, fence))
    if cluster.config.auto_leader_rebalance:
        cluster.timers[LEADER_REBALANCE_TIMER] = _FIRST_REBALANCE_MS
        world.timers = dict(cluster.timers)
    world.machines[CLUSTER_KEY] = encode_machine(cluster)
    tables = {key: PartitionTable() for key in range(SLOTS)}
    for topic, body in _topics(given).items():
        add_topic(tables[world.slot_key(topic)], scenario, topic, body)
    started = set(given.get("topics_with_deletion_started", []))
    for topic in sorted(started | set(given.get("topics_to_be_deleted", []))):
        tables[world.slot_key(topic)].deletions[topic] = Deletion(started=topic in started)
        world.store.put(topic_deletion_path(topic), b"")
    for key, table in tables.items():
        slot = Slot(*_common(world, given, epoch, fence), table)
        set_replica_states(slot, given)
        world.machines[key] = encode_machine(slot)


def _common(
    world: World, given: dict[str, Any], epoch: int, fence: int
) -> tuple[Authority, ClusterConfig, Brokers]:
    authority = Authority(Phase.ACTIVE, CONTROLLER_ID, epoch, fence)
    config = ClusterConfig().configured(world.config)
    registered = [
        BrokerRegistration(id_, broker_epoch, rack, ())
        for id_, (broker_epoch, rack) in sorted(world.brokers.items())
    ]
    leaving = world.brokers.keys() & set(given.get("shutting_down", []))
    return authority, config, Brokers(registered, leaving)
