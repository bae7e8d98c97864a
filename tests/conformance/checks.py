"""Checks every fact of `then` against what came out."""

from __future__ import annotations

from typing import Any

import orjson

from state.matrix import unpad
from state.partitions.legal import PartitionState, ReplicaState
from state.partitions.refusals import RefusalReason
from state.protocol_errors import ProtocolError
from streaming.zk.znodes import partition_state_path
from tests.conformance import names
from tests.conformance.results import check_result
from tests.conformance.verdict import Findings, NotUnderstoodError, only
from tests.conformance.world import World
from tests.fixtures.fake_zookeeper import Written

THEN = {"partitions", "replicas", "rpcs", "zk", "errors", "result", "invalid_transition"}


def check(world: World, then: dict[str, Any]) -> Findings:
    """Return what does not hold of `then`."""
    only(then, THEN, "then")
    found = Findings()
    for name, facts in then.get("partitions", {}).items():
        _check_partition(world, found, name, facts)
    for name, state in then.get("replicas", {}).items():
        found.expect(f"replica {name}", state, _replica(world, name))
    if "rpcs" in then:
        _check_rpcs(world, found, then["rpcs"])
    if "zk" in then:
        _check_writes(world, found, then["zk"])
    for fact, expected in then.get("errors", {}).items():
        found.expect(f"errors.{fact}", expected, _errors(world, fact))
    for fact, expected in then.get("result", {}).items():
        check_result(world, found, fact, expected)
    refused = any(refusal["reason"] == RefusalReason.ILLEGAL_MOVE for refusal in world.refusals)
    if world.strict:
        found.expect("strict_transitions", False, refused)
    if "invalid_transition" in then:
        found.expect("invalid_transition", then["invalid_transition"], refused)
    return found


_ROW_FACTS = {
    "leader": "leader",
    "leader_epoch": "leader_epoch",
    "zk_controller_epoch": "controller_epoch",
    "leader_recovery_state": "recovery",
    "partition_epoch": "zk_version",
    "zk_version": "zk_version",
}


def _check_partition(world: World, found: Findings, name: str, facts: dict[str, Any]) -> None:
    """Compare with the slot's row, and the row with the znode: they must say the same."""
    came = _row_facts(world, name)
    if facts is None:
        found.expect(f"partition {name}", None, came)
        return
    only(facts, {"state", "isr", "replicas", "adding", "removing", *_ROW_FACTS}, f"then {name}")
    if came is None:
        found.expect(f"partition {name}", facts, None)
        return
    for fact, expected in facts.items():
        found.expect(f"partition {name} {fact}", expected, came[fact])
    stored = _znode_facts(world, name)
    if stored is not None and came["leader"] is not None:
        both = {fact: came[fact] for fact in stored}
        found.expect(f"partition {name} in the store", both, stored)


def _row_facts(world: World, name: str) -> dict[str, Any] | None:
    topic, partition = names.topic_partition(name)
    place = world.row(topic, partition)
    if place is None:
        return None
    slot, at = place
    rows = slot.table.rows
    led = bool(rows.has_state[at])
    came: dict[str, Any] = {
        fact: int(getattr(rows, column)[at]) if led else None for fact, column in _ROW_FACTS.items()
    }
    replicas = rows.replicas[at]
    return came | {
        "state": names.name_of(PartitionState(int(rows.state[at]))),
        "isr": unpad(rows.isr[at]) if led else None,
        "replicas": unpad(replicas),
        "adding": unpad(replicas[rows.adding[at]]),
        "removing": unpad(replicas[rows.removing[at]]),
    }


def _znode_facts(world: World, name: str) -> dict[str, Any] | None:
    node = world.store.get(partition_state_path(*names.topic_partition(name)))
    if node is None:
        return None
    state = orjson.loads(node.data)
    return {
        "leader": state["leader"],
        "leader_epoch": state["leader_epoch"],
        "isr": state["isr"],
        "zk_controller_epoch": state["controller_epoch"],
        "leader_recovery_state": state.get("leader_recovery_state", 0),
        "zk_version": node.version,
    }


