"""Requests of the vocabulary, sent as a gateway would: as events, or answered from the image."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from state.groups.answers import describe_group, fetch_offsets, heartbeat_error, list_groups
from state.groups.buckets import group_bucket
from state.groups.payloads.requests import Heartbeat
from state.groups.presence import ALIVE
from state.groups.tables import GroupApi, group_id_error
from state.protocol_errors import ProtocolError
from tests.conformance.groups.world import World, partition_for, to_base64
from tests.conformance.verdict import NotUnderstoodError, only

FIELDS: Mapping[str, str] = {
    "JoinGroup": "client host instance member protocol_type protocols rebalance_timeout_ms "
    "session_timeout_ms reason",
    "SyncGroup": "assignments generation instance member protocol_name protocol_type",
    "LeaveGroup": "member members instance",
    "Heartbeat": "generation instance member",
    "OffsetCommit": "generation instance member offsets retention_ms",
    "TxnOffsetCommit": "generation instance member offsets producer_id producer_epoch "
    "transactional_id",
    "OffsetFetch": "partitions require_stable member generation",
    "OffsetDelete": "partitions",
    "DescribeGroups": "groups",
    "DeleteGroups": "groups",
    "ListGroups": "states states_filter types types_filter",
}
STABLE_SINCE = 7


def expand(value: Any) -> Any:
    """Return a value with every long string of the vocabulary written out."""
    if isinstance(value, dict):
        if value.keys() == {"repeat", "count"}:
            return value["repeat"] * value["count"]
        return {key: expand(one) for key, one in value.items()}
    return [expand(one) for one in value] if isinstance(value, list) else value


def send(world: World, alias: str, body: dict[str, Any], verification: int) -> None:
    """Send a request under an alias; verification: what checking its transaction ends with."""
    api = body["api"]
    if api not in FIELDS:
        raise NotUnderstoodError(f"request {api!r} is not known")
    only(body, {"api", "version", "group", *FIELDS[api].split()}, api)
    for group in body.get("groups") or [body.get("group")]:
        if group is not None:
            world.own(group)
    if api in _READS:
        answer = _READS[api](world, body)
        world.replies[alias] = {**answer, "api": api, "given_at_ms": world.now_ms}
    elif api == "DeleteGroups":
        for group in body["groups"]:
            one = {**body, "group": group}
            _request(world, f"{alias}/{group}", "delete_group_requested", one, {})
    else:
        kind, fields = _EVENTS[api](body, alias)
        if api == "TxnOffsetCommit":
            fields["verification_error"] = verification
        _request(world, alias, kind, body, fields)


_APIS = {
    "join_group_requested": GroupApi.JOIN_GROUP,
    "sync_group_requested": GroupApi.SYNC_GROUP,
    "leave_group_requested": GroupApi.LEAVE_GROUP,
    "offset_commit_requested": GroupApi.OFFSET_COMMIT,
    "txn_offset_commit_requested": GroupApi.TXN_OFFSET_COMMIT,
    "offset_delete_requested": GroupApi.OFFSET_DELETE,
    "delete_group_requested": GroupApi.DELETE_GROUP,
}


def _request(
    world: World, alias: str, kind: str, body: dict[str, Any], fields: dict[str, Any]
) -> None:
    """Append a request; one without a group's name never gets further than the gateway."""
    group = body["group"]
    if group is None:
        error = group_id_error(_APIS[kind], group)
        reply = {"request_id": alias, "api": _APIS[kind], "error": error, "partitions": []}
        world.give({**reply, "member": body.get("member"), "members": []})
        return
    common = {
        "request_id": alias,
        "partition": partition_for(group),
        "group": group,
        "version": body["version"],
    }
    world.happen(kind, group, common | fields)


def _join(body: dict[str, Any], alias: str) -> tuple[str, dict[str, Any]]:
    instance = body.get("instance")
    fields = {
        name: body[name]
        for name in ("member", "client", "host", "session_timeout_ms", "rebalance_timeout_ms")
    }
    fields |= {
        "new_member": f"{instance or body['client']}-{alias}-minted",
        "instance": instance,
        "protocol_type": body["protocol_type"],
        "protocols": [[name, to_base64(metadata)] for name, metadata in body["protocols"]],
        "reason": body.get("reason"),
    }
    return "join_group_requested", fields


def _member(body: dict[str, Any]) -> dict[str, Any]:
    return {
        "member": body.get("member", ""),
        "instance": body.get("instance"),
        "generation": body.get("generation", -1),
    }


