"""Replies in the words of the vocabulary."""

from __future__ import annotations

from typing import Any

from state.protocol_errors import ProtocolError
from tests.conformance.groups.world import World, to_hex

DEFAULT_TYPE = "classic"


def error_name(code: int) -> str:
    """Return the name of a protocol error."""
    return ProtocolError(code).name


def reply_of(world: World, alias: str, request: dict[str, Any]) -> dict[str, Any] | None:
    """Return the fields of a reply with `error` by name and `given_at_ms`; None while it waits."""
    if request["api"] == "DeleteGroups":
        return _deletions(world, alias, request)
    body = world.replies.get(alias)
    if body is None:
        return None
    fields = _FIELDS.get(request["api"], lambda body, request: {})(body, request)
    return {
        "error": error_name(body["error"]),
        "given_at_ms": body["given_at_ms"],
        **fields,
    }


def _deletions(world: World, alias: str, request: dict[str, Any]) -> dict[str, Any] | None:
    bodies = {group: world.replies.get(f"{alias}/{group}") for group in request["groups"]}
    found = {group: body for group, body in bodies.items() if body is not None}
    if len(found) < len(bodies):
        return None
    rows = [{"group": group, "error": error_name(body["error"])} for group, body in found.items()]
    given_at_ms = max(body["given_at_ms"] for body in found.values())
    return {"error": rows[0]["error"], "given_at_ms": given_at_ms, "groups": rows}


def _join(body: dict[str, Any], request: dict[str, Any]) -> dict[str, Any]:
    members = body["members"]
    return {
        "member": body["member"],
        "member_id": body["member"],
        "generation": body.get("generation"),
        "leader": body.get("leader"),
        "protocol_type": body.get("protocol_type"),
        "protocol": body.get("protocol"),
        "skip_assignment": body.get("skip_assignment", False),
        "members": [member for member, _, _ in members],
        "member_instances": [instance for _, instance, _ in members],
        "members_metadata": [to_hex(metadata) for _, _, metadata in members],
        "member_count": len(members),
    }


def _sync(body: dict[str, Any], request: dict[str, Any]) -> dict[str, Any]:
    return {
        "protocol_type": body.get("protocol_type"),
        "protocol": body.get("protocol"),
        "assignment": to_hex(body.get("assignment", "")),
    }


def _leave(body: dict[str, Any], request: dict[str, Any]) -> dict[str, Any]:
    rows = [
        {"member": member, "instance": instance, "error": error_name(error)}
        for member, instance, error in body["members"]
    ]
    return {"members": rows}


def _commit(body: dict[str, Any], request: dict[str, Any]) -> dict[str, Any]:
    said = {(topic, number): error for topic, number, error in body["partitions"]}
    rows = [
        [one["topic"], one["partition"], said.get((one["topic"], one["partition"]), body["error"])]
        for one in request["offsets"]
    ]
    return {"partitions": [[topic, number, error_name(code)] for topic, number, code in rows]}


def _offset_delete(body: dict[str, Any], request: dict[str, Any]) -> dict[str, Any]:
    rows = [[topic, number, error_name(code)] for topic, number, code in body["partitions"]]
    return {"partitions": rows}


def _offset_fetch(body: dict[str, Any], request: dict[str, Any]) -> dict[str, Any]:
    rows = [{**one, "error": error_name(one["error"])} for one in body["offsets"]]
    return {"offsets": rows, "offset_count": len(rows)}


def _describe(body: dict[str, Any], request: dict[str, Any]) -> dict[str, Any]:
    groups = [
        {
            "group": one.group,
            "error": error_name(one.error),
            "state": str(one.state),
            "protocol_type": one.protocol_type,
            "protocol": one.protocol,
            "members": [
                {
                    "member": member.member,
                    "instance": member.instance,
                    "client": member.client,
                    "host": member.host,
                    "metadata": to_hex(member.metadata),
                    "assignment": to_hex(member.assignment),
                }
                for member in one.members
            ],
        }
        for one in body["described"]
    ]
    return {"groups": groups}


def _list(body: dict[str, Any], request: dict[str, Any]) -> dict[str, Any]:
    groups = [
        {
            "group": one.group,
            "protocol_type": one.protocol_type,
            "state": str(one.state),
            "type": DEFAULT_TYPE,
        }
        for one in body["listed"]
    ]
    return {"groups": groups, "group_count": len(groups)}


_FIELDS = {
    "JoinGroup": _join,
    "SyncGroup": _sync,
    "LeaveGroup": _leave,
    "OffsetCommit": _commit,
    "TxnOffsetCommit": _commit,
    "OffsetDelete": _offset_delete,
    "OffsetFetch": _offset_fetch,
    "DescribeGroups": _describe,
    "ListGroups": _list,
}
ORDERED = {("LeaveGroup", "members")}
"""Lists whose order is asserted."""
