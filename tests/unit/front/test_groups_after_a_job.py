"""What a job that comes decides once more is appended no second time, and counts for nothing."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from unittest.mock import Mock

import pytest

from state.groups.tables import CoordinatorPhase
from state.matrix import NONE
from state.protocol_errors import ProtocolError
from streaming.front.groups import committed_topics
from streaming.front.job_reactions import JobReactions
from streaming.image.cluster_image import ClusterImage
from streaming.internal_topics import GROUP_TOPIC
from streaming.link.from_job import ImageTold
from streaming.offsets import take_over
from streaming.offsets.history import History
from streaming.wire.apis import ApiKey
from tests.fixtures.waiting import wait_on_loop
from tests.unit.front.front_world import FrontWorld
from tests.unit.front.group_offsets import all_gone, decided, in_topic
from tests.unit.front.group_requests import GROUP, commit, fetched, play
from tests.unit.front.group_world import GroupWorld, coordinating
from tests.unit.front.loop_turns import pass_the_loop
from tests.unit.gateway.support import Rig

OLD = 5
"""A version of OffsetCommit that is always decided."""


@pytest.mark.parametrize("heard_first", ["its image", "its decisions"])
def test_a_commit_is_not_undone_by_a_batch_that_is_carried_out_again(
    heard_first: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the new job decides of the old one's last batch may be there before its image is, which
    ends the old term.
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
            log = world.leader.logs[world.groups.partition_of(GROUP)]
            end = log.end
            world.parts.job_gone()
            if heard_first == "its image":
                world.parts.job_came_back()
            world.parts.decided(last_batch)
            assert log.end == end
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


def followers_have_all(world: GroupWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    async def whole(_: History, partition: int, end: int) -> AsyncIterator[bytes]:
        yield world.leader.logs[partition].read(0, 1 << 30)

    monkeypatch.setattr(History, "whole", whole)


def another_job_decides_what_is_held(world: GroupWorld) -> None:
    """It does so before the end of the term in which the job before it was lost."""
    world.groups.job_gone()
    assert world.held
    world.release()
    world.groups.batch_completed(len(world.events))


def test_a_partition_that_was_loaded_for_a_job_that_is_gone_is_not_served(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def scenario(world: GroupWorld, rig: Rig) -> None:
        client = await rig.client()
        assert await commit(client, None, 7) == 0
        followers_have_all(world, monkeypatch)
        world.groups.resigned()
        await world.elect()
        await pass_the_loop()
        world.held = []
        for partition, log in world.leader.logs.items():
            await world.groups.load(partition, log.end)
        another_job_decides_what_is_held(world)
        await pass_the_loop()
        world.groups.batch_completed(len(world.events))
        assert set(world.groups.phases()) == {CoordinatorPhase.LOADING}
        asked = {"groups": [{"group_id": GROUP, "topics": None}]}
        (answer,) = (await client.ask(ApiKey.OFFSET_FETCH, 9, asked))["groups"]
        assert answer["error_code"] == ProtocolError.COORDINATOR_LOAD_IN_PROGRESS
        world.groups.resigned()
        await world.elect()
        await world.load()
        assert (await fetched(client))["committed_offset"] == 7

    play(scenario)


def test_offsets_of_a_deleted_topic_are_not_gone_by_what_another_job_decides(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(committed_topics, "_PAUSE_S", 0.01)

    async def scenario(world: GroupWorld, rig: Rig) -> None:
        client = await rig.client()
        assert await commit(client, None, 7) == 0
        followers_have_all(world, monkeypatch)
        world.held = []
        world.delete_topic("t")
        await wait_on_loop("the deletion", lambda: world.payloads("committed_topics_deleted"))
        await pass_the_loop()
        another_job_decides_what_is_held(world)
        await pass_the_loop()
        assert in_topic(world)
        assert any(world.groups.known.excluded.values())
        world.groups.resigned()
        await world.elect()
        await world.load()
        await all_gone(world)
        assert not in_topic(world) and not decided(world)

    play(scenario)


def test_a_commit_is_not_safe_by_the_isr_that_a_job_tells_when_it_comes() -> None:
    """It may be one that a broker has joined since, without what is committed."""

    async def scenario() -> None:
        async with coordinating(made=FrontWorld) as (world, rig):
            assert isinstance(world, FrontWorld)
            client = await rig.client()
            assert await commit(client, None, offset=7) == 0
            world.following = False
            committing = asyncio.create_task(commit(client, None, offset=8))
            await wait_on_loop("a commit", lambda: world.groups.image.committing)
            world.parts.job_gone()
            (log,) = (one for one in world.leader.logs.values() if one.unsafe_bytes)
            world.leader.fetched(log, 1, log.end, log.epoch)
            of_then = ClusterImage.from_snapshot(world.cluster.known.snapshot())
            row = of_then.row_of(GROUP_TOPIC, log.partition)
            of_then.columns["isr"][row] = [1, NONE]
            quiet = Mock()
            told = JobReactions(
                quiet, quiet, quiet, world.parts, quiet, recovery=quiet, metrics=None
            )
            told.snapshot(of_then, ImageTold(), None)
            assert await committing == ProtocolError.NOT_COORDINATOR
            await world.parts.stop()

    asyncio.run(scenario())
