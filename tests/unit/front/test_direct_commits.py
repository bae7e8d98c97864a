"""Commits that no batch has to decide: what is appended, and what the log gets."""

from __future__ import annotations

import asyncio
import random
from typing import Any
from unittest.mock import Mock

import pytest

from state.groups.offset_rows import UNLOGGED
from state.protocol_errors import ProtocolError
from state.topic_partition import TopicPartition
from streaming.front.groups import direct_commit, direct_commits
from streaming.wire.apis import ApiKey
from streaming.wire.commit_layouts import CommitLayouts
from streaming.wire.requests import encode_request
from streaming.wire.responses import decode_response
from tests.fixtures.waiting import wait_on_loop
from tests.unit.front.group_offsets import (
    all_gone,
    decided,
    image_of,
    in_topic,
    values,
)
from tests.unit.front.group_requests import (
    DELETING,
    ELSEWHERE,
    GROUP,
    commit,
    commit_body,
    fetched,
    member_of,
    play,
    until,
)
from tests.unit.front.group_world import GroupWorld
from tests.unit.front.loop_turns import pass_the_loop
from tests.unit.gateway.support import Rig

OLD = 5
"""A version of OffsetCommit that is always decided."""
T0: TopicPartition = ("t", 0)
SUBSETS = ((0,), (1,), (0, 1))
"""Of the topic's partitions."""


def test_a_commit_of_a_member_waits_for_no_decision() -> None:
    async def scenario(world: GroupWorld, rig: Rig) -> None:
        client = await rig.client()
        joined = await member_of(client)
        world.held = []
        assert await commit(client, joined, 7) == 0
        assert await commit(client, joined, 8) == 0
        assert (await fetched(client))["committed_offset"] == 8
        assert not world.payloads("offset_commit_requested")
        assert in_topic(world)[T0].offset == 8

    play(scenario)


def test_a_commit_waits_for_all_brokers_in_sync_and_is_unstable_until_then() -> None:
    async def scenario(world: GroupWorld, rig: Rig) -> None:
        client, other = await rig.client(), await rig.client()
        joined = await member_of(client)
        world.following = False
        asking = asyncio.create_task(commit(client, joined))
        await wait_on_loop("a commit", lambda: world.groups.image.committing)
        assert (await fetched(other))["committed_offset"] == -1
        answer = await fetched(other, require_stable=True)
        assert answer["error_code"] == ProtocolError.UNSTABLE_OFFSET_COMMIT
        assert not asking.done()
        world.resume_following()
        assert await asking == 0
        assert (await fetched(other, require_stable=True))["committed_offset"] == 7

    play(scenario)


def test_a_commit_that_waits_too_long_is_answered_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(direct_commits, "COMMIT_TIMEOUT_S", 0.05)

    async def scenario(world: GroupWorld, rig: Rig) -> None:
        client = await rig.client()
        joined = await member_of(client)
        world.following = False
        assert await commit(client, joined) == ProtocolError.REQUEST_TIMED_OUT
        monkeypatch.undo()
        world.resume_following()
        assert await commit(client, joined, 8) == 0
        assert (await fetched(client))["committed_offset"] == 8

    play(scenario)


def test_the_log_gets_the_last_of_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(direct_commits, "LOGGED_WITHIN_S", 3_600.0)

    async def scenario(world: GroupWorld, rig: Rig) -> None:
        client = await rig.client()
        joined = await member_of(client)
        for offset in range(5):
            assert await commit(client, joined, offset) == 0
        assert not world.payloads("offsets_appended")
        assert await commit(client, joined, 5, OLD) == 0
        assert [one["offsets"][0][2] for one in world.payloads("offsets_appended")] == [4]

    play(scenario)


def test_the_log_gets_a_commit_before_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(direct_commits, "LOGGED_WITHIN_S", 0.01)

    async def scenario(world: GroupWorld, rig: Rig) -> None:
        client = await rig.client()
        joined = await member_of(client)
        for offset in range(2):
            assert await commit(client, joined, offset) == 0
            events = await until(world, "offsets_appended", offset + 1)
            assert [one["offsets"][0][2] for one in events] == list(range(offset + 1))
        assert values(decided(world)) == values(in_topic(world))
        await wait_on_loop(
            "the offset in the log",
            lambda: world.groups.image.groups[GROUP].offsets[T0].position != UNLOGGED,
        )
        assert world.groups.image.groups[GROUP].offsets == decided(world)

    play(scenario)


