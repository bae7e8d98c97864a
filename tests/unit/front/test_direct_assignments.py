"""Assignments that no batch has to decide: what is appended, who is told, what the log gets."""

from __future__ import annotations

import asyncio
import random
from typing import Any

import pytest

from state.groups.buckets import group_bucket
from state.groups.load import LoadedPartition
from state.groups.states import GroupState
from state.protocol_errors import ProtocolError
from streaming.front.groups import direct_assignments
from streaming.offsets.leader import Refusal
from streaming.offsets.loading import fold_records
from tests.fixtures.waiting import wait_on_loop
from tests.unit.front.group_members import Member, pair
from tests.unit.front.group_requests import GROUP, play
from tests.unit.front.group_world import GroupWorld
from tests.unit.front.test_direct_syncs import assign, joined_pair
from tests.unit.gateway.support import Rig


def in_topic(world: GroupWorld) -> dict[str, Any] | None:
    """The group as a broker would load it."""
    log = world.leader.logs[world.groups.partition_of(GROUP)]
    loaded = LoadedPartition()
    assert fold_records(loaded, log.read(0, 1 << 30), log.end) == 0
    found = {one["group"]: one["metadata"] for one in loaded.observed(log.partition, log.epoch)}
    return found.get(GROUP)


def assignments(world: GroupWorld) -> dict[str, str]:
    """What the machine has given each member."""
    group = world.machine.bucket(group_bucket(GROUP)).get(GROUP)
    return {one.id: one.assignment for one in group.members.values()}


def test_a_leader_waits_for_no_decision() -> None:
    async def scenario(world: GroupWorld, rig: Rig) -> None:
        leader, follower = await joined_pair(rig)
        world.held = []
        asking = asyncio.create_task(follower.ask_sync())
        await assign(leader, leader, follower)
        assert (await asking)["assignment"] == follower.id.encode()
        assert not world.payloads("sync_group_requested")[1:], "that of the leader when alone"
        world.release()
        assert assignments(world).keys() == {leader.id, follower.id}

    play(scenario)


