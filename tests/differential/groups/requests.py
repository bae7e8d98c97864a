"""What clients ask a coordinator: bodies with all fields, of which each version takes its own."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from typing import Any

from streaming.gateway.coordinators import coordinator_partition
from streaming.internal_topics import GROUP_TOPIC
from streaming.wire.apis import APIS, ApiKey
from tests.bench.groups.systems import GROUP_PARTITIONS
from tests.differential.groups.model import Client, Group

Body = dict[str, Any]
Offset = tuple[str, int, int, int, str | None]
"""Topic, partition, offset, leader epoch, and a word on it."""
TYPE = "consumer"
SHORT_MS, LONG_MS = 1_500, 600_000
HASTE_MS = 1_500
_INSTANCE_SINCE = {
    ApiKey.JOIN_GROUP: 5,
    ApiKey.SYNC_GROUP: 3,
    ApiKey.HEARTBEAT: 3,
    ApiKey.LEAVE_GROUP: 3,
    ApiKey.OFFSET_COMMIT: 7,
    ApiKey.TXN_OFFSET_COMMIT: 3,
}
"""From which version on it is said who a static member is."""
_TWO_TIMEOUTS_SINCE = 1
_MANY_LEAVE_SINCE = 3
_ALL_OFFSETS_SINCE = 2
_MEMBER_IN_TRANSACTION_SINCE = 3


def since(api: ApiKey, body: Body) -> int:
    """Return the first version that has all that a body says."""
    said = [body, *body.get("members", [])]
    if any(one.get("group_instance_id") is not None for one in said):
        return _INSTANCE_SINCE[api]
    if api is ApiKey.JOIN_GROUP and body["rebalance_timeout_ms"] != body["session_timeout_ms"]:
        return _TWO_TIMEOUTS_SINCE
    if api is ApiKey.LEAVE_GROUP and body["members"][0]["member_id"] != body["member_id"]:
        return _MANY_LEAVE_SINCE
    if api is ApiKey.OFFSET_FETCH and body["topics"] is None:
        return _ALL_OFFSETS_SINCE
    if api is ApiKey.TXN_OFFSET_COMMIT and body["member_id"]:
        return _MEMBER_IN_TRANSACTION_SINCE
    return APIS[api].min_version


def subscription(topics: Sequence[str], number: int) -> bytes:
    """Return a consumer's metadata (ConsumerProtocolSubscription, version 0), another one for
    another number.
    """
    names = b"".join(struct.pack(">h", len(one)) + one.encode() for one in topics)
    return struct.pack(">hi", 0, len(topics)) + names + struct.pack(">ii", 4, number)


def join_group(group: Group, client: Client, protocols: dict[str, bytes], session_ms: int) -> Body:
    """A client joins; protocols: its metadata by their names."""
    return {
        "group_id": group.group_id,
        "session_timeout_ms": session_ms,
        "rebalance_timeout_ms": HASTE_MS if group.is_hasty else LONG_MS,
        "member_id": client.member_id,
        "group_instance_id": client.instance_id,
        "protocol_type": TYPE,
        "protocols": [{"name": name, "metadata": data} for name, data in protocols.items()],
    }


def sync_group(group: Group, client: Client) -> Body:
    """A member asks for its assignment, and the leader says what they all are."""
    assigned = {one: f"{one} of {client.generation}".encode() for one in client.members}
    return {
        **heartbeat(group, client),
        "protocol_type": TYPE,
        "protocol_name": client.protocol,
        "assignments": [
            {"member_id": member, "assignment": data} for member, data in assigned.items()
        ],
    }


def heartbeat(group: Group, client: Client) -> Body:
    """A member says that it is there."""
    return {
        "group_id": group.group_id,
        "generation_id": client.generation,
        "member_id": client.member_id,
        "group_instance_id": client.instance_id,
    }


def leave_group(group: Group, leavers: Sequence[Client], alone: Client | None = None) -> Body:
    """Members leave, or one alone, which versions before 3 can say too."""
    members = [
        {"member_id": one.member_id, "group_instance_id": one.instance_id} for one in leavers
    ]
    member_id = "" if alone is None else alone.member_id
    return {"group_id": group.group_id, "member_id": member_id, "members": members}


def offset_commit(group: Group, client: Client | None, offsets: Iterable[Offset]) -> Body:
    """A member commits, or somebody who is none."""
    who = Client("") if client is None else client
    return {
        "group_id": group.group_id,
        "generation_id_or_member_epoch": who.generation,
        "member_id": who.member_id,
        "group_instance_id": who.instance_id,
        "topics": _topics(offsets),
    }


def txn_offset_commit(group: Group, client: Client | None, offsets: Iterable[Offset]) -> Body:
    """The same within a transaction; each group has one producer."""
    body = offset_commit(group, client, offsets)
    generation = body.pop("generation_id_or_member_epoch")
    producer = {"transactional_id": group.group_id, **_producer(group)}
    return {**body, "generation_id": generation, **producer}


def write_txn_markers(group: Group, *, committed: bool) -> Body:
    """The transaction coordinator ends a group's transaction."""
    partition = coordinator_partition(group.group_id, GROUP_PARTITIONS)
    marker = {
        **_producer(group),
        "transaction_result": committed,
        "topics": [{"name": GROUP_TOPIC, "partition_indexes": [partition]}],
        "coordinator_epoch": 0,
    }
    return {"markers": [marker]}


def offset_delete(group: Group, topic: str, partition: int) -> Body:
    """Somebody deletes an offset."""
    topics = [{"name": topic, "partitions": [{"partition_index": partition}]}]
    return {"group_id": group.group_id, "topics": topics}


def offset_fetch(group: Group, partitions: Sequence[int] | None, *, stable: bool) -> Body:
    """Somebody asks for offsets of a topic; None: for all of them."""
    topics = None if partitions is None else [{"name": "t", "partition_indexes": [*partitions]}]
    one = {"group_id": group.group_id, "topics": topics}
    return {**one, "groups": [one], "require_stable": stable}


def _topics(offsets: Iterable[Offset]) -> list[Body]:
    return [
        {
            "name": topic,
            "partitions": [
                {
                    "partition_index": partition,
                    "committed_offset": offset,
                    "committed_leader_epoch": epoch,
                    "committed_metadata": word,
                }
            ],
        }
        for topic, partition, offset, epoch, word in offsets
    ]


def _producer(group: Group) -> Body:
    """Return the producer of a group, whom each side knows by a number that it drew."""
    return {"producer_id": group.group_id, "producer_epoch": 0}
