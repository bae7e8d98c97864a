"""What a job that comes decides once more is appended no second time."""

from __future__ import annotations

import asyncio

import pytest

from streaming.offsets import take_over
from tests.unit.front.front_world import FrontWorld
from tests.unit.front.group_offsets import in_topic
from tests.unit.front.group_requests import commit
from tests.unit.front.group_world import coordinating

OLD = 5
"""A version of OffsetCommit that is always decided."""


@pytest.mark.parametrize("heard_first", ["its image", "its decisions"])
def test_a_commit_is_not_undone_by_a_batch_that_is_carried_out_again(
    heard_first: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Until all is taken over again the old term's log is still led, and what the new job decides
    of the old one's last batch may be there before its image is.
    """

    monkeypatch.setattr(take_over, "_PAUSE_S", 0.01)

    async def scenario() -> None:
        async with coordinating(made=FrontWorld) as (world, rig):
            assert isinstance(world, FrontWorld)
            client = await rig.client()
            assert await commit(client, None, offset=7, version=OLD) == 0
            last_batch = [(world.events[-1].offset, world.decided[-1])]
            assert await commit(client, None, offset=8) == 0
            assert len(world.payloads("offset_commit_requested")) == 1, "the second is direct"
            world.parts.job_gone()
            if heard_first == "its image":
                world.parts.job_came_back()
            world.parts.decided(last_batch)
            assert [row.offset for row in in_topic(world).values()] == [8]
            world.parts.job_came_back()
            await world.served(2)
            await world.parts.stop()

    asyncio.run(scenario())


def test_it_stops_in_the_moment_in_which_a_term_ends() -> None:
    async def scenario() -> None:
        async with coordinating(made=FrontWorld) as (world, _rig):
            assert isinstance(world, FrontWorld)
            world.parts.job_came_back()
            async with asyncio.timeout(5):
                await world.parts.stop()

    asyncio.run(scenario())