def _replica(world: World, name: str) -> str | None:
    """Return a replica's state, None when the partition has no such replica (any more)."""
    partition, _, broker = name.rpartition("-")
    place = world.row(*names.topic_partition(partition))
    if place is None:
        return None
    slot, at = place
    for column, replica in enumerate(slot.table.rows.replicas[at].tolist()):
        if replica == int(broker):
            return names.name_of(ReplicaState(int(slot.table.rows.replica_state[at, column])))
    return None


def _check_rpcs(world: World, found: Findings, expected: list[dict[str, Any]]) -> None:
    """Each listed request went to exactly these brokers with these fields; [] means none at all."""
    if not expected:
        found.expect("rpcs", [], [f"{rpc.api} to {rpc.broker}" for rpc in world.rpcs])
    for rpc in expected:
        only(rpc, {"to", "api", "partition", "fields"}, "rpc")
        about = [
            sent
            for sent in world.rpcs
            if sent.api == rpc["api"] and sent.partition == rpc["partition"]
        ]
        for sent in about:
            unknown = sorted(rpc.get("fields", {}).keys() - sent.fields.keys())
            if unknown:
                raise NotUnderstoodError(f"{rpc['api']} fields {unknown}")
        wanted = rpc.get("fields", {})
        matching = {
            sent.broker
            for sent in about
            if all(sent.fields[name] == value for name, value in wanted.items())
        }
        came = [{"to": sent.broker} | sent.fields for sent in about]
        fact = f"{rpc['api']} of {rpc['partition']} with {wanted}"
        if matching != set(rpc["to"]):
            found.expect(fact, sorted(rpc["to"]), came)


def _check_writes(world: World, found: Findings, expected: list[dict[str, Any]]) -> None:
    """The listed writes were made in this order, maybe among others; [] means none at all. A
    scenario that lays znodes down is about writes to these.
    """
    written = [
        write for write in world.store.written if not world.watched or write.path in world.watched
    ]
    if not expected:
        found.expect("zk", [], [f"{write.op} {write.path}" for write in written])
    place = 0
    for number, fact in enumerate(expected):
        only(fact, _WRITE_FACTS, "zk")
        ahead = written[place:]
        match = next((at for at, write in enumerate(ahead) if _is_write(write, fact)), None)
        if match is None:
            found.expect(f"zk[{number}]", fact, [_written(write) for write in ahead])
        else:
            place += match + 1


_WRITE_FACTS = {"op", "path", "value", "expected_version", "expected_controller_epoch_zk_version"}


def _written(write: Written) -> dict[str, Any]:
    return {
        "op": write.op,
        "path": write.path,
        "value": write.value,
        "expected_version": write.expected_version,
        "expected_controller_epoch_zk_version": write.fence,
    }


def _is_write(write: Written, fact: dict[str, Any]) -> bool:
    came = _written(write)
    return all(holds(expected, came[name]) for name, expected in fact.items())


def holds(expected: Any, came: Any) -> bool:
    """Return whether a value holds what is expected of it; expected objects may be partial."""
    if isinstance(expected, dict) and isinstance(came, dict):
        return all(name in came and holds(value, came[name]) for name, value in expected.items())
    return bool(expected == came)


_BY_PARTITION = {"elect_leaders", "alter_reassignments"}


def _errors_by_partition(world: World) -> dict[str, str]:
    """Return the error names of the last election or reassignment asked for, by partition."""
    asked = [reply for reply in world.replies if reply["api"] in _BY_PARTITION]
    return {
        f"{asked[-1]['topic']}-{one['partition']}": ProtocolError(one["error"]).name
        for one in (asked[-1]["partitions"] if asked else ())
    }


def _errors(world: World, fact: str) -> Any:
    """Return the error names of the last answer a fact is about."""
    if fact in world.answer.get("errors", {}):
        return world.answer["errors"][fact]
    api = {
        "top_level": "alter_partition",
        "partition": "alter_partition",
        "allocate_producer_ids": "producer_ids",
    }.get(fact, fact)
    by_partition = _errors_by_partition(world)
    if fact in by_partition:
        return by_partition[fact]
    replies = [reply for reply in world.replies if reply["api"] == api]
    if not replies:
        return None
    if fact == "partition":
        return {
            f"{world.answer['sent']}-{row['partition']}": ProtocolError(row["error"]).name
            for row in replies[-1]["partitions"]
        }
    if replies[-1].get("message") == "not all brokers have rack information":
        return "ADMIN_OPERATION"
    return ProtocolError(replies[-1]["error"]).name
