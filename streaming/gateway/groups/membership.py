"""JoinGroup, SyncGroup, Heartbeat and LeaveGroup: a member's life."""

from __future__ import annotations

import asyncio
import functools
import uuid
from base64 import b64decode, b64encode
from collections.abc import Coroutine
from typing import Any

from state.groups.answers import heartbeat_error, must_rejoin
from state.groups.join import MEMBER_ID_REQUIRED_SINCE
from state.groups.payloads import Heartbeat, SyncGroupRequested
from state.groups.presence import ALIVE
from state.groups.tables import Api
from state.protocol_errors import ProtocolError
from streaming.gateway.calls import Call
from streaming.gateway.groups.requests import GroupRequests
from streaming.wire.messages import ApiKey, decode_request, encode_response
from streaming.wire.passing import answer_with_id_of, request_with_id
from streaming.wire.schema_codec import Body

_REBALANCE_TIMEOUT_SINCE = 1
_NULL_PROTOCOL_SINCE = 7
_PROTOCOL_IN_SYNC_SINCE = 5
_MANY_MEMBERS_SINCE = 3
_HEARTBEATS_MAX = 1 << 16
_SYNC_WAITS_S = 1_800.0
"""A SyncGroup waits for the leader as long as the group's rebalance timeout, which is at most what
clients sensibly set; the machines answer it by then.
"""


class Membership:
    """Answers what members ask."""

    def __init__(self, requests: GroupRequests) -> None:
        """Take who decides."""
        self._requests = requests
        self._identifying: set[asyncio.Task[dict[str, Any]]] = set()

    async def join(self, call: Call) -> Body:
        """Answer JoinGroup, once the group's rebalance lets it."""
        body = call.body
        session_ms, client = body["session_timeout_ms"], call.header.client_id or ""
        with_rebalance = call.version >= _REBALANCE_TIMEOUT_SINCE
        rebalance_ms = body["rebalance_timeout_ms"] if with_rebalance else session_ms
        instance = body["group_instance_id"]
        payload = {
            "member": body["member_id"],
            "new_member": f"{instance if instance is not None else client}-{uuid.uuid4()}",
            "instance": instance,
            "client": client,
            "host": call.client_host,
            "session_timeout_ms": session_ms,
            "rebalance_timeout_ms": rebalance_ms,
            "protocol_type": body["protocol_type"],
            "protocols": [[one["name"], _text(one["metadata"])] for one in body["protocols"]],
            "reason": body["reason"],
        }
        waits_s = max(rebalance_ms, session_ms, 0) / 1000
        deciding = self._requests.reply(Api.JOIN_GROUP, call, body["group_id"], payload, waits_s)
        if body["member_id"] or instance is not None or call.version < MEMBER_ID_REQUIRED_SINCE:
            return _joined(call, await deciding)
        return _joined(call, await self._identified(deciding, payload["new_member"]))

    async def _identified(
        self, deciding: Coroutine[Any, Any, dict[str, Any]], member: str
    ) -> dict[str, Any]:
        """Return the member's id without waiting for the decision that it needs one.

        Where something else is decided, that is decided again when it comes with its id.
        """
        task = asyncio.create_task(deciding)
        await asyncio.sleep(0)
        if task.done():
            return task.result()
        self._identifying.add(task)
        task.add_done_callback(self._identifying.discard)
        return {"error": ProtocolError.MEMBER_ID_REQUIRED, "member": member}

    async def sync(self, call: Call) -> Body:
        """Answer SyncGroup, once the leader has said who gets what."""
        body = call.body
        named = call.version >= _PROTOCOL_IN_SYNC_SINCE
        payload = {
            "generation": body["generation_id"],
            "member": body["member_id"],
            "instance": body["group_instance_id"],
            "protocol_type": body["protocol_type"] if named else None,
            "protocol": body["protocol_name"] if named else None,
            "assignments": [
                [one["member_id"], _text(one["assignment"])] for one in body["assignments"]
            ],
        }
        if self._must_rejoin(call, payload):
            reply: dict[str, Any] = {"error": ProtocolError.REBALANCE_IN_PROGRESS}
        else:
            reply = await self._requests.reply(
                Api.SYNC_GROUP, call, body["group_id"], payload, _SYNC_WAITS_S
            )
        return {
            "error_code": reply["error"],
            "protocol_type": reply.get("protocol_type"),
            "protocol_name": reply.get("protocol"),
            "assignment": b64decode(reply.get("assignment", "")),
        }

    def _must_rejoin(self, call: Call, payload: dict[str, Any]) -> bool:
        service, group = self._requests.service, call.body["group_id"]
        partition = service.partition_of(group)
        request = SyncGroupRequested(
            "",
            partition,
            group,
            call.version,
            payload["generation"],
            payload["member"],
            payload["instance"],
            payload["protocol_type"],
            payload["protocol"],
            {},
        )
        return must_rejoin(service.image, service.phase(partition), request)

    def heartbeat(self, request: bytes) -> bytes:
        """Answer Heartbeat from what is decided so far: a frame in, a whole response out."""
        service = self._requests.service
        version, heard = _heard(request_with_id(request, 0))
        phase = service.phase(service.partition_of(heard.group))
        error = heartbeat_error(service.image, phase, heard)
        if error in ALIVE:
            service.heard(heard)
        return answer_with_id_of(_heartbeat_response(version, error), request)

    async def leave(self, call: Call) -> Body:
        """Answer LeaveGroup of one member, from version 3 on of several."""
        body = call.body
        many = call.version >= _MANY_MEMBERS_SINCE
        members = (
            [
                {
                    "member": one["member_id"],
                    "instance": one["group_instance_id"],
                    "reason": one["reason"],
                }
                for one in body["members"]
            ]
            if many
            else [{"member": body["member_id"], "instance": None}]
        )
        reply = await self._requests.reply(
            Api.LEAVE_GROUP, call, body["group_id"], {"members": members}
        )
        rows = reply.get("members", [])
        error = reply["error"]
        if not many and error == ProtocolError.NONE and rows:
            error = rows[0][2]
        return {
            "error_code": error,
            "members": [
                {"member_id": member, "group_instance_id": instance, "error_code": code}
                for member, instance, code in rows
            ],
        }


