"""Groups through the gateway: requests in all versions, decided by the real machines, answered once
made-up brokers have the records.
"""

from __future__ import annotations

import asyncio
import struct
from typing import Any

import orjson
import pytest

from state.protocol_errors import ProtocolError
from streaming.gateway.groups import membership
from streaming.gateway.operations import GROUP_OPERATIONS, NOT_ASKED
from streaming.wire.apis import APIS, ApiKey
from streaming.wire.joining import encode_join_group
from streaming.wire.requests import encode_request
from streaming.wire.responses import decode_response
from tests.fixtures.waiting import wait_on_loop
from tests.unit.front.group_members import pair
from tests.unit.front.group_requests import (
    GROUP,
    SEVERAL_LEAVE_SINCE,
    commit,
    commit_body,
    fetched,
    heartbeat,
    in_transaction,
    joining,
    leave,
    member_of,
    play,
    sync,
    until,
    versions,
)
from tests.unit.front.group_world import GroupWorld
from tests.unit.gateway.answering_broker import RANGES, AnsweringBroker, ask_raw, brokers, ranges_of
from tests.unit.gateway.support import Rig


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


def test_rebalances_are_counted_once_each_though_assignments_are_told_twice() -> None:
    async def scenario(world: GroupWorld, rig: Rig) -> None:
        one, _ = await pair(rig)
        await until(world, "assignment_appended", 2)
        assert await one.beat() == 0  # what was decided of it is taken by now
        found = world.groups.figures.status()
        assert (found["rebalances"], found["completed_rebalances"]) == (2, 2)
        assert not any(found["members_removed"].values())

    play(scenario)


def test_static_members_are_refused_while_brokers_cannot_read_of_them() -> None:
    async def scenario(world: GroupWorld, rig: Rig) -> None:
        joins = membership.Membership(world.requests, static_members=False)
        answers: list[bytes] = []
        body = joining(instance="one")
        request = encode_request(ApiKey.JOIN_GROUP, 9, 1, "test", body)
        assert joins.join(request, "/127.0.0.1", answers.append)
        (answer,) = answers
        _, said = decode_response(ApiKey.JOIN_GROUP, 9, answer)
        assert said["error_code"] == ProtocolError.UNSUPPORTED_VERSION
        assert not world.payloads("join_group_requested")

    play(scenario)


def test_a_reply_that_cannot_be_encoded_is_answered_all_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def encode(version: int, error: int, **content: Any) -> bytes:
        if error == ProtocolError.NONE:
            raise ValueError("not to be encoded")
        return encode_join_group(version, error, **content)

    async def scenario(world: GroupWorld, rig: Rig) -> None:
        client = await rig.client()
        needed = await client.ask(ApiKey.JOIN_GROUP, 9, joining())
        monkeypatch.setattr(membership, "encode_join_group", encode)
        answer = await client.ask(ApiKey.JOIN_GROUP, 9, joining(needed["member_id"]))
        assert answer["error_code"] == ProtocolError.UNKNOWN_SERVER_ERROR

    play(scenario)


def test_many_requests_at_once_are_answered_in_order() -> None:
    """What is answered at once does not begin the next request inside the one before."""

    async def scenario(world: GroupWorld, rig: Rig) -> None:
        client = await rig.client()
        asked = [client.write(ApiKey.JOIN_GROUP, 9, joining()) for _ in range(2_000)]
        ids, members = [], set()
        for _ in asked:
            id_, answer = decode_response(ApiKey.JOIN_GROUP, 9, await client.read_frame())
            assert answer["error_code"] == ProtocolError.MEMBER_ID_REQUIRED
            ids.append(id_)
            members.add(answer["member_id"])
        assert ids == asked
        assert len(members) == len(asked)

    play(scenario)


def test_requests_that_no_decision_has_answered_are_counted() -> None:
    async def scenario(world: GroupWorld, rig: Rig) -> None:
        client = await rig.client()
        world.held = []
        client.write(ApiKey.JOIN_GROUP, 3, joining())
        await wait_on_loop("a decision", lambda: world.held)
        assert world.groups.waiting == 1
        world.release()
        await client.read_frame()
        assert world.groups.waiting == 0

    play(scenario)