def test_the_record_is_what_a_decision_would_have_written(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(world: GroupWorld, rig: Rig) -> None:
        leader, follower = await joined_pair(rig, instance="i")
        await assign(leader, leader, follower)
        direct = in_topic(world)
        monkeypatch.setattr(direct_assignments, "_LARGEST_BYTES", 0)
        world.groups.resigned()
        await world.take_over()
        other_leader, other = await joined_pair(rig, instance="i")
        await assign(other_leader, other_leader, other)
        decided = in_topic(world)
        assert direct is not None
        assert decided is not None
        names = {other_leader.id: leader.id, other.id: follower.id}
        assert [len(one["assignment"]) for one in direct.pop("members")] == [
            len(one["assignment"]) for one in decided.pop("members")
        ]
        assert direct.keys() == decided.keys()
        assert names[decided["leader"]] == direct["leader"]
        group = world.machine.bucket(group_bucket(GROUP)).get(GROUP)
        assert group.state is GroupState.STABLE

    play(scenario)


def test_nobody_is_told_before_all_brokers_in_sync_have_it() -> None:
    async def scenario(world: GroupWorld, rig: Rig) -> None:
        leader, follower = await joined_pair(rig)
        world.following = False
        asking = [asyncio.create_task(one.ask_sync()) for one in (follower, leader)]
        await wait_on_loop("both", lambda: world.groups.waiting == 2, poll_s=0)
        assert not any(one.done() for one in asking)
        assert len(world.payloads("assignment_appended")) == 1, "that of the leader alone"
        world.resume_following()
        assert [(await one)["error_code"] for one in asking] == [0, 0]
        assert len(world.payloads("assignment_appended")) == 2

    play(scenario)


def test_a_rebalance_overtakes_an_assignment_on_its_way() -> None:
    """The topic has it, ahead of whatever the group writes next; nobody is told."""

    async def scenario(world: GroupWorld, rig: Rig) -> None:
        leader, follower = await joined_pair(rig)
        world.following = False
        asking = asyncio.create_task(leader.ask_sync())
        await wait_on_loop("the leader", lambda: world.groups.waiting == 1, poll_s=0)
        third = Member(await rig.client())
        joins = asyncio.create_task(third.join())
        assert (await asking)["error_code"] == ProtocolError.REBALANCE_IN_PROGRESS
        world.resume_following()
        await asyncio.gather(leader.join(), follower.join(), joins)
        await assign(leader, leader, follower, third)
        assert len(world.payloads("assignment_appended")) == 2, "alone, and of three"
        metadata = in_topic(world)
        assert metadata is not None
        assert (metadata["generation"], len(metadata["members"])) == (leader.generation, 3)

    play(scenario)


def test_the_first_assignment_of_a_generation_counts() -> None:
    async def scenario(world: GroupWorld, rig: Rig) -> None:
        leader, follower = await joined_pair(rig)
        again = Member(await rig.client())
        again.id, again.generation = leader.id, leader.generation
        world.following = False
        first = asyncio.create_task(assign_as(leader, b"first"))
        await wait_on_loop("the first", lambda: world.groups.waiting == 1, poll_s=0)
        second = asyncio.create_task(assign_as(again, b"second"))
        assert (await first)["error_code"] == ProtocolError.REBALANCE_IN_PROGRESS
        world.resume_following()
        assert (await second)["assignment"] == b"first"
        assert (await follower.ask_sync())["error_code"] == 0

    play(scenario)


async def assign_as(leader: Member, given: bytes) -> dict[str, Any]:
    return await leader.ask_sync(assignments=[{"member_id": leader.id, "assignment": given}])


def test_what_was_left_to_a_decision_is_not_overtaken(monkeypatch: pytest.MonkeyPatch) -> None:
    """A leader asks again, with other assignments, while its first request is being decided."""

    async def scenario(world: GroupWorld, rig: Rig) -> None:
        leader, _ = await joined_pair(rig)
        again = Member(await rig.client())
        again.id, again.generation = leader.id, leader.generation
        world.held = []
        monkeypatch.setattr(world.leader, "refusal", lambda partition: Refusal.FULL)
        first = asyncio.create_task(assign_as(leader, b"first"))
        await wait_on_loop("the first", lambda: len(sent(world, leader)) == 1)
        monkeypatch.undo()
        second = asyncio.create_task(assign_as(again, b"second"))
        await wait_on_loop("the second", lambda: len(sent(world, leader)) == 2)
        world.release()
        assert {(await one)["assignment"] for one in (first, second)} == {b"first"}
        metadata = in_topic(world)
        assert metadata is not None
        assert {one["member"]: one["assignment"] for one in metadata["members"]} == assignments(
            world
        )

    play(scenario)


def sent(world: GroupWorld, member: Member) -> list[dict[str, Any]]:
    """The SyncGroups of a member that were left to be decided."""
    return [one for one in world.payloads("sync_group_requested") if one["member"] == member.id]


def test_what_members_ask_next_is_decided_behind_it() -> None:
    """A leader that joins again wants another assignment, and not the same generation again."""

    async def scenario(world: GroupWorld, rig: Rig) -> None:
        leader, follower = await pair(rig)
        world.held = []
        before = leader.generation
        joins = [asyncio.create_task(one.join()) for one in (leader, follower)]
        await wait_on_loop("both", lambda: len(world.payloads("join_group_requested")) > 5)
        world.release()
        await asyncio.gather(*joins)
        assert leader.generation == before + 1
        kinds = [one.kind for one in world.events]
        last = max(at for at, kind in enumerate(kinds) if kind == "assignment_appended")
        assert "join_group_requested" in kinds[last:]

    play(scenario)


@pytest.mark.parametrize("seed", range(4))
def test_machine_image_and_topic_agree(seed: int) -> None:
    """Members come, go and are slow, brokers stop following, decisions come late."""
    chance = random.Random(seed)

    async def scenario(world: GroupWorld, rig: Rig) -> None:
        members = [Member(await rig.client()) for _ in range(4)]
        tasks: list[asyncio.Task[None] | None] = [None] * 4
        for step in range(120):
            number = chance.randrange(4)
            running = tasks[number]
            match chance.randrange(8):
                case 0 if world.held is None:
                    world.held = []
                case 0 | 1:
                    world.release()
                case 2:
                    world.following = not world.following
                    world.follow()
                case _ if running is None or running.done():
                    tasks[number] = asyncio.create_task(live(members[number], step))
                case _:
                    await asyncio.sleep(0.001)
            if step % 30 == 29:
                await agree(world, tasks)

    play(scenario)


async def live(member: Member, step: int) -> None:
    """Join and sync as a client does, until both went well once; a leader assigns to itself."""
    while True:
        await member.join(session_timeout_ms=60_000, rebalance_timeout_ms=60_000)
        answer = await assign_as(member, str(step).encode())
        if answer["error_code"] == ProtocolError.UNKNOWN_MEMBER_ID:
            member.id = ""
        elif answer["error_code"] == 0:
            return


async def agree(world: GroupWorld, tasks: list[asyncio.Task[None] | None]) -> None:
    """Let all members that there are come to rest, and compare."""
    world.resume_following()
    world.release()
    async with asyncio.timeout(20):
        while waiting := [one for one in tasks if one is not None and not one.done()]:
            view = world.groups.image.groups[GROUP]
            if view.state is GroupState.PREPARING:
                world.pass_ms(60_000)  # who does not come back is removed
            await asyncio.wait(waiting, timeout=0.01)
    view, group = world.groups.image.groups[GROUP], world.machine.bucket(group_bucket(GROUP))
    held = group.get(GROUP)
    assert view.state is held.state
    told = {name: one.assignment for name, one in view.members.items()}
    assert told == assignments(world)
    metadata = in_topic(world)
    assert metadata is not None
    assert metadata["generation"] == held.generation
    assert {one["member"]: one["assignment"] for one in metadata["members"]} == told