def _sync(body: dict[str, Any], alias: str) -> tuple[str, dict[str, Any]]:
    assignments = [[member, to_base64(value)] for member, value in body["assignments"]]
    fields = {
        "protocol_type": body.get("protocol_type"),
        "protocol": body.get("protocol_name"),
        "assignments": assignments,
    }
    return "sync_group_requested", _member(body) | fields


def _leave(body: dict[str, Any], alias: str) -> tuple[str, dict[str, Any]]:
    members = body.get("members")
    if members is None:
        members = [{"member": body["member"], "instance": body.get("instance")}]
    rows = [{"member": one["member"], "instance": one.get("instance")} for one in members]
    return "leave_group_requested", {"members": rows}


def _offsets(body: dict[str, Any]) -> list[list[Any]]:
    return [
        [
            one["topic"],
            one["partition"],
            one["offset"],
            one.get("leader_epoch", -1),
            one.get("metadata") or "",
        ]
        for one in body["offsets"]
    ]


def _commit(body: dict[str, Any], alias: str) -> tuple[str, dict[str, Any]]:
    fields = {"retention_ms": body.get("retention_ms"), "offsets": _offsets(body)}
    return "offset_commit_requested", _member(body) | fields


def _txn_commit(body: dict[str, Any], alias: str) -> tuple[str, dict[str, Any]]:
    fields = {
        "producer_id": body["producer_id"],
        "producer_epoch": body["producer_epoch"],
        "offsets": _offsets(body),
    }
    return "txn_offset_commit_requested", _member(body) | fields


def _offset_delete(body: dict[str, Any], alias: str) -> tuple[str, dict[str, Any]]:
    return "offset_delete_requested", {"partitions": body["partitions"]}


_EVENTS: Mapping[str, Callable[[dict[str, Any], str], tuple[str, dict[str, Any]]]] = {
    "JoinGroup": _join,
    "SyncGroup": _sync,
    "LeaveGroup": _leave,
    "OffsetCommit": _commit,
    "TxnOffsetCommit": _txn_commit,
    "OffsetDelete": _offset_delete,
}


def _heartbeat(world: World, body: dict[str, Any]) -> dict[str, Any]:
    group = body["group"]
    if group is None:
        return {"error": ProtocolError.INVALID_GROUP_ID}
    heard = Heartbeat(group, body["member"], body.get("instance"), body["generation"])
    error = heartbeat_error(world.image, world.phase(group), heard)
    if error in ALIVE:
        row = [heard.group, heard.member, heard.instance, heard.generation]
        world.happen("heartbeats_received", str(group_bucket(group)), {"heartbeats": [row]})
    return {"error": error}


def _offset_fetch(world: World, body: dict[str, Any]) -> dict[str, Any]:
    group, partitions = body["group"], body.get("partitions")
    if group is None:
        return {"error": ProtocolError.INVALID_GROUP_ID, "offsets": []}
    stable = body["version"] >= STABLE_SINCE and bool(body.get("require_stable", False))
    wanted = None if partitions is None else [(topic, number) for topic, number in partitions]
    error, found = fetch_offsets(
        world.image, world.phase(group), group, wanted, require_stable=stable
    )
    rows = [
        {
            "topic": one.topic,
            "partition": one.partition,
            "offset": one.offset,
            "leader_epoch": one.leader_epoch,
            "metadata": one.metadata,
            "error": one.error,
        }
        for one in found
    ]
    return {"error": error, "offsets": rows}


def _describe(world: World, body: dict[str, Any]) -> dict[str, Any]:
    found = [describe_group(world.image, world.phase(one), one) for one in body["groups"]]
    return {"error": found[0].error, "described": found}


def _list(world: World, body: dict[str, Any]) -> dict[str, Any]:
    states = body.get("states") or body.get("states_filter") or ()
    types = body.get("types") or body.get("types_filter") or ()
    phases = [world.slot_of("")[1].phase(partition) for partition in sorted(world.touched)]
    error, found = list_groups(world.image, phases, states, types)
    return {"error": error, "listed": found}


_READS: Mapping[str, Callable[[World, dict[str, Any]], dict[str, Any]]] = {
    "Heartbeat": _heartbeat,
    "OffsetFetch": _offset_fetch,
    "DescribeGroups": _describe,
    "ListGroups": _list,
}