@functools.lru_cache(maxsize=_HEARTBEATS_MAX)
def _heard(request: bytes) -> tuple[int, Heartbeat]:
    """Return version and content: a member's are the same bytes but for the correlation id."""
    decoded = decode_request(request, (ApiKey.HEARTBEAT,))
    body = decoded.body
    heard = Heartbeat(
        body["group_id"], body["member_id"], body["group_instance_id"], body["generation_id"]
    )
    return decoded.header.api_version, heard


@functools.cache
def _heartbeat_response(version: int, error: int) -> bytes:
    """There are few different ones, and thousands a second."""
    return encode_response(ApiKey.HEARTBEAT, version, 0, {"error_code": error})


def _joined(call: Call, reply: dict[str, Any]) -> Body:
    protocol = reply.get("protocol")
    if protocol is None and call.version < _NULL_PROTOCOL_SINCE:
        protocol = ""
    return {
        "error_code": reply["error"],
        "generation_id": reply.get("generation", -1),
        "protocol_type": reply.get("protocol_type"),
        "protocol_name": protocol,
        "leader": reply.get("leader") or "",
        "skip_assignment": reply.get("skip_assignment", False),
        "member_id": reply.get("member", call.body["member_id"]),
        "members": [
            {"member_id": member, "group_instance_id": instance, "metadata": b64decode(metadata)}
            for member, instance, metadata in reply.get("members", [])
        ],
    }


def _text(data: bytes) -> str:
    return b64encode(data).decode()
