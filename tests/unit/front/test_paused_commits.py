"""Commits of groups of which something is decided: these are decided too, the others are direct."""

from __future__ import annotations

import asyncio

from state.groups.buckets import group_bucket
from streaming.wire.apis import ApiKey
from tests.unit.front.group_offsets import decided, in_topic
from tests.unit.front.group_requests import (
    DELETING,
    ELSEWHERE,
    GROUP,
    commit,
    fetched,
    member_of,
    play,
    until,
)
from tests.unit.front.group_world import GroupWorld
from tests.unit.gateway.support import Rig

T0 = ("t", 0)


def test_a_commit_is_decided_while_a_deletion_is() -> None:
    async def scenario(world: GroupWorld, rig: Rig) -> None:
        client, other = await rig.client(), await rig.client()
        assert await commit(client, None, 1) == 0, "the group is there from now on"
        assert await commit(client, None, 2) == 0
        assert len(world.payloads("offset_commit_requested")) == 1
        world.held = []
        deleting = asyncio.create_task(other.ask(ApiKey.OFFSET_DELETE, 0, DELETING))
        await until(world, "offset_delete_requested")
        committing = asyncio.create_task(commit(client, None, 3))
        await until(world, "offset_commit_requested", 2)
        kinds = [event.kind for event in world.events[-3:]]
        assert kinds == ["offsets_appended", "offset_delete_requested", "offset_commit_requested"]
        world.release()
        assert (await deleting)["topics"][0]["partitions"][0]["error_code"] == 0
        assert await committing == 0
        assert in_topic(world)[T0].offset == decided(world)[T0].offset == 3
        assert await commit(client, None, 4) == 0
        assert len(world.payloads("offset_commit_requested")) == 2, "that was direct again"

    play(scenario)


def test_a_group_is_paused_while_it_is_decided_what_has_expired() -> None:
    async def scenario(world: GroupWorld, rig: Rig) -> None:
        client = await rig.client()
        joined = await member_of(client)
        assert await commit(client, joined, 1) == 0
        assert await commit(client, None, 1, group=ELSEWHERE) == 0
        looking = asyncio.create_task(world.groups.expiry.expire([group_bucket(GROUP)]))
        await until(world, "offsets_expiration_due")
        assert [event.kind for event in world.events[-2:]] == [
            "offsets_appended",
            "offsets_expiration_due",
        ]
        asked = len(world.payloads("offset_commit_requested"))
        assert await commit(client, None, 2, group=ELSEWHERE) == 0
        assert len(world.payloads("offset_commit_requested")) == asked, "it is another's bucket"
        assert await commit(client, joined, 2) == 0
        assert len(world.payloads("offset_commit_requested")) == asked + 1
        world.groups.batch_completed(len(world.events))
        await looking
        assert await commit(client, joined, 3) == 0
        assert len(world.payloads("offset_commit_requested")) == asked + 1
        assert (await fetched(client))["committed_offset"] == 3

    play(scenario)


def test_members_that_commit_in_turns_do_not_keep_their_group_paused() -> None:
    """Each commit is sent before the one of another member is decided."""

    async def scenario(world: GroupWorld, rig: Rig) -> None:
        clients = [await rig.client() for _ in range(2)]
        assert await commit(clients[0], None, 1) == 0, "the group is there from now on"

        def asked() -> int:
            return len(world.payloads("offset_commit_requested"))

        async def of_partition(number: int) -> int:
            return await commit(clients[number], None, 2, partitions=[number])

        looking = asyncio.create_task(world.groups.expiry.expire([group_bucket(GROUP)]))
        await until(world, "offsets_expiration_due")
        world.held = []
        first = asyncio.create_task(of_partition(0))
        await until(world, "offset_commit_requested", 2)
        world.groups.batch_completed(len(world.events))
        await looking
        before = asked()
        assert await of_partition(1) == 0, "the first one's commit is still under way"
        assert asked() == before
        world.release()
        assert await first == 0
        assert await of_partition(0) == 0
        assert asked() == before

    play(scenario)
