"""Applies decisions as the job's sinks do: the store first, then requests, then replies.

A write is conditional on the version that the machine expects and fenced by the controller epoch.
What fails comes back as an event with the znode's content, and the requests of that row are not
sent.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import orjson

from state.decisions import Action, DecisionKind
from state.merge import MergedDecision
from state.payloads.admin import REASSIGN_PARTITIONS_PATH
from state.protocol_errors import ProtocolError
from streaming.sinks import reports
from streaming.sinks.batch import opened
from streaming.sinks.reassignments import without
from streaming.zk.ops import Check, Create, Delete, SetData, WriteOp
from streaming.zk.znodes import (
    CONTROLLER_EPOCH_PATH,
    PRODUCER_ID_BLOCK_PATH,
    ProducerIdBlock,
    TopicZNode,
    config_bytes,
    entity_config_path,
    parse_topic,
    partition_state_bytes,
    partition_state_path,
    producer_id_block_bytes,
    topic_bytes,
    topic_deletion_path,
    topic_path,
)
from streaming.zk.znodes.admin import parse_reassignment, reassignment_bytes
from tests.conformance.verdict import NotUnderstoodError
from tests.conformance.world import Rpc, World
from tests.fixtures.decision_rows import rows_of
from tests.fixtures.observed_topics import states_now

MAX_BATCHES = 50


class FencedError(Exception):
    """Another controller has taken over: its epoch is in the store."""


def settle(world: World) -> None:
    """Fold and apply batch after batch until nothing comes back any more."""
    for _ in range(MAX_BATCHES):
        batch = world.take_batch()
        if not batch:
            return
        apply(world, world.fold(batch))
    raise AssertionError(f"the cluster has not settled after {MAX_BATCHES} batches")


def apply(world: World, decisions: list[MergedDecision]) -> None:
    """Apply a batch of decisions in order; once fenced, drop the rest and resign."""
    try:
        for decision in decisions:
            _APPLY[decision.kind](world, decision)
    except FencedError:
        world.resigned = "CONTROLLER_MOVED"
        world.happen("controller_resigned", reason="another controller has taken over")


def _fenced(world: World, epoch_zk_version: int, op: WriteOp) -> tuple[int, int]:
    """Make one write under the epoch's check; returns (error code, version)."""
    check, result = world.store.multi([Check(CONTROLLER_EPOCH_PATH, epoch_zk_version), op])
    if check[0] < 0 and world.store.nodes[CONTROLLER_EPOCH_PATH].version != epoch_zk_version:
        raise FencedError
    return result


def _update_brokers(world: World, decision: MergedDecision) -> None:
    body = orjson.loads(decision.body)
    world.told = [broker["id"] for broker in body["brokers"]]


def _create_topic(world: World, decision: MergedDecision) -> None:
    body = orjson.loads(decision.body)
    assignment = {int(partition): ids for partition, ids in body["assignment"].items()}
    fence = body["epoch_zk_version"]
    config = Create(entity_config_path("topics", body["topic"]), config_bytes(body["configs"]))
    topic = Create(topic_path(body["topic"]), topic_bytes(TopicZNode(assignment, body["topic_id"])))
    _fenced(world, fence, config)
    _fenced(world, fence, topic)


def _rewrite_assignment(world: World, decision: MergedDecision) -> None:
    body = orjson.loads(decision.body)
    lists = {
        name: {int(partition): ids for partition, ids in body[name].items()}
        for name in ("assignment", "adding", "removing")
    }
    znode = TopicZNode(lists["assignment"], body["topic_id"], lists["adding"], lists["removing"])
    op = SetData(topic_path(body["topic"]), topic_bytes(znode), body["expected_version"])
    _fenced(world, body["epoch_zk_version"], op)


def _mark_topic_deletion(world: World, decision: MergedDecision) -> None:
    body = orjson.loads(decision.body)
    if world.store.get(topic_deletion_path(body["topic"])) is None:
        _fenced(world, body["epoch_zk_version"], Create(topic_deletion_path(body["topic"]), b""))


def _unmark_topic_deletion(world: World, decision: MergedDecision) -> None:
    body = orjson.loads(decision.body)
    _delete(world, body["epoch_zk_version"], topic_deletion_path(body["topic"]))


def _delete_topic(world: World, decision: MergedDecision) -> None:
    body = orjson.loads(decision.body)
    topic = body["topic"]
    node = world.store.get(topic_path(topic))
    if node is not None and parse_topic(node.data).topic_id != body["topic_id"]:
        return
    below = [path for path in world.store.nodes if path.startswith(topic_path(topic) + "/")]
    own = [topic_path(topic), entity_config_path("topics", topic), topic_deletion_path(topic)]
    for path in [*sorted(below, reverse=True), *own]:
        _delete(world, body["epoch_zk_version"], path)


