"""Groups through the gateway: requests in all versions, decided by the real machines, answered once
made-up brokers have the records.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from state.groups.tables import Phase
from state.protocol_errors import ProtocolError
from streaming.wire.messages import APIS, ApiKey
from tests.unit.front.group_world import GroupWorld, coordinating
from tests.unit.gateway.support import NODE_ID, Client, Rig

GROUP = "g"
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


async def sync(client: Client, joined: dict[str, Any], version: int = 5) -> dict[str, Any]:
    body = {
        "group_id": GROUP,
        "generation_id": joined["generation_id"],
        "member_id": joined["member_id"],
        "protocol_type": "consumer",
        "protocol_name": "range",
        "assignments": [{"member_id": joined["member_id"], "assignment": b"mine"}],
    }
    return await client.ask(ApiKey.SYNC_GROUP, version, body)


async def heartbeat(client: Client, joined: dict[str, Any], version: int = 4) -> int:
    body = {
        "group_id": GROUP,
        "generation_id": joined["generation_id"],
        "member_id": joined["member_id"],
    }
    error: int = (await client.ask(ApiKey.HEARTBEAT, version, body))["error_code"]
    return error


def commit_body(joined: dict[str, Any] | None, offset: int = 7) -> dict[str, Any]:
    partition = {
        "partition_index": 0,
        "committed_offset": offset,
        "committed_leader_epoch": 3,
        "committed_metadata": "m",
    }
    member = {} if joined is None else {"member_id": joined["member_id"]}
    generation = -1 if joined is None else joined["generation_id"]
    return {
        "group_id": GROUP,
        "generation_id_or_member_epoch": generation,
        **member,
        "topics": [{"name": "t", "partitions": [partition]}],
    }


async def commit(
    client: Client, joined: dict[str, Any] | None, offset: int = 7, version: int = 9
) -> int:
    answer = await client.ask(ApiKey.OFFSET_COMMIT, version, commit_body(joined, offset))
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


@pytest.mark.parametrize(("key", "version"), versions(ApiKey.JOIN_GROUP, ApiKey.SYNC_GROUP))
def test_a_member_joins_and_gets_its_assignment(key: ApiKey, version: int) -> None:
    async def scenario(world: GroupWorld, rig: Rig) -> None:
        client = await rig.client()
        asked = {"version": version} if key is ApiKey.JOIN_GROUP else {"sync_version": version}
        joined = await member_of(client, **asked)
        assert joined["leader"] == joined["member_id"]
        assert joined["member_id"].startswith("test-")
        assert joined["protocol_name"] == "range"
        (member,) = joined["members"]
        assert (member["member_id"], member["metadata"]) == (joined["member_id"], b"\x00\x01meta")
        (described,) = (await client.ask(ApiKey.DESCRIBE_GROUPS, 5, {"groups": [GROUP]}))["groups"]
        assert described["group_state"] == "Stable"
        (member,) = described["members"]
        assert (member["client_id"], member["client_host"]) == ("test", "/127.0.0.1")
        assert member["member_assignment"] == b"mine"

    play(scenario)


@pytest.mark.parametrize(("key", "version"), versions(ApiKey.HEARTBEAT, ApiKey.LEAVE_GROUP))
def test_members_are_heard_of_and_leave(key: ApiKey, version: int) -> None:
    async def scenario(world: GroupWorld, rig: Rig) -> None:
        client = await rig.client()
        joined = await member_of(client)
        beat = version if key is ApiKey.HEARTBEAT else 4
        assert await heartbeat(client, joined, beat) == 0
        assert await heartbeat(client, joined | {"generation_id": 9}, beat) == 22
        assert await heartbeat(client, joined | {"member_id": "x"}, beat) == 25
        leaving = {"member_id": joined["member_id"]}
        body = {"group_id": GROUP, **leaving, "members": [leaving]}
        leave = version if key is ApiKey.LEAVE_GROUP else 5
        answer = await client.ask(ApiKey.LEAVE_GROUP, leave, body)
        assert answer["error_code"] == 0
        again = await client.ask(ApiKey.LEAVE_GROUP, leave, body)
        code = again["members"][0]["error_code"] if leave >= 3 else again["error_code"]
        assert code == ProtocolError.UNKNOWN_MEMBER_ID

    play(scenario)


@pytest.mark.parametrize(("key", "version"), versions(ApiKey.OFFSET_COMMIT, ApiKey.OFFSET_FETCH))
def test_offsets_are_committed_and_fetched(key: ApiKey, version: int) -> None:
    async def scenario(world: GroupWorld, rig: Rig) -> None:
        client = await rig.client()
        joined = await member_of(client)
        committing = version if key is ApiKey.OFFSET_COMMIT else 9
        fetching = version if key is ApiKey.OFFSET_FETCH else 9
        assert (await fetched(client, fetching))["committed_offset"] == -1
        assert await commit(client, joined, version=committing) == 0
        found = await fetched(client, fetching)
        assert (found["committed_offset"], found["metadata"]) == (7, "m")
        assert await commit(client, joined | {"generation_id": 9}, version=committing) == 22

    play(scenario)


@pytest.mark.parametrize(
    ("key", "version"), versions(ApiKey.DESCRIBE_GROUPS, ApiKey.LIST_GROUPS, ApiKey.DELETE_GROUPS)
)
def test_administrators_look_at_groups_and_delete_them(key: ApiKey, version: int) -> None:
    async def scenario(world: GroupWorld, rig: Rig) -> None:
        client = await rig.client()
        assert await commit(client, None) == 0
        at = {one: APIS[one].max_version for one in ApiKey if one in APIS} | {key: version}
        listed = await client.ask(ApiKey.LIST_GROUPS, at[ApiKey.LIST_GROUPS], {})
        assert [one["group_id"] for one in listed["groups"]] == [GROUP]
        body = {"groups": [GROUP, "nobody"]}
        described = await client.ask(ApiKey.DESCRIBE_GROUPS, at[ApiKey.DESCRIBE_GROUPS], body)
        assert [one["group_state"] for one in described["groups"]] == ["Empty", "Dead"]
        body = {"groups_names": [GROUP, "nobody"]}
        deleted = await client.ask(ApiKey.DELETE_GROUPS, at[ApiKey.DELETE_GROUPS], body)
        assert [one["error_code"] for one in deleted["results"]] == [0, 69]
        assert (await fetched(client))["committed_offset"] == -1

    play(scenario)


def test_offsets_are_deleted() -> None:
    async def scenario(world: GroupWorld, rig: Rig) -> None:
        client = await rig.client()
        assert await commit(client, None) == 0
        topics = [{"name": "t", "partitions": [{"partition_index": 0}]}]
        body = {"group_id": GROUP, "topics": topics}
        answer = await client.ask(ApiKey.OFFSET_DELETE, 0, body)
        assert answer["error_code"] == 0
        assert answer["topics"][0]["partitions"][0]["error_code"] == 0
        assert (await fetched(client))["committed_offset"] == -1

    play(scenario)


@pytest.mark.parametrize("version", range(5))
def test_commits_of_a_transaction_are_not_stable_before_its_end(version: int) -> None:
    async def scenario(world: GroupWorld, rig: Rig) -> None:
        client = await rig.client()
        body = commit_body(None) | {
            "transactional_id": "x",
            "producer_id": 9,
            "producer_epoch": 1,
            "generation_id": -1,
        }
        del body["generation_id_or_member_epoch"]
        answer = await client.ask(ApiKey.TXN_OFFSET_COMMIT, version, body)
        assert answer["topics"][0]["partitions"][0]["error_code"] == 0
        unstable = await fetched(client, require_stable=True)
        assert unstable["error_code"] == ProtocolError.UNSTABLE_OFFSET_COMMIT
        assert (await fetched(client))["committed_offset"] == -1

    play(scenario)


def test_nobody_hears_of_a_commit_that_not_all_brokers_in_sync_have() -> None:
    async def scenario(world: GroupWorld, rig: Rig) -> None:
        client, other = await rig.client(), await rig.client()
        world.following = False
        client.write(ApiKey.OFFSET_COMMIT, 9, commit_body(None))
        async with asyncio.timeout(10):
            while not world.payloads("offset_commit_requested"):
                await asyncio.sleep(0.01)
        found = await fetched(other, require_stable=True)
        assert found["error_code"] == ProtocolError.UNSTABLE_OFFSET_COMMIT
        assert (await fetched(other))["committed_offset"] == -1
        world.follow()
        await client.read_frame()
        assert (await fetched(other))["committed_offset"] == 7

    play(scenario)


def test_a_repeated_join_is_answered_and_the_one_before_too() -> None:
    """The later request takes the place of the earlier one."""

    async def scenario(world: GroupWorld, rig: Rig) -> None:
        first, second, again = [await rig.client() for _ in range(3)]
        joined = await member_of(first)
        required = await second.ask(ApiKey.JOIN_GROUP, 9, joining())
        new = required["member_id"]
        second.write(ApiKey.JOIN_GROUP, 9, joining(new))
        async with asyncio.timeout(10):
            while await heartbeat(first, joined) != ProtocolError.REBALANCE_IN_PROGRESS:
                await asyncio.sleep(0.01)
        again.write(ApiKey.JOIN_GROUP, 9, joining(new))
        async with asyncio.timeout(10):
            while len(world.payloads("join_group_requested")) < 5:
                await asyncio.sleep(0.01)
        rejoined = await join(first, member=joined["member_id"])
        assert rejoined["generation_id"] == joined["generation_id"] + 1
        assert len(rejoined["members"]) == 2
        answers = [await second.read_frame(), await again.read_frame()]
        assert all(answers), "each connection gets one answer"

    play(scenario)


def test_heartbeats_reach_the_log_together() -> None:
    async def scenario(world: GroupWorld, rig: Rig) -> None:
        client = await rig.client()
        joined = await member_of(client)
        for _ in range(5):
            assert await heartbeat(client, joined) == 0
        assert world.payloads("heartbeats_received") == []
        async with asyncio.timeout(20):
            while not world.payloads("heartbeats_received"):
                await asyncio.sleep(0.05)
        row = [GROUP, joined["member_id"], None, joined["generation_id"]]
        assert world.payloads("heartbeats_received") == [{"heartbeats": [row]}]

    play(scenario)


def test_a_member_that_is_not_heard_of_is_gone() -> None:
    async def scenario(world: GroupWorld, rig: Rig) -> None:
        client = await rig.client()
        joined = await member_of(client)
        world.pass_ms(10_001)
        async with asyncio.timeout(10):
            while await heartbeat(client, joined) != ProtocolError.UNKNOWN_MEMBER_ID:
                await asyncio.sleep(0.01)

    play(scenario)


def test_while_groups_load_clients_are_told_to_wait() -> None:
    async def scenario(world: GroupWorld, rig: Rig) -> None:
        client = await rig.client()
        joined = await member_of(client)
        client.write(ApiKey.JOIN_GROUP, 9, joining(joined["member_id"]))
        await client.read_frame()
        world.groups.resigned()
        assert set(world.groups.phases()) == {Phase.LOADING}
        assert await commit(client, joined) == ProtocolError.COORDINATOR_LOAD_IN_PROGRESS
        assert await heartbeat(client, joined) == 0
        world.cluster.controller = False
        assert await commit(client, joined) == ProtocolError.NOT_COORDINATOR
        assert await heartbeat(client, joined) == ProtocolError.NOT_COORDINATOR

    play(scenario)


def test_who_waits_is_told_when_the_role_is_lost() -> None:
    async def scenario(world: GroupWorld, rig: Rig) -> None:
        client = await rig.client()
        world.following = False
        asking = asyncio.create_task(commit(client, None))
        async with asyncio.timeout(10):
            while not world.payloads("offset_commit_requested"):
                await asyncio.sleep(0.01)
        world.groups.role_lost()
        assert await asking == ProtocolError.NOT_COORDINATOR

    play(scenario)


def test_what_was_decided_before_a_take_over_is_not_appended_after_it() -> None:
    """A batch that a killed job left behind is run again when partitions are taken over anew."""

    async def scenario(world: GroupWorld, rig: Rig) -> None:
        client = await rig.client()
        world.held = []
        asking = asyncio.create_task(commit(client, None))
        async with asyncio.timeout(10):
            while not world.held:
                await asyncio.sleep(0.01)
        late = list(world.held)
        world.held = None
        world.groups.resigned()
        assert await asking == ProtocolError.NOT_COORDINATOR
        world.groups.elected({one: log.epoch for one, log in world.leader.logs.items()})
        await asyncio.sleep(0)
        ends = {one: log.end for one, log in world.leader.logs.items()}
        world.groups.decisions.take(late)
        assert {one: log.end for one, log in world.leader.logs.items()} == ends
        assert GROUP not in world.groups.image.groups

    play(scenario)


def test_members_of_one_group_too_many_are_refused() -> None:
    async def scenario(world: GroupWorld, rig: Rig) -> None:
        client = await rig.client()
        joined = await member_of(client)
        refused = await join(client, group="another")
        assert refused["error_code"] == ProtocolError.GROUP_MAX_SIZE_REACHED
        again = await join(client, member=joined["member_id"])
        assert again["error_code"] == 0, "those that are there go on"

    play(scenario, "groups.max=1")


def test_a_group_without_a_name_is_refused() -> None:
    async def scenario(world: GroupWorld, rig: Rig) -> None:
        client = await rig.client()
        answer = await join(client, group="")
        assert answer["error_code"] == ProtocolError.INVALID_GROUP_ID

    play(scenario)


@pytest.mark.parametrize("version", range(7))
def test_this_node_is_found_as_coordinator(version: int) -> None:
    async def scenario(world: GroupWorld, rig: Rig) -> None:
        client = await rig.client()
        body = {"key": GROUP, "key_type": 0, "coordinator_keys": [GROUP, "h"]}
        answer = await client.ask(ApiKey.FIND_COORDINATOR, version, body)
        found = answer["coordinators"] if version >= 4 else [answer]
        assert {(one["error_code"], one["node_id"]) for one in found} == {(0, NODE_ID)}

    play(scenario)
