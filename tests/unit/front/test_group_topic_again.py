"""The topic that groups are kept in is deleted and made again: all of it is taken over anew."""

from __future__ import annotations

import asyncio

import pytest

from streaming.offsets import take_over
from tests.fixtures.waiting import wait_on_loop
from tests.unit.front.front_world import FrontWorld
from tests.unit.front.group_requests import GROUP, commit, fetched, join
from tests.unit.front.group_world import GroupWorld, coordinating


@pytest.mark.parametrize("seen_between", [True, False])
def test_groups_begin_anew(seen_between: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """However much lower its leader epochs are, and whether or not it was seen to be away."""
    monkeypatch.setattr(take_over, "_PAUSE_S", 0.01)

    async def scenario() -> None:
        async with coordinating(made=FrontWorld) as (world, rig):
            assert isinstance(world, FrontWorld)
            client = await rig.client()
            joined = await join(client)
            assert await commit(client, None, group="another") == 0
            world.delete_group_topic()
            if seen_between:
                world.let_see()
                await wait_on_loop(
                    "another resignation", lambda: world.payloads("group_partitions_resigned")[1:]
                )
                assert world.groups.phases() == []
            world.make_group_topic_again()
            world.let_see()
            await world.served(2)
            first, second = world.epochs()
            assert first > second
            assert (await fetched(client))["committed_offset"] == -1
            again = await join(client)
            assert (again["error_code"], again["generation_id"]) == (0, 1)
            assert again["member_id"] != joined["member_id"]
            await world.parts.stop()

    asyncio.run(scenario())


def test_groups_begin_anew_in_fewer_partitions_after_a_front_that_resigned_none() -> None:
    """Though no election names the partition that the state has the group in."""

    async def scenario() -> None:
        async with coordinating() as (before, rig):
            assert await commit(await rig.client(), None) == 0
            was_in = before.groups.partition_of(GROUP)

        def again() -> GroupWorld:
            world = GroupWorld(partitions=2)
            world.machine, world.events = before.machine, before.events
            return world

        async with coordinating(made=again) as (world, rig):
            assert was_in not in world.leader.logs
            assert await commit(await rig.client(), None) == 0

    asyncio.run(scenario())
