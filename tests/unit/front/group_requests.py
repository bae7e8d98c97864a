"""Requests about a group as a client makes them, one function each."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import pytest

from state.protocol_errors import ProtocolError
from streaming.wire.apis import APIS, ApiKey
from tests.fixtures.waiting import wait_on_loop
from tests.unit.front.group_world import GroupWorld, coordinating
from tests.unit.gateway.support import Client, Rig

GROUP = "g"
ELSEWHERE = "elsewhere"
"""A group of another partition."""
DELETING = {
    "group_id": GROUP,
    "topics": [{"name": "t", "partitions": [{"partition_index": 0}]}],
}
"""An OffsetDelete."""
SEVERAL_LEAVE_SINCE = 3
Scenario = Callable[[GroupWorld, Rig], Awaitable[None]]


def play(scenario: Scenario, *options: str) -> None:
    async def run() -> None:
        async with coordinating(*options) as (world, rig):
            await scenario(world, rig)

    asyncio.run(run())


def versions(*keys: ApiKey) -> list[Any]:
    return [
        pytest.param(key, version, id=f"{APIS[key].name} {version}")
        for key in keys
        for version in range(APIS[key].min_version, APIS[key].max_version + 1)
    ]


def joining(member: str = "", instance: str | None = None, group: str = GROUP) -> dict[str, Any]:
    return {
        "group_id": group,
        "session_timeout_ms": 10_000,
        "rebalance_timeout_ms": 10_000,
        "member_id": member,
        "group_instance_id": instance,
        "protocol_type": "consumer",
        "protocols": [{"name": "range", "metadata": b"\x00\x01meta"}],
    }


async def join(client: Client, version: int = 9, **more: Any) -> dict[str, Any]:
    """Join, again with the id that was given if one is required."""
    answer = await client.ask(ApiKey.JOIN_GROUP, version, joining(**more))
    if answer["error_code"] == ProtocolError.MEMBER_ID_REQUIRED:
        more = more | {"member": answer["member_id"]}
        answer = await client.ask(ApiKey.JOIN_GROUP, version, joining(**more))
    return answer


async def member_of(client: Client, version: int = 9, sync_version: int = 5) -> dict[str, Any]:
    """Be the only member, with an assignment."""
    joined = await join(client, version)
    assert joined["error_code"] == 0, joined
    answer = await sync(client, joined, sync_version)
    assert answer["error_code"] == 0, answer
    assert answer["assignment"] == b"mine"
    return joined


async def sync(
    client: Client, joined: dict[str, Any], version: int = 5, **more: Any
) -> dict[str, Any]:
    body = {
        "group_id": GROUP,
        "generation_id": joined["generation_id"],
        "member_id": joined["member_id"],
        "protocol_type": "consumer",
        "protocol_name": "range",
        "assignments": [{"member_id": joined["member_id"], "assignment": b"mine"}],
    }
    return await client.ask(ApiKey.SYNC_GROUP, version, body | more)


async def heartbeat(client: Client, joined: dict[str, Any], version: int = 4) -> int:
    body = {
        "group_id": GROUP,
        "generation_id": joined["generation_id"],
        "member_id": joined["member_id"],
    }
    error: int = (await client.ask(ApiKey.HEARTBEAT, version, body))["error_code"]
    return error


async def leave(client: Client, version: int, *members: str) -> list[int]:
    """Let members leave in one request; return the error of each."""
    body = {
        "group_id": GROUP,
        "member_id": members[0],
        "members": [{"member_id": one} for one in members],
    }
    answer = await client.ask(ApiKey.LEAVE_GROUP, version, body)
    if version < SEVERAL_LEAVE_SINCE:
        return [answer["error_code"]]
    assert answer["error_code"] == 0
    assert [one["member_id"] for one in answer["members"]] == [*members]
    return [one["error_code"] for one in answer["members"]]


async def until(world: GroupWorld, kind: str, count: int = 1) -> list[dict[str, Any]]:
    """Wait until the log has so many events of a kind, and return their payloads."""
    await wait_on_loop(kind, lambda: len(world.payloads(kind)) >= count)
    return world.payloads(kind)


def commit_body(
    joined: dict[str, Any] | None,
    offset: int = 7,
    group: str = GROUP,
    partitions: Sequence[int] = (0,),
) -> dict[str, Any]:
    rows = [
        {
            "partition_index": number,
            "committed_offset": offset,
            "committed_leader_epoch": 3,
            "committed_metadata": "m",
        }
        for number in partitions
    ]
    member = {} if joined is None else {"member_id": joined["member_id"]}
    generation = -1 if joined is None else joined["generation_id"]
    return {
        "group_id": group,
        "generation_id_or_member_epoch": generation,
        **member,
        "topics": [{"name": "t", "partitions": rows}],
    }


def in_transaction() -> dict[str, Any]:
    producer = {"transactional_id": "x", "producer_id": 9, "producer_epoch": 1}
    body = commit_body(None) | producer | {"generation_id": -1}
    del body["generation_id_or_member_epoch"]
    return body


async def commit(
    client: Client,
    joined: dict[str, Any] | None,
    offset: int = 7,
    version: int = 9,
    group: str = GROUP,
    *,
    partitions: Sequence[int] = (0,),
) -> int:
    body = commit_body(joined, offset, group, partitions)
    answer = await client.ask(ApiKey.OFFSET_COMMIT, version, body)
    code: int = answer["topics"][0]["partitions"][0]["error_code"]
    return code


async def fetched(client: Client, version: int = 9, **more: Any) -> dict[str, Any]:
    asked = [{"name": "t", "partition_indexes": [0]}]
    if version >= 8:
        body: dict[str, Any] = {"groups": [{"group_id": GROUP, "topics": asked}], **more}
        (answer,) = (await client.ask(ApiKey.OFFSET_FETCH, version, body))["groups"]
    else:
        body = {"group_id": GROUP, "topics": asked, **more}
        answer = await client.ask(ApiKey.OFFSET_FETCH, version, body)
    partition: dict[str, Any] = answer["topics"][0]["partitions"][0]
    return partition