@pytest.mark.parametrize("missing", ["protocol_type", "protocol_name"])
def test_a_member_says_what_it_joined_with(missing: str) -> None:
    """From version 5 of SyncGroup on (SyncGroupRequest.areMandatoryProtocolTypeAndNamePresent)."""

    async def scenario(world: GroupWorld, rig: Rig) -> None:
        client = await rig.client()
        joined = await member_of(client)
        answer = await sync(client, joined, **{missing: None})
        assert answer["error_code"] == ProtocolError.INCONSISTENT_GROUP_PROTOCOL
        assert (await sync(client, joined, 4))["assignment"] == b"mine"

    play(scenario)


def test_only_short_heartbeats_are_remembered() -> None:
    async def scenario(world: GroupWorld, rig: Rig) -> None:
        client = await rig.client()
        joined = await member_of(client)
        known = membership._known_heartbeat.cache_info
        before = known().currsize
        assert await heartbeat(client, joined | {"member_id": "x" * 1_000}) == 25
        assert known().currsize == before
        assert await heartbeat(client, joined) == 0
        assert known().currsize == before + 1

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
        leaving = version if key is ApiKey.LEAVE_GROUP else 5
        assert await leave(client, leaving, joined["member_id"]) == [0]
        assert await leave(client, leaving, joined["member_id"]) == [25]

    play(scenario)


@pytest.mark.parametrize(
    "version", range(SEVERAL_LEAVE_SINCE, APIS[ApiKey.LEAVE_GROUP].max_version + 1)
)
def test_of_members_that_leave_together_each_has_its_own_error(version: int) -> None:
    """KIP-345."""

    async def scenario(world: GroupWorld, rig: Rig) -> None:
        client = await rig.client()
        member = (await member_of(client))["member_id"]
        assert await leave(client, version, "x", member) == [25, 0]
        assert await leave(client, version, member) == [25]

    play(scenario)


@pytest.mark.parametrize(("said", "told"), [("poll timeout", "left: poll timeout"), ("", "left")])
def test_why_a_member_leaves_is_why_its_group_rebalances(said: str, told: str) -> None:
    """KIP-800."""

    async def scenario(world: GroupWorld, rig: Rig) -> None:
        client = await rig.client()
        member = (await member_of(client))["member_id"]
        body = {"group_id": GROUP, "members": [{"member_id": member, "reason": said}]}
        answer = await client.ask(ApiKey.LEAVE_GROUP, 5, body)
        assert answer["members"][0]["error_code"] == 0
        steps = orjson.loads(world.decided[-1])["steps"]
        reasons = {one["change"]: one.get("reason") for step in steps for one in step["changes"]}
        assert reasons["rebalance_started"] == f"member {member} removed: {told}"
        assert reasons["member_removed"] == "left"

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


@pytest.mark.parametrize("api_key", [ApiKey.OFFSET_COMMIT, ApiKey.OFFSET_FETCH])
def test_offsets_in_zookeeper_are_left_to_brokers(api_key: ApiKey) -> None:
    """Version 0 of both; what is sent and answered is nobody's matter here."""

    async def echo(request: bytes) -> bytes:
        return request[4:8] + request

    async def scenario(world: GroupWorld, rig: Rig) -> None:
        asked = struct.pack(">hhi", api_key, 0, 5) + b"whatever"
        async with brokers(rig, AnsweringBroker(1, {**RANGES, 8: (0, 9), 9: (0, 9)}, echo)):
            answer = await ask_raw(rig, asked)
        assert answer[:8] == asked[4:8] + asked[:4]
        assert answer[12:] == b"whatever"
        ranges = ranges_of(await ask_raw(rig, encode_request(ApiKey.API_VERSIONS, 0, 1, None, {})))
        assert ranges[api_key] == (0, 9)

    play(scenario)


def test_a_commit_of_version_1_says_when_it_was_made() -> None:
    async def scenario(world: GroupWorld, rig: Rig) -> None:
        client = await rig.client()
        body = commit_body(None)
        body["topics"][0]["partitions"][0]["commit_timestamp"] = 77
        assert (await client.ask(ApiKey.OFFSET_COMMIT, 1, body))["topics"]
        [asked] = [one for one in world.events if one.kind == "offset_commit_requested"]
        payload = orjson.loads(asked.payload)
        assert payload["offsets"] == [["t", 0, 7, -1, "m", 77]]
        assert payload["retention_ms"] is None
        assert (await fetched(client, 1))["committed_offset"] == 7

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
        assert [one["error_code"] for one in deleted["results"]] == [
            ProtocolError.NONE,
            ProtocolError.GROUP_ID_NOT_FOUND,
        ]
        assert (await fetched(client))["committed_offset"] == -1

    play(scenario)


