"""JoinGroup, SyncGroup, Heartbeat and LeaveGroup: what members ask."""

from __future__ import annotations

import functools
import logging
import uuid
from binascii import a2b_base64, b2a_base64
from collections.abc import Callable, Iterable

from state.groups.answers import heartbeat_error
from state.groups.join import MEMBER_ID_REQUIRED_SINCE
from state.groups.payloads.requests import Heartbeat
from state.groups.presence import ALIVE, MEMBERS_SINCE
from state.groups.tables import GroupApi
from state.protocol_errors import ProtocolError
from streaming.gateway.calls import Answer, Call, HangUp
from streaming.gateway.groups.requests import GroupRequests, OnReply
from streaming.gateway.ports import ReplyBody
from streaming.wire import since
from streaming.wire.apis import ApiKey
from streaming.wire.joining import encode_join_group, encode_sync_group
from streaming.wire.passing import answer_with_id_of, request_with_id
from streaming.wire.reading import STRING_BYTES_MAX
from streaming.wire.requests import RequestHeader, decode_request
from streaming.wire.responses import encode_response, encode_response_header
from streaming.wire.schema_codec import Body

logger = logging.getLogger(__name__)

_NO_GENERATION = -1
_HEARTBEATS_MAX = 1 << 16
_HEARTBEAT_BYTES_MAX = 512
"""Of a heartbeat that is kept: one that may be kept whatever its names are, or what follows it,
would take as much memory as its sender likes.
"""
_SYNC_WAITS_S = 1_800.0
"""A SyncGroup waits for the leader as long as the group's rebalance timeout, which is at most what
clients sensibly set; the machines answer it by then.
"""


class Membership:
    """Answers what members ask."""

    def __init__(self, requests: GroupRequests, *, static_members: bool) -> None:
        """Take what has requests decided; static_members: whether all brokers can read of them."""
        self._requests = requests
        self._static_members = static_members

    def join(self, request: bytes, host: str, answer: Answer) -> bool:
        """Answer JoinGroup, once the group's rebalance lets it.

        Raises HangUp for a client whose name leaves no room for a member id.
        """
        decoded = decode_request(request, (ApiKey.JOIN_GROUP,))
        header, body = decoded.header, decoded.body
        version, member = header.api_version, body["member_id"]
        session_ms, client = body["session_timeout_ms"], header.client_id or ""
        with_rebalance = version >= since.JOIN_GROUP_REBALANCE_TIMEOUT
        rebalance_ms = body["rebalance_timeout_ms"] if with_rebalance else session_ms
        instance = body["group_instance_id"]
        new_member = "" if member else _new_member_id(client if instance is None else instance)
        payload = {
            "member": member,
            "new_member": new_member,
            "instance": instance,
            "client": client,
            "host": host,
            "session_timeout_ms": session_ms,
            "rebalance_timeout_ms": rebalance_ms,
            "protocol_type": body["protocol_type"],
            "protocols": _in_base64(body["protocols"]),
            "reason": body["reason"],
        }
        on_reply = _answering(answer, functools.partial(_join_response, header, member))
        if instance is not None and not self._static_members:  # KafkaApis.handleJoinGroupRequest
            on_reply({"error": ProtocolError.UNSUPPORTED_VERSION})
            return True
        identifies = not member and instance is None and version >= MEMBER_ID_REQUIRED_SINCE
        at_once: list[ReplyBody] = []
        self._requests.ask(
            GroupApi.JOIN_GROUP,
            body["group_id"],
            version,
            payload,
            waits_s=max(rebalance_ms, session_ms, 0) / 1000,
            on_reply=at_once.append if identifies else on_reply,
        )
        if identifies:
            # That it needs an id is known without the decision. Where something else is decided,
            # that is decided again when it comes with its id.
            required = {"error": ProtocolError.MEMBER_ID_REQUIRED, "member": new_member}
            on_reply(at_once[0] if at_once else required)
        return True

    def sync(self, request: bytes, host: str, answer: Answer) -> bool:
        """Answer SyncGroup, once the leader has sent the assignment."""
        decoded = decode_request(request, (ApiKey.SYNC_GROUP,))
        header, body = decoded.header, decoded.body
        payload = {
            "generation": body["generation_id"],
            "member": body["member_id"],
            "instance": body["group_instance_id"],
            "protocol_type": body["protocol_type"],
            "protocol": body["protocol_name"],
            "assignments": _in_base64(body["assignments"]),
        }
        on_reply = _answering(answer, functools.partial(_sync_response, header))
        group, version = body["group_id"], header.api_version
        named = payload["protocol_type"] is not None and payload["protocol"] is not None
        if version >= since.SYNC_GROUP_PROTOCOL and not named:
            on_reply({"error": ProtocolError.INCONSISTENT_GROUP_PROTOCOL})
        else:
            self._requests.ask(
                GroupApi.SYNC_GROUP,
                group,
                version,
                payload,
                waits_s=_SYNC_WAITS_S,
                on_reply=on_reply,
            )
        return True

    def heartbeat(self, request: bytes) -> bytes:
        """Answer Heartbeat from what is decided so far: a frame in, a whole response out."""
        service = self._requests.service
        version, heard = _heard(request)
        phase = service.phase(service.partition_of(heard.group))
        error = heartbeat_error(service.image, phase, heard)
        if error in ALIVE:
            service.heard(heard)
        return answer_with_id_of(_heartbeat_response(version, error), request)

    async def leave(self, call: Call) -> Body:
        """Answer LeaveGroup of one member, from version 3 on of several."""
        body = call.body
        many = call.version >= MEMBERS_SINCE
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
            GroupApi.LEAVE_GROUP, call, body["group_id"], {"members": members}
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