@pytest.mark.parametrize(("unused_s", "expected"), [(0.0, 2), (3_600.0, 0)])
def test_what_commits_look_like_is_forgotten_some_time_after_the_last_one(
    unused_s: float, expected: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(direct_commits, "LOGGED_WITHIN_S", 0.01)
    monkeypatch.setattr(direct_commits, "UNUSED_S", unused_s)
    forgotten: list[CommitLayouts] = []

    def noted(layouts: CommitLayouts) -> None:
        forgotten.append(layouts)

    monkeypatch.setattr(CommitLayouts, "forget_unused", noted)

    async def scenario(world: GroupWorld, rig: Rig) -> None:
        client = await rig.client()
        joined = await member_of(client)
        for offset in range(2):
            assert await commit(client, joined, offset) == 0
            await until(world, "offsets_appended", offset + 1)
        assert len(forgotten) == expected

    play(scenario)


def test_the_end_of_the_leadership_is_told() -> None:
    async def scenario(world: GroupWorld, rig: Rig) -> None:
        client = await rig.client()
        joined = await member_of(client)
        world.following = False
        asking = asyncio.create_task(commit(client, joined))
        await wait_on_loop("a commit", lambda: world.groups.image.committing)
        world.groups.role_lost()
        world.leader.stop()
        world.groups.resigned()
        assert await asking == ProtocolError.NOT_COORDINATOR
        assert not world.payloads("offsets_appended")

    play(scenario)


def test_a_member_that_may_not_commit_is_told_what_is_decided() -> None:
    async def scenario(world: GroupWorld, rig: Rig) -> None:
        client = await rig.client()
        joined = await member_of(client)
        stale = joined | {"generation_id": 9}
        assert await commit(client, stale) == ProtocolError.ILLEGAL_GENERATION
        gone = joined | {"member_id": "x"}
        assert await commit(client, gone) == ProtocolError.UNKNOWN_MEMBER_ID
        assert len(world.payloads("offset_commit_requested")) == 2

    play(scenario)


def test_only_who_may_commit_is_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    kept: list[str] = []
    monkeypatch.setattr(CommitLayouts, "keep", lambda _, __, layout: kept.append(layout.member))

    async def scenario(world: GroupWorld, rig: Rig) -> None:
        client = await rig.client()
        joined = await member_of(client)
        assert await commit(client, joined | {"member_id": "x"}) != 0
        assert await commit(client, joined | {"generation_id": 9}) != 0
        assert await commit(client, joined, group="another") != 0
        assert await commit(client, joined) == 0
        assert kept == [joined["member_id"]]

    play(scenario)


def _no_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    made = Mock(side_effect=AssertionError("a batch is made"))
    monkeypatch.setattr(direct_commit, "CommitBatch", made)


def test_no_batch_is_made_for_who_may_not_commit(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(world: GroupWorld, rig: Rig) -> None:
        client = await rig.client()
        joined = await member_of(client)
        _no_batch(monkeypatch)
        gone = joined | {"member_id": "x"}
        assert await commit(client, gone) == ProtocolError.UNKNOWN_MEMBER_ID
        elsewhere = commit_body(joined)
        elsewhere["topics"][0]["name"] = "not there"
        request = encode_request(ApiKey.OFFSET_COMMIT, 9, 5, "c", elsewhere)
        assert not world.groups.try_commit(request, "host", pytest.fail)

    play(scenario)


def test_no_batch_is_made_to_see_that_it_is_too_large(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(world: GroupWorld, rig: Rig) -> None:
        client, group = await rig.client(), "g" * 30_000
        assert await commit(client, None, group=group) == 0, "the group is there from now on"
        _no_batch(monkeypatch)
        body = commit_body(None, group=group)
        body["topics"][0]["partitions"] *= 2_000
        request = encode_request(ApiKey.OFFSET_COMMIT, 9, 5, "c", body)
        assert not world.groups.try_commit(request, "host", pytest.fail)

    play(scenario)


def test_too_long_metadata_is_left_to_the_machines() -> None:
    async def scenario(world: GroupWorld, rig: Rig) -> None:
        client = await rig.client()
        joined = await member_of(client)
        body = commit_body(joined)
        body["topics"][0]["partitions"][0]["committed_metadata"] = "mm"
        (topic,) = (await client.ask(ApiKey.OFFSET_COMMIT, 9, body))["topics"]
        assert topic["partitions"][0]["error_code"] == ProtocolError.OFFSET_METADATA_TOO_LARGE

    play(scenario, "offset.metadata.max.bytes=1")


def test_what_is_taken_in_the_turn_in_which_a_term_ends_is_answered() -> None:
    async def scenario(world: GroupWorld, rig: Rig) -> None:
        client = await rig.client()
        assert await commit(client, None, 1) == 0
        answers: list[bytes] = []
        request = encode_request(ApiKey.OFFSET_COMMIT, 9, 5, "c", commit_body(None, 2))
        assert world.groups.try_commit(request, "host", answers.append)
        world.leader.stop()
        world.groups.resigned()
        await pass_the_loop()
        (answer,) = answers
        correlation_id, body = decode_response(ApiKey.OFFSET_COMMIT, 9, answer)
        error = body["topics"][0]["partitions"][0]["error_code"]
        assert (correlation_id, error) == (5, ProtocolError.NOT_COORDINATOR)

    play(scenario)


def test_a_partition_that_brokers_do_not_follow_holds_up_no_group_of_another() -> None:
    async def scenario(world: GroupWorld, rig: Rig) -> None:
        client, other = await rig.client(), await rig.client()
        assert world.groups.partition_of(GROUP) != world.groups.partition_of(ELSEWHERE)
        assert await commit(client, None, 1) == 0
        world.following = False
        waiting = asyncio.create_task(commit(client, None, 2))
        await wait_on_loop("a commit", lambda: world.groups.image.committing)
        deciding = asyncio.create_task(commit(other, None, 1, group=ELSEWHERE))
        await until(world, "offset_commit_requested", 2)
        assert not waiting.done()
        world.resume_following()
        assert (await waiting, await deciding) == (0, 0)

    play(scenario)


@pytest.mark.parametrize("seed", range(8))
def test_log_and_topic_agree_whatever_comes_when(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Commits of either way, deletions of offsets and of the topic, and batches that take long, by
    clients that do not wait for one another.
    """
    chance = random.Random(seed)
    monkeypatch.setattr(direct_commits, "LOGGED_WITHIN_S", 0.02)

    async def scenario(world: GroupWorld, rig: Rig) -> None:
        clients = [await rig.client() for _ in range(3)]
        asking: list[asyncio.Task[Any] | None] = [None, None, None]
        for offset in range(160):
            number = chance.randrange(3)
            running, client = asking[number], clients[number]
            if offset % 20 == 19:
                await all_agree(world, asking)
            match chance.randrange(9):
                case 0 if world.held is None:
                    world.held = []
                case 0:
                    world.release()
                case 1:
                    world.following = not world.following
                    world.follow()
                case 8:
                    world.delete_topic("t")
                    world.create_topic_again("t")
                case _ if running is not None and not running.done():
                    await asyncio.sleep(0.001)
                case 2:
                    delete = client.ask(ApiKey.OFFSET_DELETE, 0, DELETING)
                    asking[number] = asyncio.create_task(delete)
                case 3:
                    some = chance.choice(SUBSETS)
                    asked = commit(client, None, offset, OLD, partitions=some)
                    asking[number] = asyncio.create_task(asked)
                case 4:
                    await pass_the_loop()
                case _:
                    some = chance.choice(SUBSETS)
                    asked = commit(client, None, offset, partitions=some)
                    asking[number] = asyncio.create_task(asked)
        await all_agree(world, asking)
        assert world.payloads("committed_topics_deleted")

    play(scenario)


async def all_agree(world: GroupWorld, asking: list[asyncio.Task[Any] | None]) -> None:
    """Let everything come to an end, and compare."""
    world.resume_following()
    world.release()
    async with asyncio.timeout(20):
        for one in asking:
            if one is not None:
                await one
    await all_gone(world)
    await wait_on_loop("what is decided", lambda: image_of(world) == decided(world))
    assert values(decided(world)) == values(in_topic(world))