def _delete(world: World, fence: int, path: str) -> None:
    if world.store.get(path) is not None:
        _fenced(world, fence, Delete(path))


def _write_producer_ids(world: World, decision: MergedDecision) -> None:
    body = orjson.loads(decision.body)
    block = ProducerIdBlock(body["broker"], body["block_start"], body["block_end"])
    data, expected = producer_id_block_bytes(block), body["expected_version"]
    op = (
        Create(PRODUCER_ID_BLOCK_PATH, data)
        if expected < 0
        else SetData(PRODUCER_ID_BLOCK_PATH, data, expected)
    )
    _fenced(world, body["epoch_zk_version"], op)
    world.answer |= {"block_start": body["block_start"], "block_end": body["block_end"]}


def _complete_reassignment(world: World, decision: MergedDecision) -> None:
    """Make the topic's last write, unless one of its partitions was not written."""
    topic = orjson.loads(decision.body)["topic"]
    if (decision.offset, topic) in world.conflicts:
        world.happen("topic_removed", topic, topic=topic)
        world.happen("topic_observed", topic, **world.topic_now(topic))
    else:
        _rewrite_assignment(world, decision)


def _remove_reassignments(world: World, decision: MergedDecision) -> None:
    body = orjson.loads(decision.body)
    node = world.store.get(REASSIGN_PARTITIONS_PATH)
    if node is None:
        return
    asked = parse_reassignment(node.data)
    left = without(asked, [(body["topic"], body["partitions"])])
    if left == asked:
        return
    op = (
        SetData(REASSIGN_PARTITIONS_PATH, reassignment_bytes(left), node.version)
        if left
        else Delete(REASSIGN_PARTITIONS_PATH, node.version)
    )
    _fenced(world, body["epoch_zk_version"], op)


def _delete_admin_znode(world: World, decision: MergedDecision) -> None:
    body = orjson.loads(decision.body)
    _fenced(world, body["epoch_zk_version"], Delete(body["path"], body["expected_version"]))


def _change_partitions(world: World, decision: MergedDecision) -> None:
    rows, extra = rows_of(decision.body)
    conflicts: dict[str, list[int]] = {}
    for row in rows:
        version = row["partition_epoch"]
        if row["actions"] & Action.WRITE:
            code, version = _write_state(world, extra["epoch_zk_version"], row)
            if code:
                conflicts.setdefault(row["topic"], []).append(row["partition"])
                continue
        _send(world, row, extra["controller_epoch"], version)
    world.conflicts |= {(decision.offset, topic) for topic in conflicts}
    for topic, partitions in conflicts.items():
        world.happen(
            "partition_states_observed",
            topic,
            topic=topic,
            cause="conflict",
            partitions=partitions,
            states=states_now(world.store, topic, partitions),
        )


def _write_state(world: World, fence: int, row: dict[str, Any]) -> tuple[int, int]:
    path = partition_state_path(row["topic"], row["partition"])
    [data] = partition_state_bytes(
        [row["leader"]],
        [row["leader_epoch"]],
        np.array([row["isr"]], dtype=np.int32),
        [row["controller_epoch"]],
        [row["recovery"]],
    )
    if row["actions"] & Action.CREATE:
        return _fenced(world, fence, Create(path, data))
    code, version = _fenced(world, fence, SetData(path, data, row["partition_epoch"] - 1))
    real = world.store.answers is None and not code
    assert not real or version == row["partition_epoch"], f"version {version} of {path}"
    return code, version


def _send(world: World, row: dict[str, Any], controller_epoch: int, version: int) -> None:
    state = {
        "controller_epoch": row["controller_epoch"],
        "leader": row["leader"],
        "leader_epoch": row["leader_epoch"],
        "isr": row["isr"],
        "partition_epoch": version,
        "zk_version": version,
        "replicas": row["replicas"],
    }
    if row["actions"] & Action.LEADER_AND_ISR:
        fields = state | {
            "controller_epoch": controller_epoch,
            "leader_recovery_state": row["recovery"],
            "adding_replicas": row["adding"],
            "removing_replicas": row["removing"],
        }
        coming = set(row["adding"]) - set(row["isr"])
        for broker in row["recipients"]:
            fields["is_new"] = bool(row["actions"] & Action.IS_NEW) and (
                bool(row["actions"] & Action.CREATE) or not row["adding"] or broker in coming
            )
            _ask(world, broker, "LeaderAndIsr", row["name"], dict(fields))
    if row["actions"] & Action.UPDATE_METADATA:
        if row["actions"] & Action.DELETED:
            state |= {"leader": -2, "leader_epoch": 0, "partition_epoch": 0, "zk_version": 0}
        for broker in world.told:
            fields = state | {"offline_replicas": row["offline"]}
            _ask(world, broker, "UpdateMetadata", row["name"], fields)