def _new_member_id(name: str) -> str:
    """Return an id that begins with a client's or instance's name; it has to fit in responses and
    in the group's record. Raises HangUp.
    """
    made = f"{name}-{uuid.uuid4()}"
    if len(made.encode()) > STRING_BYTES_MAX:
        raise HangUp(f"a member id of {len(made)} characters")
    return made


def _heard(request: bytes) -> tuple[int, Heartbeat]:
    """Return version and content: a member's are the same bytes but for the correlation id."""
    if len(request) > _HEARTBEAT_BYTES_MAX:
        return _read_heartbeat(request)
    return _known_heartbeat(request_with_id(request, 0))


def _read_heartbeat(request: bytes) -> tuple[int, Heartbeat]:
    decoded = decode_request(request, (ApiKey.HEARTBEAT,))
    body = decoded.body
    heard = Heartbeat(
        body["group_id"], body["member_id"], body["group_instance_id"], body["generation_id"]
    )
    return decoded.header.api_version, heard


_known_heartbeat = functools.lru_cache(maxsize=_HEARTBEATS_MAX)(_read_heartbeat)


@functools.cache
def _heartbeat_response(version: int, error: int) -> bytes:
    """Return a response without its id: there are few different ones, and thousands a second."""
    return encode_response(ApiKey.HEARTBEAT, version, 0, {"error_code": error})


def _answering(answer: Answer, encode: Callable[[ReplyBody], bytes]) -> OnReply:
    """Return what answers with the response to a reply."""

    def on_reply(reply: ReplyBody) -> None:
        try:
            response = encode(reply)
        except Exception:  # a bug of ours must not leave the client without an answer
            logger.exception("no response can be made of a reply with error %s", reply["error"])
            response = encode({"error": ProtocolError.UNKNOWN_SERVER_ERROR})
        answer(response)

    return on_reply


def _join_response(header: RequestHeader, asked_as: str, reply: ReplyBody) -> bytes:
    version = header.api_version
    protocol = reply.get("protocol")
    if protocol is None and version < since.JOIN_GROUP_NULL_PROTOCOL:
        protocol = ""
    body = encode_join_group(
        version,
        reply["error"],
        generation=reply.get("generation", _NO_GENERATION),
        protocol_type=reply.get("protocol_type"),
        protocol=protocol,
        leader=reply.get("leader") or "",
        skip_assignment=reply.get("skip_assignment", False),
        member=reply.get("member", asked_as),
        members=[
            (member, instance, a2b_base64(metadata))
            for member, instance, metadata in reply.get("members", ())
        ],
    )
    return encode_response_header(ApiKey.JOIN_GROUP, version, header.correlation_id) + body


def _sync_response(header: RequestHeader, reply: ReplyBody) -> bytes:
    version = header.api_version
    body = encode_sync_group(
        version,
        reply["error"],
        protocol_type=reply.get("protocol_type"),
        protocol=reply.get("protocol"),
        assignment=a2b_base64(reply.get("assignment", "")),
    )
    return encode_response_header(ApiKey.SYNC_GROUP, version, header.correlation_id) + body


def _in_base64(rows: Iterable[tuple[str, bytes]]) -> list[tuple[str, str]]:
    return [(name, b2a_base64(data, newline=False).decode()) for name, data in rows]
