"""SyncGroups that are answered without a decision: who when, and what the machines hear."""

from __future__ import annotations

import asyncio
from base64 import b64encode
from collections.abc import Sequence
from typing import Any

import pytest

from state.protocol_errors import ProtocolError
from streaming.offsets.batches import LARGEST_BATCH_BYTES
from streaming.wire.apis import ApiKey
from tests.fixtures.waiting import wait_on_loop
from tests.unit.front.group_members import Member, alone, pair, until_told_to_rejoin
from tests.unit.front.group_requests import GROUP, play
from tests.unit.front.group_world import GroupWorld
from tests.unit.front.test_sessions import idle, removals
from tests.unit.gateway.support import Rig

REBALANCE_MS = 10_000


async def joined_pair(rig: Rig, **more: Any) -> tuple[Member, Member]:
    """Return a leader and a follower of a generation without assignment."""
    leader, follower = await alone(rig), Member(await rig.client())
    joins = asyncio.create_task(follower.join(**more))
    await until_told_to_rejoin(leader)
    await leader.join()
    await joins
    return leader, follower


async def waits(world: GroupWorld, follower: Member) -> asyncio.Task[dict[str, Any]]:
    """Let a follower send its SyncGroup, which waits."""
    before = world.groups.waiting
    asking = asyncio.create_task(follower.ask_sync())
    await wait_on_loop("the SyncGroup", lambda: world.groups.waiting != before, poll_s=0)
    return asking


async def assign(leader: Member, *members: Member) -> None:
    """Let the leader give each member what it is called."""
    given = [{"member_id": one.id, "assignment": one.id.encode()} for one in members]
    answer = await leader.ask_sync(assignments=given)
    assert answer["error_code"] == 0


def of_followers(world: GroupWorld, followers: Sequence[Member]) -> list[dict[str, Any]]:
    """Return the events of followers' SyncGroups."""
    ids = {one.id for one in followers}
    return [one for one in world.payloads("sync_group_requested") if one["member"] in ids]


def test_a_follower_that_comes_first_is_answered_when_the_assignment_is_written() -> None:
    async def scenario(world: GroupWorld, rig: Rig) -> None:
        leader, follower = await joined_pair(rig)
        asking = await waits(world, follower)
        world.following = False
        assigning = asyncio.create_task(assign(leader, leader, follower))
        await wait_on_loop("both requests", lambda: world.groups.waiting == 2, poll_s=0)
        assert not asking.done(), "not all brokers in sync have it"
        world.resume_following()
        await assigning
        assert (await asking)["assignment"] == follower.id.encode()
        assert of_followers(world, [follower]) == []

    play(scenario)


def test_a_follower_that_comes_last_waits_for_no_decision() -> None:
    async def scenario(world: GroupWorld, rig: Rig) -> None:
        leader, follower = await joined_pair(rig)
        await assign(leader, leader, follower)
        world.held = []
        assert (await follower.ask_sync())["assignment"] == follower.id.encode()
        assert (await leader.ask_sync())["assignment"] == leader.id.encode()
        assert world.held == []

    play(scenario)


def test_a_repeated_request_takes_the_place_of_the_first() -> None:
    async def scenario(world: GroupWorld, rig: Rig) -> None:
        leader, follower = await joined_pair(rig)
        first = await waits(world, follower)
        follower.client = await rig.client()
        second = asyncio.create_task(follower.ask_sync())
        assert (await first)["error_code"] == ProtocolError.REBALANCE_IN_PROGRESS
        await assign(leader, leader, follower)
        assert (await second)["assignment"] == follower.id.encode()

    play(scenario)


def test_a_rebalance_ends_the_wait() -> None:
    async def scenario(world: GroupWorld, rig: Rig) -> None:
        _, follower = await joined_pair(rig)
        asking = await waits(world, follower)
        joins = asyncio.create_task(Member(await rig.client()).join())
        assert (await asking)["error_code"] == ProtocolError.REBALANCE_IN_PROGRESS
        joins.cancel()

    play(scenario)


def test_a_member_that_leaves_does_not_wait() -> None:
    async def scenario(world: GroupWorld, rig: Rig) -> None:
        leader, follower = await joined_pair(rig)
        asking = await waits(world, follower)
        body = {"group_id": GROUP, "members": [{"member_id": follower.id}]}
        assert (await leader.client.ask(ApiKey.LEAVE_GROUP, 5, body))["error_code"] == 0
        assert (await asking)["error_code"] == ProtocolError.UNKNOWN_MEMBER_ID

    play(scenario)


def test_a_member_that_is_replaced_is_fenced() -> None:
    async def scenario(world: GroupWorld, rig: Rig) -> None:
        _, follower = await joined_pair(rig, instance="i")
        asking = await waits(world, follower)
        back = Member(await rig.client())
        joins = asyncio.create_task(back.join(instance="i"))
        assert (await asking)["error_code"] == ProtocolError.FENCED_INSTANCE_ID
        joins.cancel()

    play(scenario)


