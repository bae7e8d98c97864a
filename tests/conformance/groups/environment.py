"""What the vocabulary does to a coordinator from outside: ownership, loading, meddling."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from state.decisions import Decision
from state.events import Event
from state.groups.bucket import Bucket
from state.groups.group import Group
from state.groups.group_turn import finish, with_group
from state.groups.load import LoadedPartition
from state.groups.member import Member
from state.groups.offset_rows import OffsetRow, loaded_position
from state.groups.rebalance import move, prepare
from state.groups.slot import GroupSlot
from state.groups.states import GroupState
from state.groups.tables import CoordinatorPhase
from state.groups.turn import Turn
from tests.conformance.groups.sends import expand
from tests.conformance.groups.world import World, partition_for, to_base64
from tests.conformance.verdict import NotUnderstoodError, only


def act(world: World, step: dict[str, Any]) -> None:
    """Carry out an `env` step."""
    name = step["env"]
    if name not in _ENVIRONMENT:
        raise NotUnderstoodError(f"env {name!r} is not known")
    _ENVIRONMENT[name](world, step)


def _partitions(world: World, kind: str, partition: int, epoch: int | None) -> None:
    world.touched.add(partition)
    world.happen(kind, "", {"partitions": [partition], "epoch": epoch})


def _not_coordinator(world: World, step: dict[str, Any]) -> None:
    only(step, {"at_ms", "env", "group"}, "not_coordinator")
    _partitions(world, "group_partitions_resigned", partition_for(step["group"]), None)


def _loading(world: World, step: dict[str, Any]) -> None:
    only(step, {"at_ms", "env", "group", "value", "loading"}, "loading")
    group = step["group"]
    partition = partition_for(group)
    held = world.slot_of(group)[1].partitions.get(partition)
    epoch = 0 if held is None else held.epoch
    if step.get("value", step.get("loading", True)):
        if held is not None and held.phase is CoordinatorPhase.OWNED:
            _partitions(world, "group_partitions_resigned", partition, epoch)
        _partitions(world, "group_partitions_elected", partition, epoch)
    else:
        _partitions(world, "group_partitions_loaded", partition, epoch)


def _member(one: dict[str, Any]) -> Member:
    return Member(
        one["member"],
        one.get("instance"),
        one.get("client", "client"),
        one.get("host", "/host"),
        one.get("session_timeout_ms", 10_000),
        one.get("rebalance_timeout_ms", 60_000),
        tuple((name, to_base64(metadata)) for name, metadata in one.get("protocols", [])),
        to_base64(one.get("assignment", "")),
    )


def _put_group(world: World, step: dict[str, Any]) -> None:
    fields = {"state", "generation", "protocol_type", "protocol", "leader", "members", "group"}
    only(step, {"at_ms", "env", *fields}, "put_group")
    name = step["group"]
    group = Group(
        name,
        world.own(name),
        GroupState(step["state"]),
        step.get("generation", 0),
        protocol=step.get("protocol"),
        state_since_ms=world.now_ms,
    )
    for one in step.get("members", []):
        group.add(_member(one), step["protocol_type"])
    group.protocol_type = step.get("protocol_type")
    group.leader = step.get("leader", group.leader)

    def put(slot: GroupSlot, bucket: Bucket) -> list[Decision]:
        if name in bucket.entries:
            bucket.remove(name)
        return finish(bucket, Turn(world.offset, world.now_ms, slot.config), group, gone=False)

    world.meddle(name, put)
    world.image_from_machine(name)


def _meddle_with(world: World, name: str, change: Callable[[Turn, Group], None]) -> None:
    event = Event(world.offset, world.now_ms, "", name, b"")
    world.meddle(name, lambda slot, _: with_group(slot, event, name, change))


def _force_state(world: World, step: dict[str, Any]) -> None:
    only(step, {"at_ms", "env", "group", "path"}, "force_state")

    def force(turn: Turn, group: Group) -> None:
        for state in step["path"]:
            move(turn, group, GroupState(state))

    _meddle_with(world, step["group"], force)
    world.image_from_machine(step["group"])


def _trigger_rebalance(world: World, step: dict[str, Any]) -> None:
    only(step, {"at_ms", "env", "group"}, "trigger_rebalance")
    _meddle_with(world, step["group"], lambda turn, group: prepare(turn, group, "asked for"))


def _txn_marker(world: World, step: dict[str, Any]) -> None:
    fields = {"at_ms", "env", "producer_id", "producer_epoch", "result", "offsets_partition_of"}
    only(step, fields, "txn_marker")
    payload = {
        "producer_id": step["producer_id"],
        "committed": {"COMMIT": True, "ABORT": False}[step["result"]],
        "partitions": sorted({partition_for(group) for group in step["offsets_partition_of"]}),
    }
    world.happen("transaction_completed", "", payload)


def _expire_offsets(world: World, step: dict[str, Any]) -> None:
    only(step, {"at_ms", "env"}, "expire_offsets")
    for number in world.buckets():
        world.happen("offsets_expiration_due", str(number), {})


_ENVIRONMENT: Mapping[str, Callable[[World, dict[str, Any]], None]] = {
    "not_coordinator": _not_coordinator,
    "loading": _loading,
    "put_group": _put_group,
    "force_state": _force_state,
    "trigger_rebalance": _trigger_rebalance,
    "txn_marker": _txn_marker,
    "expire_offsets": _expire_offsets,
}


def load_log(world: World, step: dict[str, Any]) -> None:
    """Take a partition over: it loads, its groups are observed, it is served."""
    body = expand(step["load_log"])
    only(body, {"partition_of", "epoch", "records"}, "load_log")
    partition, epoch = partition_for(body["partition_of"]), body["epoch"]
    _partitions(world, "group_partitions_elected", partition, epoch)
    found = LoadedPartition()
    for log_offset, record in enumerate(body["records"]):
        _read(found, log_offset, record, world.now_ms)
    for payload in found.observed(partition, epoch):
        world.happen("group_observed", payload["group"], payload)
    _partitions(world, "group_partitions_loaded", partition, epoch)


def unload_log(world: World, step: dict[str, Any]) -> None:
    """Give a partition up."""
    body = step["unload_log"]
    only(body, {"partition_of", "epoch"}, "unload_log")
    partition = partition_for(body["partition_of"])
    _partitions(world, "group_partitions_resigned", partition, body.get("epoch"))


def _read(found: LoadedPartition, log_offset: int, record: dict[str, Any], now_ms: int) -> None:
    only(record, {*_RECORDS, "txn"}, "record")
    producer = record.get("txn", {}).get("producer_id")
    for name, read in _RECORDS.items():
        if name in record:
            read(found, record[name], producer, log_offset, now_ms)


def _offset_commit(
    found: LoadedPartition, body: dict[str, Any], producer: int | None, log_offset: int, now_ms: int
) -> None:
    row = OffsetRow(
        body["offset"],
        body.get("leader_epoch", -1),
        body.get("metadata") or "",
        body.get("commit_timestamp", body.get("commit_ms", now_ms)),
        body.get("expire_timestamp", body.get("expire_ms")),
        loaded_position(log_offset),
    )
    found.offset_commit(body["group"], (body["topic"], body["partition"]), row, producer)


def _offset_tombstone(
    found: LoadedPartition, body: dict[str, Any], producer: int | None, log_offset: int, now_ms: int
) -> None:
    found.offset_commit(body["group"], (body["topic"], body["partition"]), None, producer)


def _group_metadata(
    found: LoadedPartition, body: dict[str, Any], producer: int | None, log_offset: int, now_ms: int
) -> None:
    members = [
        {
            **{key: one[key] for key in ("member", "instance", "client", "host")},
            "session_timeout_ms": one["session_timeout_ms"],
            "rebalance_timeout_ms": one["rebalance_timeout_ms"],
            "metadata": to_base64(one["metadata"]),
            "assignment": to_base64(one["assignment"]),
        }
        for one in body["members"]
    ]
    since_ms = body.get("state_timestamp", body.get("state_since_ms"))
    metadata = {key: body[key] for key in ("generation", "protocol_type", "protocol", "leader")}
    found.group_metadata(
        body["group"],
        {**metadata, "state_since_ms": None if since_ms == -1 else since_ms, "members": members},
    )


def _group_tombstone(
    found: LoadedPartition, body: dict[str, Any], producer: int | None, log_offset: int, now_ms: int
) -> None:
    found.group_metadata(body["group"], None)


def _marker(
    found: LoadedPartition, body: dict[str, Any], producer: int | None, log_offset: int, now_ms: int
) -> None:
    found.marker(body["producer_id"], committed={"COMMIT": True, "ABORT": False}[body["result"]])


def _unknown_key(
    found: LoadedPartition, body: dict[str, Any], producer: int | None, log_offset: int, now_ms: int
) -> None:
    """A key of a version that nobody knows is passed over."""


_RECORDS: Mapping[str, Callable[[LoadedPartition, Any, int | None, int, int], None]] = {
    "offset_commit": _offset_commit,
    "offset_tombstone": _offset_tombstone,
    "group_metadata": _group_metadata,
    "group_tombstone": _group_tombstone,
    "group_metadata_tombstone": _group_tombstone,
    "txn_marker": _marker,
    "unknown_key": _unknown_key,
}
