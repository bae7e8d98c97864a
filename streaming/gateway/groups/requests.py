"""Requests about groups on their way to the machines and back.

A request is an event; its answer comes with a decision, for JoinGroup and SyncGroup perhaps only
when others have joined. What waits here is a future by request id: a client that hangs up leaves an
id behind, whose answer is dropped.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Protocol, TypeAlias

from state.event_kinds import EventKind
from state.groups.image import GroupImage
from state.groups.payloads.requests import Heartbeat
from state.groups.tables import LOADING_ANSWERS, CoordinatorPhase, GroupApi, status_error
from state.protocol_errors import ProtocolError
from state.topic_partition import TopicPartition
from streaming.gateway.calls import Answer, Call
from streaming.gateway.groups.transactions import Producing, Transactions
from streaming.gateway.ports import (
    COMMIT_TIMEOUT_S,
    DecisionTimedOut,
    NoJob,
    NotController,
    NotReplicated,
    ReplyBody,
)

logger = logging.getLogger(__name__)

OnReply: TypeAlias = Callable[[ReplyBody], None]
"""Takes the reply to a request, or {"error": code} alone."""

_FAILURES = (NotController, NoJob, DecisionTimedOut, NotReplicated)

_EVENTS: Mapping[GroupApi, EventKind] = {
    GroupApi.JOIN_GROUP: EventKind.JOIN_GROUP_REQUESTED,
    GroupApi.SYNC_GROUP: EventKind.SYNC_GROUP_REQUESTED,
    GroupApi.LEAVE_GROUP: EventKind.LEAVE_GROUP_REQUESTED,
    GroupApi.OFFSET_COMMIT: EventKind.OFFSET_COMMIT_REQUESTED,
    GroupApi.TXN_OFFSET_COMMIT: EventKind.TXN_OFFSET_COMMIT_REQUESTED,
    GroupApi.OFFSET_DELETE: EventKind.OFFSET_DELETE_REQUESTED,
    GroupApi.DELETE_GROUP: EventKind.DELETE_GROUP_REQUESTED,
}

_COMMITS = frozenset({GroupApi.OFFSET_COMMIT, GroupApi.TXN_OFFSET_COMMIT})
_ONE_TOO_MANY: Mapping[GroupApi, ProtocolError] = {
    GroupApi.JOIN_GROUP: ProtocolError.GROUP_MAX_SIZE_REACHED,
    **dict.fromkeys(_COMMITS, ProtocolError.COORDINATOR_NOT_AVAILABLE),
}
"""What is answered instead of beginning a group beyond groups.max; a commit is asked again."""
_PARTITIONS: Mapping[GroupApi, str] = {
    **dict.fromkeys(_COMMITS, "offsets"),
    GroupApi.OFFSET_DELETE: "partitions",
}
"""Where a request says which partitions it is about; each begins with topic and number."""
_TIMED_OUT = dict.fromkeys(_COMMITS, ProtocolError.REQUEST_TIMED_OUT)
"""As Kafka answers; librdkafka keeps its connection then, and with it its heartbeats."""


class GroupService(Protocol):
    """What the process around the gateway knows of groups; used on the gateway's event loop."""

    @property
    def image(self) -> GroupImage:
        """Return the groups as decided so far."""

    def partition_of(self, group: str) -> int:
        """Return the group's partition of __consumer_offsets, -1 while there are none."""

    def phase(self, partition: int) -> CoordinatorPhase:
        """Return what this node is for a partition."""

    def refuses_commits(self, partition: int) -> bool:
        """Return whether a partition takes no commit now: too many wait for brokers in sync, or
        these are too few.
        """

    def phases(self) -> list[CoordinatorPhase]:
        """Return what this node is for each partition."""

    async def submit(
        self, kind: EventKind, group: str, payload: dict[str, Any], timeout_s: float
    ) -> ReplyBody:
        """Append an event with a fresh request_id and return the reply.

        Raises NotController, NoJob, DecisionTimedOut, NotReplicated.
        """

    def ask(
        self, kind: EventKind, group: str, payload: dict[str, Any], timeout_s: float
    ) -> asyncio.Future[ReplyBody]:
        """Do as submit does, for what is not about offsets, without waiting; raises NotController,
        NoJob.
        """

    def unknown(self, group: str, partitions: Iterable[TopicPartition]) -> list[TopicPartition]:
        """Return the partitions that neither exist nor have a committed offset."""

    def try_commit(self, request: bytes, host: str, answer: Answer) -> bool:
        """Begin to answer an OffsetCommit; False leaves it to be submitted."""

    def heard(self, heartbeat: Heartbeat) -> None:
        """Take a heartbeat of a known member, which was answered."""