def test_what_may_be_done_is_told_of_groups_that_are_not_refused() -> None:
    async def scenario(world: GroupWorld, rig: Rig) -> None:
        client = await rig.client()

        async def operations(asked: bool) -> list[int]:
            body = {"groups": [GROUP, "nobody"], "include_authorized_operations": asked}
            answer = await client.ask(ApiKey.DESCRIBE_GROUPS, 5, body)
            return [one["authorized_operations"] for one in answer["groups"]]

        assert await commit(client, None) == 0
        assert await operations(True) == [GROUP_OPERATIONS] * 2
        assert await operations(False) == [NOT_ASKED] * 2
        world.groups.resigned()
        assert await operations(True) == [NOT_ASKED] * 2

    play(scenario)


@pytest.mark.parametrize("topics", [[], [{"name": "t", "partitions": []}]])
def test_commits_of_nothing_begin_no_group(topics: list[dict[str, Any]]) -> None:
    async def scenario(world: GroupWorld, rig: Rig) -> None:
        client = await rig.client()
        for key, version, body in (
            (ApiKey.OFFSET_COMMIT, 9, commit_body(None)),
            (ApiKey.OFFSET_COMMIT, 5, commit_body(None)),
            (ApiKey.TXN_OFFSET_COMMIT, 4, in_transaction()),
        ):
            answer = await client.ask(key, version, body | {"topics": topics})
            assert [one["name"] for one in answer["topics"]] == [one["name"] for one in topics]
            assert not any(one["partitions"] for one in answer["topics"])
        assert not world.groups.image.groups
        assert not world.payloads("offset_commit_requested")

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


LONG = "n" * 40_000
"""Only the compact form can have it. Kafka's readers refuse it, and no record could hold it."""


@pytest.mark.parametrize(
    ("api", "version", "changed"),
    [
        (ApiKey.TXN_OFFSET_COMMIT, 4, in_transaction() | {"group_id": LONG}),
        (
            ApiKey.TXN_OFFSET_COMMIT,
            4,
            in_transaction() | {"topics": [{"name": LONG, "partitions": []}]},
        ),
        (ApiKey.OFFSET_COMMIT, 8, commit_body(None) | {"group_id": LONG}),
        (ApiKey.JOIN_GROUP, 6, joining() | {"protocol_type": LONG}),
        (ApiKey.LEAVE_GROUP, 4, {"group_id": "n" * 70_000}),
    ],
)
def test_names_that_no_record_can_hold_end_their_connection(
    api: ApiKey, version: int, changed: dict[str, Any]
) -> None:
    async def scenario(world: GroupWorld, rig: Rig) -> None:
        client, before = await rig.client(), len(world.events)
        client.write(api, version, changed)
        await client.wait_closed()
        assert rig.gateway.counters["closed_malformed"] == 1
        assert len(world.events) == before

    play(scenario)


@pytest.mark.parametrize("session_timeout_ms", [45_000, 1_800_000])
def test_a_new_member_waits_five_minutes_for_its_first_generation(session_timeout_ms: int) -> None:
    """However long its session is, and though it counts as heard from (MemberMetadata)."""

    async def scenario(world: GroupWorld, rig: Rig) -> None:
        first, second = await rig.client(), await rig.client()
        long = {"session_timeout_ms": 1_800_000, "rebalance_timeout_ms": 1_200_000}
        await first.ask(ApiKey.JOIN_GROUP, 3, joining() | long)
        chosen = {"session_timeout_ms": session_timeout_ms}
        second.write(ApiKey.JOIN_GROUP, 3, joining() | chosen)
        await wait_on_loop("both", lambda: len(world.payloads("join_group_requested")) == 2)
        world.pass_ms(299_999)
        answered = asyncio.create_task(second.read_frame())
        await first.ask(ApiKey.LIST_GROUPS, 4, {"states_filter": []})
        assert not answered.done()
        world.pass_ms(1)
        _, answer = decode_response(ApiKey.JOIN_GROUP, 3, await answered)
        assert answer["error_code"] == ProtocolError.UNKNOWN_MEMBER_ID

    play(scenario)
