"""Partitions that do not exist, and offsets of topics that ceased to: refused, removed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from state.protocol_errors import ProtocolError
from state.topic_partition import TopicPartition
from streaming.offsets.history import History
from streaming.wire.apis import ApiKey
from tests.fixtures.waiting import wait_on_loop
from tests.unit.front.group_offsets import all_gone, decided, in_topic
from tests.unit.front.group_requests import GROUP, commit, commit_body, fetched, member_of, play
from tests.unit.front.group_world import GroupWorld
from tests.unit.front.loop_turns import pass_the_loop
from tests.unit.gateway.support import Client, Rig

OLD, NEW = 5, 9
"""Versions of OffsetCommit: one that is always decided, and one that need not be."""
UNKNOWN = ProtocolError.UNKNOWN_TOPIC_OR_PARTITION
T0, T1, GONE, T9 = ("t", 0), ("t", 1), ("gone", 0), ("t", 9)


def asking(*partitions: TopicPartition, offset: int = 7) -> list[dict[str, Any]]:
    return [
        {"name": topic, "partitions": [{"partition_index": number, "committed_offset": offset}]}
        for topic, number in partitions
    ]


def errors(answer: dict[str, Any]) -> dict[TopicPartition, int]:
    return {
        (topic["name"], one["partition_index"]): one["error_code"]
        for topic in answer["topics"]
        for one in topic["partitions"]
    }


async def commit_all(
    client: Client, *partitions: TopicPartition, version: int = NEW, **more: Any
) -> dict[TopicPartition, int]:
    body = commit_body(None) | {"topics": asking(*partitions)} | more
    return errors(await client.ask(ApiKey.OFFSET_COMMIT, version, body))


@pytest.mark.parametrize("version", [OLD, NEW])
def test_commits_of_partitions_that_do_not_exist_are_refused(version: int) -> None:
    async def scenario(world: GroupWorld, rig: Rig) -> None:
        client = await rig.client()
        assert await commit_all(client, GONE, T9, version=version) == {GONE: UNKNOWN, T9: UNKNOWN}
        assert not world.payloads("offset_commit_requested"), "nothing is left to decide"
        for _ in range(2):
            told = await commit_all(client, T0, GONE, T9, version=version)
            assert told == {T0: 0, GONE: UNKNOWN, T9: UNKNOWN}
        assert decided(world).keys() == in_topic(world).keys() == {T0}
        stale = {"generation_id_or_member_epoch": 3, "member_id": "x"}
        told = await commit_all(client, T0, GONE, version=version, **stale)
        assert told == {T0: ProtocolError.UNKNOWN_MEMBER_ID, GONE: UNKNOWN}

    play(scenario)


def test_a_member_whose_commit_needs_no_decision_is_refused_what_is_gone_by_then() -> None:
    async def scenario(world: GroupWorld, rig: Rig) -> None:
        client = await rig.client()
        joined = await member_of(client)
        assert await commit(client, joined, 1) == 0
        world.delete_topic("t")
        assert await commit(client, joined, 2) == UNKNOWN
        assert not world.payloads("offset_commit_requested")

    play(scenario)


def test_transactions_and_deletions_name_partitions_that_do_not_exist() -> None:
    async def scenario(world: GroupWorld, rig: Rig) -> None:
        client = await rig.client()
        producer = {"transactional_id": "x", "producer_id": 9, "producer_epoch": 1}
        body = {"group_id": GROUP, "topics": asking(T0, GONE)} | producer
        answer = await client.ask(ApiKey.TXN_OFFSET_COMMIT, 4, body | {"generation_id": -1})
        assert errors(answer) == {T0: 0, GONE: UNKNOWN}
        names = [{"name": one, "partitions": [{"partition_index": 0}]} for one in ("t", "gone")]
        body = {"group_id": GROUP, "topics": names}
        answer = await client.ask(ApiKey.OFFSET_DELETE, 0, body)
        assert (answer["error_code"], errors(answer)) == (0, {T0: 0, GONE: UNKNOWN})
        answer = await client.ask(ApiKey.OFFSET_DELETE, 0, body | {"group_id": "nobody"})
        assert (answer["error_code"], errors(answer)) == (ProtocolError.GROUP_ID_NOT_FOUND, {})

    play(scenario)


def test_a_new_topic_of_the_name_begins_without_offsets() -> None:
    async def scenario(world: GroupWorld, rig: Rig) -> None:
        client = await rig.client()
        joined = await member_of(client)
        assert await commit(client, joined, 7) == 0
        assert (await fetched(client))["committed_offset"] == 7
        world.delete_topic("t")
        world.create_topic_again("t")
        assert await commit(client, joined, 8) == UNKNOWN, "it would go with the others"
        await all_gone(world)
        assert (await fetched(client))["committed_offset"] == -1
        assert not decided(world) and not in_topic(world)
        assert await commit(client, joined, 1) == 0
        assert (await fetched(client))["committed_offset"] == 1
        assert in_topic(world)[T0].offset == 1
        assert len(world.payloads("committed_topics_deleted")) == 1

    play(scenario)


def test_only_groups_that_commit_a_topic_hear_of_its_end() -> None:
    async def scenario(world: GroupWorld, rig: Rig) -> None:
        client = await rig.client()
        world.cluster.create("u", [[1, 2]])
        world.look()
        assert await commit_all(client, ("u", 0)) == {("u", 0): 0}
        assert await commit_all(client, T0, T1, group_id="h") == {T0: 0, T1: 0}
        world.delete_topic("t")
        await all_gone(world)
        (told,) = world.payloads("committed_topics_deleted")
        assert (told["group"], told["topics"]) == ("h", ["t"])
        assert world.groups.image.groups.keys() == {GROUP}, "the other has nothing left"

    play(scenario)


@pytest.mark.parametrize("version", [OLD, NEW])
def test_a_commit_that_is_on_its_way_goes_with_its_topic(version: int) -> None:
    async def scenario(world: GroupWorld, rig: Rig) -> None:
        client = await rig.client()
        assert await commit(client, None, 1) == 0
        world.following = False
        committing = asyncio.create_task(commit(client, None, 2, version))
        await wait_on_loop(
            "a commit", lambda: world.groups.image.committing or world.groups.image.in_flight
        )
        world.delete_topic("t")
        await pass_the_loop()
        world.resume_following()
        assert await committing == 0
        await all_gone(world)
        world.create_topic_again("t")
        assert (await fetched(client))["committed_offset"] == -1
        assert not decided(world) and not in_topic(world)

    play(scenario)


def test_a_commit_that_is_not_decided_yet_goes_with_its_topic() -> None:
    """Nothing but that the group asked is known of it."""

    async def scenario(world: GroupWorld, rig: Rig) -> None:
        client = await rig.client()
        world.held = []
        committing = asyncio.create_task(commit(client, None, 2))
        await wait_on_loop("a commit", lambda: world.payloads("offset_commit_requested"))
        world.delete_topic("t")
        await wait_on_loop("the deletion", lambda: world.payloads("committed_topics_deleted"))
        world.release()
        assert await committing == 0
        await all_gone(world)
        assert not world.groups.image.groups
        assert not decided(world) and not in_topic(world)

    play(scenario)


def test_requests_that_wait_for_commits_come_before_the_end_of_a_topic() -> None:
    async def scenario(world: GroupWorld, rig: Rig) -> None:
        client, other = await rig.client(), await rig.client()
        assert await commit(client, None, 1) == 0
        world.following = False
        direct = asyncio.create_task(commit(client, None, 2))
        await wait_on_loop("a commit", lambda: world.groups.image.committing)
        waiting = asyncio.create_task(commit(other, None, 3, OLD))
        await wait_on_loop("a paused group", lambda: world.groups._commits.pause.groups)
        world.delete_topic("t")
        await pass_the_loop()
        world.resume_following()
        assert await direct == await waiting == 0
        await all_gone(world)
        assert not decided(world) and not in_topic(world)

    play(scenario)


def test_commits_of_other_topics_are_decided_behind_it_and_then_directly_again() -> None:
    async def scenario(world: GroupWorld, rig: Rig) -> None:
        client = await rig.client()
        world.cluster.create("u", [[1, 2]])
        world.look()
        other = ("u", 0)
        assert await commit_all(client, T0, other) == {T0: 0, other: 0}
        asked = len(world.payloads("offset_commit_requested"))
        world.held = []
        world.delete_topic("t")
        await wait_on_loop("the deletion", lambda: world.payloads("committed_topics_deleted"))
        committing = asyncio.create_task(commit_all(client, other))
        await wait_on_loop(
            "another commit", lambda: len(world.payloads("offset_commit_requested")) != asked
        )
        world.release()
        assert await committing == {other: 0}
        await all_gone(world)
        assert await commit_all(client, other) == {other: 0}
        assert len(world.payloads("offset_commit_requested")) == asked + 1
        assert decided(world).keys() == in_topic(world).keys() == {other}

    play(scenario)


def test_what_was_deleted_while_nobody_was_here_goes_once_it_is_loaded() -> None:
    """Not so a topic that the image lacks and ZooKeeper has: it may only not be told of yet."""

    async def scenario(world: GroupWorld, rig: Rig) -> None:
        client = await rig.client()
        assert await commit(client, None, 3) == 0
        partition = world.groups.partition_of(GROUP)
        world.cluster.known.forget_topics(["t"])
        world.look()
        for listed in (True, False):
            world.in_zookeeper.clear()
            world.in_zookeeper.update({"t"} if listed else ())
            world.groups.topics.loaded(partition, {"t"})
            world.groups.topics.served(partition)
            await all_gone(world)
            assert (T0 in decided(world)) == (T0 in in_topic(world)) == listed

    play(scenario)


def test_what_is_deleted_and_made_again_while_groups_are_loaded_goes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def scenario(world: GroupWorld, rig: Rig) -> None:
        async def followers_have(_: History, partition: int, end: int) -> AsyncIterator[bytes]:
            yield world.leader.logs[partition].read(0, 1 << 30)

        monkeypatch.setattr(History, "whole", followers_have)
        client = await rig.client()
        assert await commit(client, None, 3) == 0
        world.groups.resigned()
        await world.elect()
        world.delete_topic("t")
        world.create_topic_again("t")
        await pass_the_loop()
        assert not world.payloads("committed_topics_deleted")
        await world.load()
        assert decided(world).keys() == {T0}
        await all_gone(world)
        assert not decided(world) and not in_topic(world)

    play(scenario)


def test_offsets_of_deleted_topics_are_left_to_brokers_without_the_role() -> None:
    async def scenario(world: GroupWorld, rig: Rig) -> None:
        client = await rig.client()
        assert await commit(client, None, 3) == 0
        world.delete_topic("t")
        world.groups.role_lost()
        assert not any(world.groups.known.excluded.values())
        world.cluster.controller = False
        world.cluster.gone.append("t")
        world.look()
        assert not any(world.groups.known.excluded.values())

    play(scenario)