@pytest.mark.parametrize(
    ("ends", "error"),
    [
        ("job_gone", ProtocolError.REBALANCE_IN_PROGRESS),
        ("role_lost", ProtocolError.NOT_COORDINATOR),
        ("resigned", ProtocolError.NOT_COORDINATOR),
    ],
)
def test_nobody_waits_for_what_is_decided_no_more(ends: str, error: ProtocolError) -> None:
    async def scenario(world: GroupWorld, rig: Rig) -> None:
        _, follower = await joined_pair(rig)
        asking = await waits(world, follower)
        getattr(world.groups, ends)()
        assert (await asking)["error_code"] == error

    play(scenario)


def test_no_member_that_has_synced_is_removed_for_it() -> None:
    """Of those that have not, the machines hear at the deadline."""

    async def scenario(world: GroupWorld, rig: Rig) -> None:
        leader, follower = await joined_pair(rig)
        await assign(leader, leader, follower)
        assert (await follower.ask_sync())["error_code"] == 0
        await idle(world, 3 * REBALANCE_MS, leader, follower)
        assert removals(world) == []
        synced = [one["synced"] for one in world.payloads("heartbeats_received") if "synced" in one]
        assert synced == [[[GROUP, leader.generation, [leader.id, follower.id]]]]

    play(scenario)


def test_a_member_that_has_not_synced_by_the_deadline_is_removed_alone() -> None:
    async def scenario(world: GroupWorld, rig: Rig) -> None:
        leader, follower = await joined_pair(rig)
        began_ms = world.time.now_ms
        third = Member(await rig.client())
        joins = asyncio.create_task(third.join())
        await until_told_to_rejoin(leader)
        await asyncio.gather(leader.join(), follower.join(), joins)
        await assign(leader, leader, follower, third)
        assert (await follower.ask_sync())["error_code"] == 0
        await idle(world, REBALANCE_MS + 1_000, leader, follower, third)
        assert removals(world) == [(third.id, "sync_timeout", began_ms + REBALANCE_MS)]

    play(scenario)


def test_one_that_comes_behind_the_deadline_is_decided() -> None:
    async def scenario(world: GroupWorld, rig: Rig) -> None:
        leader, follower = await joined_pair(rig)
        await assign(leader, leader, follower)
        world.timers.clear()  # the clock is late
        await idle(world, REBALANCE_MS, leader, follower)
        answer = await follower.ask_sync()
        assert answer["error_code"] == ProtocolError.UNKNOWN_MEMBER_ID
        assert len(of_followers(world, [follower])) == 1
        assert removals(world)[0][:2] == (follower.id, "sync_timeout")

    play(scenario)


def test_a_static_member_that_comes_back_keeps_what_was_not_reported() -> None:
    async def scenario(world: GroupWorld, rig: Rig) -> None:
        leader, follower = await joined_pair(rig, instance="i")
        await assign(leader, leader, follower)
        assert (await follower.ask_sync())["error_code"] == 0
        back = Member(await rig.client())
        await back.join(instance="i")
        assert back.generation == leader.generation
        await idle(world, 2 * REBALANCE_MS, leader, back)
        assert removals(world) == []

    play(scenario)


def test_members_of_a_loaded_group_are_given_what_was_loaded() -> None:
    """Nobody waits for their SyncGroups."""

    async def scenario(world: GroupWorld, rig: Rig) -> None:
        leader, follower = await pair(rig)
        metadata = described(leader, follower)
        world.groups.resigned()
        await world.take_over({GROUP: metadata})
        world.held = []
        for one in (leader, follower):
            assert (await one.ask_sync())["assignment"] == one.id.encode()
        assert world.held == []

    play(scenario)


def described(*members: Member) -> dict[str, Any]:
    """Return what group_observed says of a group of these members, the first of which leads."""
    return {
        "generation": members[0].generation,
        "protocol_type": "consumer",
        "protocol": "range",
        "leader": members[0].id,
        "state_since_ms": None,
        "members": [
            {
                "member": one.id,
                "instance": None,
                "client": "",
                "host": "/h",
                "session_timeout_ms": 10_000,
                "rebalance_timeout_ms": 10_000,
                "metadata": b64encode(b"\x00\x01meta").decode(),
                "assignment": b64encode(one.id.encode()).decode(),
            }
            for one in members
        ],
    }


def test_a_leader_that_asks_again_is_not_given_an_assignment_that_cannot_be_written() -> None:
    """Both requests are in one batch: the machine does not know yet."""

    async def scenario(world: GroupWorld, rig: Rig) -> None:
        leader, again = Member(await rig.client()), Member(await rig.client())
        await leader.join()
        again.id, again.generation = leader.id, leader.generation
        world.held = []
        too_large = [{"member_id": leader.id, "assignment": bytes(LARGEST_BATCH_BYTES)}]
        first = asyncio.create_task(leader.ask_sync(assignments=too_large))
        await wait_on_loop("the first", lambda: len(world.held or ()) == 1)
        second = asyncio.create_task(again.ask_sync())
        await wait_on_loop("the second", lambda: len(world.held or ()) == 2)
        world.release()
        assert (await first)["error_code"] == ProtocolError.UNKNOWN_SERVER_ERROR
        told = await second
        assert told["error_code"] == ProtocolError.REBALANCE_IN_PROGRESS
        assert told["assignment"] == b""

    play(scenario)
