"""OffsetCommit, TxnOffsetCommit, OffsetFetch and OffsetDelete."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import Any

from state.groups.answers import FetchedOffset, fetch_offsets
from state.groups.tables import GroupApi
from state.protocol_errors import ProtocolError
from streaming.gateway.calls import Call, HangUp
from streaming.gateway.groups.requests import GroupRequests
from streaming.wire import since
from streaming.wire.apis import APIS
from streaming.wire.offset_commits import RETENTION, THROTTLE_SINCE, encode_commit_errors
from streaming.wire.schema_codec import Body

_LOADING_SINCE = 2
_NO_OFFSET = -1


class Offsets:
    """Answers what is asked about committed offsets."""

    def __init__(self, requests: GroupRequests) -> None:
        """Take who decides."""
        self._requests = requests

    async def commit(self, call: Call) -> bytes:
        """Answer OffsetCommit, once every broker in sync has what was committed."""
        body = call.body
        payload = {
            "member": body["member_id"],
            "instance": body["group_instance_id"],
            "generation": body["generation_id_or_member_epoch"],
            "retention_ms": body["retention_time_ms"] if call.version in RETENTION else None,
            "offsets": body["offsets"],
        }
        api = GroupApi.OFFSET_COMMIT
        reply = await self._requests.reply(api, call, body["group_id"], payload)
        return self._committed(api, call, reply, payload["offsets"], body["topics"])

    async def commit_in_transaction(self, call: Call) -> bytes:
        """Answer TxnOffsetCommit; what it commits counts once the transaction is committed."""
        body = call.body
        payload = {
            "producer_id": body["producer_id"],
            "producer_epoch": body["producer_epoch"],
            "member": body["member_id"],
            "instance": body["group_instance_id"],
            "generation": body["generation_id"],
            "offsets": _offsets(body["topics"]),
        }
        topics = [(topic["name"], len(topic["partitions"])) for topic in body["topics"]]
        reply = await self._requests.reply_in_transaction(
            call, body["group_id"], body["transactional_id"], payload
        )
        if call.version < _LOADING_SINCE:
            reply = _without_loading(reply)
        return self._committed(GroupApi.TXN_OFFSET_COMMIT, call, reply, payload["offsets"], topics)

    def _committed(
        self,
        api: GroupApi,
        call: Call,
        reply: Mapping[str, Any],
        offsets: Iterable[Sequence[Any]],
        topics: Iterable[tuple[str, int]],
    ) -> bytes:
        """Return the answer; topics: how many partitions of each there are."""
        error = reply["error"]
        own = {(topic, number): code for topic, number, code in reply.get("partitions", [])}
        rest = iter(offsets)
        errors = [
            (name, [(row[1], own.get((name, row[1]), error)) for row in islice(rest, count)])
            for name, count in topics
        ]
        return encode_commit_errors(
            errors,
            throttle=api is GroupApi.TXN_OFFSET_COMMIT or call.version >= THROTTLE_SINCE,
            flexible=APIS[call.header.api_key].response.is_flexible(call.version),
        )

    async def fetch(self, call: Call) -> Body:
        """Answer OffsetFetch from what is decided so far, from version 8 on for several groups.

        Raises HangUp where another node coordinates all of them: every client looks for it then,
        while a consumer of librdkafka that is told so never asks again (its issue 5586).
        """
        many = call.version >= since.OFFSET_FETCH_MANY_GROUPS
        answers = [self._fetch(call, one) for one in (call.body["groups"] if many else [call.body])]
        if answers and all(one["error_code"] == ProtocolError.NOT_COORDINATOR for one in answers):
            raise HangUp("another node coordinates the groups whose offsets are asked for")
        if many:
            return {"groups": answers}
        (answer,) = answers
        if (
            call.version < since.OFFSET_FETCH_TOP_LEVEL_ERROR
            and answer["error_code"] != ProtocolError.NONE
        ):
            answer["topics"] = _refused(call.body["topics"], answer["error_code"])
        return {"topics": answer["topics"], "error_code": answer["error_code"]}

    def _fetch(self, call: Call, asked: Mapping[str, Any]) -> Body:
        service, group = self._requests.service, asked["group_id"]
        topics = asked["topics"]
        partitions = None if topics is None else _partitions(topics, "partition_indexes")
        error, found = fetch_offsets(
            service.image,
            service.phase(service.partition_of(group)),
            group,
            partitions,
            require_stable=call.body["require_stable"],
        )
        return {"group_id": group, "topics": _fetched(found), "error_code": error}

    async def delete(self, call: Call) -> Body:
        """Answer OffsetDelete."""
        body = call.body
        asked = [
            [topic["name"], one["partition_index"]]
            for topic in body["topics"]
            for one in topic["partitions"]
        ]
        reply = await self._requests.reply(
            GroupApi.OFFSET_DELETE, call, body["group_id"], {"partitions": asked}
        )
        topics: dict[str, list[Body]] = {}
        for topic, number, code in reply.get("partitions", []):
            answer = {"partition_index": number, "error_code": code}
            topics.setdefault(topic, []).append(answer)
        return {
            "error_code": reply["error"],
            "topics": [{"name": name, "partitions": rows} for name, rows in topics.items()],
        }


def _offsets(topics: Iterable[Mapping[str, Any]]) -> list[list[Any]]:
    return [
        [
            topic["name"],
            one["partition_index"],
            one["committed_offset"],
            one["committed_leader_epoch"],
            one["committed_metadata"] or "",
        ]
        for topic in topics
        for one in topic["partitions"]
    ]


def _without_loading(reply: Mapping[str, Any]) -> dict[str, Any]:
    """Return a reply without the error that ends producers before 2.0 (KAFKA-7296).

    Source: KafkaApis.handleTxnOffsetCommitRequest.
    """

    def softened(error: int) -> int:
        loading = error == ProtocolError.COORDINATOR_LOAD_IN_PROGRESS
        return ProtocolError.COORDINATOR_NOT_AVAILABLE if loading else error

    rows = [[*partition, softened(error)] for *partition, error in reply.get("partitions", [])]
    return {**reply, "error": softened(reply["error"]), "partitions": rows}


def _partitions(topics: Iterable[Mapping[str, Any]], field: str) -> list[tuple[str, int]]:
    return [(topic["name"], number) for topic in topics for number in topic[field]]


def _fetched(found: Sequence[FetchedOffset]) -> list[Body]:
    topics: dict[str, list[Body]] = {}
    for one in found:
        partition = {
            "partition_index": one.partition,
            "committed_offset": one.offset,
            "committed_leader_epoch": one.leader_epoch,
            "metadata": one.metadata,
            "error_code": one.error,
        }
        topics.setdefault(one.topic, []).append(partition)
    return [{"name": name, "partitions": rows} for name, rows in topics.items()]


def _refused(topics: Iterable[Mapping[str, Any]] | None, error: int) -> list[Body]:
    partitions = _partitions(topics or [], "partition_indexes")
    return _fetched(
        [
            FetchedOffset(topic, number, _NO_OFFSET, -1, "", ProtocolError(error))
            for topic, number in partitions
        ]
    )