class GroupRequests:
    """Has requests decided, and answers failures with error codes that clients understand."""

    def __init__(
        self,
        service: GroupService,
        timeout_s: float,
        groups_max: int,
        transactions: Transactions,
    ) -> None:
        """timeout_s: how long a decision may take; groups_max: groups beyond which no new one is
        begun.
        """
        self.service = service
        self._transactions = transactions
        self._timeout_s = timeout_s
        self._groups_max = groups_max

    def status(self, api: GroupApi, group: str | None) -> ProtocolError | None:
        """Return what is answered without a decision, None when one is needed.

        A commit that its partition does not take gets what it gets from Kafka where the append
        fails for want of replicas (GroupMetadataManager.maybeConvertOffsetCommitError): every
        client tries it again.
        """
        partition = -1 if group is None else self.service.partition_of(group)
        error = status_error(api, group, self.service.phase(partition))
        if error is None and api in _COMMITS and self.service.refuses_commits(partition):
            error = ProtocolError.COORDINATOR_NOT_AVAILABLE
        return error

    async def reply(
        self, api: GroupApi, call: Call, group: str | None, payload: dict[str, Any]
    ) -> ReplyBody:
        """Return the reply to a request about a group, or {"error": code} alone.

        A commit without partitions that exist does not reach the coordinator (KafkaApis), so it
        begins no group.
        """
        asked = self._asked(api, group, call.version, payload)
        if group is None or isinstance(asked, ProtocolError):
            return {"error": asked}
        rows = asked.get(_PARTITIONS.get(api, ""), ())
        unknown = self.service.unknown(group, [(row[0], row[1]) for row in rows])
        if unknown:
            rows = [row for row in rows if (row[0], row[1]) not in unknown]
            asked = {**asked, _PARTITIONS[api]: rows}
        if not rows and api in _COMMITS:
            return _with_unknown({"error": ProtocolError.NONE}, unknown)
        reply = await self._decided(api, group, asked)
        whole = api is GroupApi.OFFSET_DELETE and reply["error"] != ProtocolError.NONE
        return reply if whole else _with_unknown(reply, unknown)

    async def _decided(self, api: GroupApi, group: str, asked: dict[str, Any]) -> ReplyBody:
        timeout_s = self._timeout_s
        if api is GroupApi.OFFSET_COMMIT:
            timeout_s = min(timeout_s, COMMIT_TIMEOUT_S)
        elif api is GroupApi.TXN_OFFSET_COMMIT:
            timeout_s = math.inf  # a marker waits until it is decided, even if its client is gone
        try:
            return await self.service.submit(_EVENTS[api], group, asked, timeout_s)
        except _FAILURES as failure:
            return {"error": _error_of(api, failure)}

    def ask(
        self,
        api: GroupApi,
        group: str,
        version: int,
        payload: dict[str, Any],
        *,
        waits_s: float,
        on_reply: OnReply,
    ) -> None:
        """Give the reply to a request that is not about offsets, as `reply` returns it: at once or
        later, without a task.

        waits_s: how long the answer may be held back by the group itself.
        """
        asked = self._asked(api, group, version, payload)
        if isinstance(asked, ProtocolError):
            on_reply({"error": asked})
            return
        try:
            reply = self.service.ask(_EVENTS[api], group, asked, self._timeout_s + waits_s)
        except _FAILURES as failure:
            on_reply({"error": _error_of(api, failure)})
            return

        def decided(reply: asyncio.Future[ReplyBody]) -> None:
            failure = reply.exception()
            on_reply(reply.result() if failure is None else {"error": _error_of(api, failure)})

        if reply.done():
            decided(reply)
        else:
            reply.add_done_callback(decided)

    def _asked(
        self, api: GroupApi, group: str | None, version: int, payload: dict[str, Any]
    ) -> dict[str, Any] | ProtocolError:
        """Return the payload of the event, or what is answered without one."""
        error = self.status(api, group)
        if error is not None:
            return error
        assert group is not None, "a request without a group's name has a status"
        if _may_begin(api, payload) and self._is_one_too_many(group):
            return _ONE_TOO_MANY[api]
        partition = self.service.partition_of(group)
        return {**payload, "group": group, "partition": partition, "version": version}

    async def reply_in_transaction(
        self, call: Call, group: str, transactional_id: str, payload: dict[str, Any]
    ) -> ReplyBody:
        """Return the reply to a TxnOffsetCommit, which the transaction's coordinator is asked about
        first.
        """
        api = GroupApi.TXN_OFFSET_COMMIT
        error = self.status(api, group)
        if error is not None:
            return {"error": error}
        who = Producing(
            transactional_id,
            payload["producer_id"],
            payload["producer_epoch"],
            self.service.partition_of(group),
            call.version,
        )
        return await self._transactions.commit(
            who, lambda code: self.reply(api, call, group, payload | {"verification_error": code})
        )

    def _is_one_too_many(self, group: str) -> bool:
        groups = self.service.image.groups
        return len(groups) >= self._groups_max and group not in groups


def _may_begin(api: GroupApi, payload: Mapping[str, Any]) -> bool:
    """Return whether a request would begin a group that is not there."""
    return api in _ONE_TOO_MANY and (api is not GroupApi.OFFSET_COMMIT or payload["generation"] < 0)


def _with_unknown(reply: ReplyBody, unknown: Iterable[TopicPartition]) -> ReplyBody:
    """Return the reply to a request about partitions of which some do not exist."""
    error = ProtocolError.UNKNOWN_TOPIC_OR_PARTITION
    rows = [[*one, error] for one in unknown]
    return {**reply, "partitions": [*reply.get("partitions", ()), *rows]} if rows else reply


def _error_of(api: GroupApi, failure: BaseException) -> ProtocolError:
    """Return what is answered to a request that was not decided."""
    match failure:
        case NoJob():
            # Everything is loaded again when it is back. Until then nobody may wait here: a client
            # whose heartbeats stand behind its commit gives its membership up.
            return LOADING_ANSWERS[api]
        case NotController():
            return ProtocolError.NOT_COORDINATOR
        case DecisionTimedOut() | NotReplicated():
            return _TIMED_OUT.get(api, ProtocolError.COORDINATOR_NOT_AVAILABLE)
        case _:
            logger.error("%s was not decided", api, exc_info=failure)
            return ProtocolError.UNKNOWN_SERVER_ERROR
