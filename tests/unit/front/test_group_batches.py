"""How large what is appended becomes: brokers take nothing that is larger than their segments."""

from __future__ import annotations

import asyncio
from typing import Any

import orjson
import pytest

from state.event_kinds import EventKind
from state.groups.buckets import group_bucket
from state.groups.records import offset_tombstones
from state.protocol_errors import ProtocolError
from streaming.front.groups import decisions as group_decisions
from streaming.front.groups import direct_assignments, direct_commits
from streaming.offsets.batches import read_batches, spans
from streaming.wire.apis import ApiKey
from tests.fixtures.waiting import wait_on_loop
from tests.unit.front.group_offsets import decided, image_of, in_topic
from tests.unit.front.group_requests import GROUP, commit, commit_body, fetched, join, play, sync
from tests.unit.front.group_world import GroupWorld
from tests.unit.front.loop_turns import pass_the_loop
from tests.unit.gateway.support import Client, Rig

OLD = 5
"""A version of OffsetCommit that is always decided."""
LARGEST_BYTES = 4_000


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(group_decisions, "LARGEST_BATCH_BYTES", LARGEST_BYTES)
    monkeypatch.setattr(direct_commits, "LARGEST_BATCH_BYTES", LARGEST_BYTES)
    monkeypatch.setattr(direct_assignments, "_LARGEST_BYTES", LARGEST_BYTES)
    monkeypatch.setattr(group_decisions, "_BATCH_BYTES", 1_000)


def batch_sizes(world: GroupWorld) -> list[int]:
    """How large the batches are of the group's partition."""
    log = world.leader.logs[world.groups.partition_of(GROUP)]
    return [one.end - one.start for one in spans(log.read(0, 1 << 30))]


def test_assignments_that_are_too_large_are_refused_and_others_go_on() -> None:
    """As Kafka's GroupMetadataManager.storeGroup answers what is above max.message.bytes."""

    async def scenario(world: GroupWorld, rig: Rig) -> None:
        client, other = await rig.client(), await rig.client()
        joined = await join(client)
        large = [{"member_id": joined["member_id"], "assignment": b"x" * LARGEST_BYTES}]
        answer = await sync(client, joined, assignments=large)
        assert answer["error_code"] == ProtocolError.UNKNOWN_SERVER_ERROR
        assert world.counters["unwritable_group_records"] == 1
        assert await commit(other, None, group="another") == 0
        again = await join(client, member=joined["member_id"])
        assert again["generation_id"] == joined["generation_id"] + 1
        nearly = [{"member_id": joined["member_id"], "assignment": b"x" * 3_000}]
        assert (await sync(client, again, assignments=nearly))["error_code"] == 0
        assert max(batch_sizes(world)) <= LARGEST_BYTES

    play(scenario)


@pytest.mark.parametrize("version", [OLD, 9])
def test_commits_that_are_too_large_are_refused(version: int) -> None:
    async def scenario(world: GroupWorld, rig: Rig) -> None:
        client = await rig.client()
        assert await commit(client, None) == 0
        large = commit_body(None, 8)
        (topic,) = large["topics"]
        (partition,) = topic["partitions"]
        partition["committed_metadata"] = "m" * 2_000
        topic["partitions"] = [partition, partition | {"partition_index": 1}]
        answer = await client.ask(ApiKey.OFFSET_COMMIT, version, large)
        errors = {one["error_code"] for one in answer["topics"][0]["partitions"]}
        assert errors == {ProtocolError.INVALID_COMMIT_OFFSET_SIZE}
        assert await commit(client, None, 9, version) == 0
        assert [row.offset for row in in_topic(world).values()] == [9]
        assert max(batch_sizes(world)) <= LARGEST_BYTES

    play(scenario)


@pytest.mark.parametrize("before", [None, 3])
def test_what_is_refused_leaves_a_commit_that_is_on_its_way(before: int | None) -> None:
    async def scenario(world: GroupWorld, rig: Rig) -> None:
        client, other = await rig.client(), await rig.client()
        if before is not None:
            assert await _commit(client, before) == 0
        world.following = False
        committing = asyncio.create_task(_commit(client, 7))
        await wait_on_loop("a commit", lambda: world.groups.image.in_flight)
        large = commit_body(None, 8)
        (partition,) = large["topics"][0]["partitions"]
        partition["committed_metadata"] = "m" * 3_000
        large["topics"][0]["partitions"] = [partition, partition | {"partition_index": 1}]
        answer = await other.ask(ApiKey.OFFSET_COMMIT, OLD, large)
        errors = {one["error_code"] for one in answer["topics"][0]["partitions"]}
        assert errors == {ProtocolError.INVALID_COMMIT_OFFSET_SIZE}
        world.resume_following()
        assert await committing == 0
        assert decided(world) == image_of(world)
        assert [row.offset for row in in_topic(world).values()] == [7]
        world.happen(EventKind.OFFSETS_EXPIRATION_DUE, group_bucket(GROUP))
        await pass_the_loop()
        assert (await fetched(client))["committed_offset"] == 7

    play(scenario)


def test_records_that_are_written_together_make_no_larger_batches() -> None:
    async def scenario(world: GroupWorld, rig: Rig) -> None:
        world.held = []
        clients = [await rig.client() for _ in range(30)]
        asking = [asyncio.create_task(_commit(one, at)) for at, one in enumerate(clients)]
        await wait_on_loop("commits", lambda: len(world.held or ()) == len(clients))
        before = len(batch_sizes(world))
        world.groups.decisions.apply(world.held)
        assert await asyncio.gather(*asking) == [0] * len(clients)
        sizes = batch_sizes(world)[before:]
        assert 1 < len(sizes) < 10
        assert max(sizes) <= 1_000

    play(scenario)


def test_tombstones_are_split() -> None:
    """Nobody waits for them, and what is not appended would be loaded again."""

    async def scenario(world: GroupWorld, rig: Rig) -> None:
        gone = [("t", number) for number in range(500)]
        step = {
            "changes": [],
            "replies": [{"request_id": "r", "error": 0}],
            "records": offset_tombstones(gone, 0),
            "write": 0,
            "quiet": True,
        }
        offset = len(world.events)
        world.groups.decisions.apply([(offset, _decision(world, step))])
        assert max(batch_sizes(world)) <= 1_000
        log = world.leader.logs[world.groups.partition_of(GROUP)]
        records = [one for batch in read_batches(log.read(0, 1 << 30)) for one in batch.records]
        assert len({one.key for one in records if one.value is None}) == len(gone)

    play(scenario)


async def _commit(client: Client, number: int) -> int:
    return await commit(client, None, number, OLD)


def _decision(world: GroupWorld, step: dict[str, Any]) -> bytes:
    partition = world.groups.partition_of(GROUP)
    return orjson.dumps({"group": GROUP, "partition": partition, "steps": [step]})