def _stop_replicas(world: World, decision: MergedDecision) -> None:
    for row in rows_of(decision.body)[0]:
        fields = {"delete_partition": row["delete"], "leader_epoch": row["leader_epoch"]}
        _ask(world, row["broker"], "StopReplica", row["name"], fields)


def _ask(world: World, broker: int, api: str, partition: str, fields: dict[str, Any]) -> None:
    if world.keep_dead or broker in world.told:
        world.rpcs.append(Rpc(broker, api, partition, fields))
    topic, _, number = partition.rpartition("-")
    if api == "StopReplica" and fields["delete_partition"] and _answers(world, broker):
        _answer(world, "stop_replica_answered", broker, topic, int(number), error=0)
    if api == "LeaderAndIsr" and (broker, topic, int(number)) in world.failed_disks:
        _answer(
            world,
            "leader_and_isr_answered",
            broker,
            topic,
            int(number),
            error=ProtocolError.KAFKA_STORAGE_ERROR,
        )


def _answers(world: World, broker: int) -> bool:
    return world.brokers_answer and broker in world.told


def _answer(
    world: World, kind: str, broker: int, topic: str, partition: int, *, error: int
) -> None:
    world.happen(
        kind,
        topic,
        broker_id=broker,
        broker_epoch=world.brokers[broker][0],
        topic=topic,
        partitions=[partition],
        errors=[error],
    )


def _report_remaining(world: World, decision: MergedDecision) -> None:
    world.remaining = sorted(row["name"] for row in rows_of(decision.body)[0])


def _propose_elections(world: World, decision: MergedDecision) -> None:
    (world.proposals,) = opened([decision])


def _report_imbalance(world: World, decision: MergedDecision) -> None:
    (report,) = opened([decision])
    world.happen("leader_imbalance_reported", **reports.imbalance(report, world.proposals))
    world.proposals = None


def _report_at_risk(world: World, decision: MergedDecision) -> None:
    (world.at_risk,) = opened([decision])


def _check_shutdown(world: World, decision: MergedDecision) -> None:
    request = orjson.loads(decision.body)
    world.happen("controlled_shutdown_checked", **reports.checked_shutdown(request, world.at_risk))
    world.at_risk = None


def _ask_log_ends(world: World, decision: MergedDecision) -> None:
    raise NotUnderstoodError("Kafka's controller asks nobody where logs end")


def _refuse_transition(world: World, decision: MergedDecision) -> None:
    world.refusals.extend(rows_of(decision.body)[0])


def _set_aside(world: World, decision: MergedDecision) -> None:
    body = orjson.loads(decision.body)
    raise NotUnderstoodError(f"event {body['kind']} was set aside: {body['reason']}")


def _arm_timer(world: World, decision: MergedDecision) -> None:
    body = orjson.loads(decision.body)
    world.timers[body["timer"]] = body["deadline_ms"]


def _reply(world: World, decision: MergedDecision) -> None:
    world.replies.append(orjson.loads(decision.body))


def _forget_topic(world: World, decision: MergedDecision) -> None:
    """Nobody need be told: the read side forgets the topic."""


_APPLY = {
    DecisionKind.UPDATE_BROKERS: _update_brokers,
    DecisionKind.CREATE_TOPIC: _create_topic,
    DecisionKind.REWRITE_ASSIGNMENT: _rewrite_assignment,
    DecisionKind.MARK_TOPIC_DELETION: _mark_topic_deletion,
    DecisionKind.UNMARK_TOPIC_DELETION: _unmark_topic_deletion,
    DecisionKind.DELETE_TOPIC: _delete_topic,
    DecisionKind.FORGET_TOPIC: _forget_topic,
    DecisionKind.WRITE_PRODUCER_ID_BLOCK: _write_producer_ids,
    DecisionKind.CHANGE_PARTITIONS: _change_partitions,
    DecisionKind.STOP_REPLICAS: _stop_replicas,
    DecisionKind.COMPLETE_REASSIGNMENT: _complete_reassignment,
    DecisionKind.REMOVE_REASSIGNMENTS: _remove_reassignments,
    DecisionKind.DELETE_ADMIN_ZNODE: _delete_admin_znode,
    DecisionKind.REPORT_REMAINING: _report_remaining,
    DecisionKind.REPORT_AT_RISK: _report_at_risk,
    DecisionKind.CHECK_SHUTDOWN: _check_shutdown,
    DecisionKind.PROPOSE_ELECTIONS: _propose_elections,
    DecisionKind.REPORT_IMBALANCE: _report_imbalance,
    DecisionKind.ASK_LOG_ENDS: _ask_log_ends,
    DecisionKind.REFUSE_TRANSITION: _refuse_transition,
    DecisionKind.SET_ASIDE: _set_aside,
    DecisionKind.ARM_TIMER: _arm_timer,
    DecisionKind.REPLY: _reply,
}
