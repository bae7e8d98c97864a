"""Commits of offsets in a transaction, through the gateway, and the markers that end it."""

from __future__ import annotations

import asyncio

import pytest

from state.event_kinds import EventKind
from state.groups.buckets import group_bucket
from state.protocol_errors import ProtocolError
from streaming.gateway.calls import BoundListener, Call
from streaming.gateway.groups import transactions
from streaming.internal_topics import GROUP_TOPIC
from streaming.log.events import event
from streaming.offsets.txn_markers import TxnMarkers
from streaming.security.principals import STRANGER
from streaming.wire.apis import ApiKey
from streaming.wire.requests import RequestHeader
from tests.fixtures.waiting import wait_on_loop
from tests.unit.front import group_world
from tests.unit.front.group_offsets import decided, image_of, in_topic, values
from tests.unit.front.group_requests import GROUP, commit, fetched, in_transaction, play
from tests.unit.front.group_world import GroupWorld
from tests.unit.gateway.support import Rig


@pytest.mark.parametrize("version", range(5))
def test_commits_of_a_transaction_are_not_stable_before_its_end(version: int) -> None:
    async def scenario(world: GroupWorld, rig: Rig) -> None:
        client = await rig.client()
        answer = await client.ask(ApiKey.TXN_OFFSET_COMMIT, version, in_transaction())
        assert answer["topics"][0]["partitions"][0]["error_code"] == 0
        unstable = await fetched(client, require_stable=True)
        assert unstable["error_code"] == ProtocolError.UNSTABLE_OFFSET_COMMIT
        assert (await fetched(client))["committed_offset"] == -1
        producers = world.leader.logs[world.groups.partition_of(GROUP)].producers
        assert producers.commit_error(9, 0) == ProtocolError.INVALID_PRODUCER_EPOCH

    play(scenario)


@pytest.mark.parametrize("version", range(5))
def test_old_producers_are_not_told_that_groups_load(version: int) -> None:
    """It ends them (KAFKA-7296)."""

    async def scenario(world: GroupWorld, rig: Rig) -> None:
        client = await rig.client()

        async def error() -> int:
            answer = await client.ask(ApiKey.TXN_OFFSET_COMMIT, version, in_transaction())
            code: int = answer["topics"][0]["partitions"][0]["error_code"]
            return code

        later = ProtocolError.COORDINATOR_LOAD_IN_PROGRESS
        if version < 2:
            later = ProtocolError.COORDINATOR_NOT_AVAILABLE
        world.has_job = False
        assert await error() == later
        world.has_job = True
        assert await error() == 0
        world.groups.resigned()
        assert await error() == later

    play(scenario)


@pytest.mark.parametrize(("said", "told"), [(47, 47), (48, 48), (13, 14), (15, 15)])
def test_what_a_transactions_coordinator_has_against_a_commit_is_told(said: int, told: int) -> None:
    async def scenario(world: GroupWorld, rig: Rig) -> None:
        world.verification_error = said
        client = await rig.client()
        answer = await client.ask(ApiKey.TXN_OFFSET_COMMIT, 4, in_transaction())
        assert answer["topics"][0]["partitions"][0]["error_code"] == told
        assert (await fetched(client, require_stable=True))["error_code"] == 0

    play(scenario)


def test_a_commit_is_under_way_until_it_is_decided_however_late(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(group_world, "TIMEOUT_S", 0.01)
    monkeypatch.setattr(transactions, "COMMIT_TIMEOUT_S", 0.05)
    monkeypatch.setattr(transactions, "_MARKER_WAITS_S", 0.05)

    async def scenario(world: GroupWorld, rig: Rig) -> None:
        client = await rig.client()
        world.held = []
        answer = await client.ask(ApiKey.TXN_OFFSET_COMMIT, 4, in_transaction())
        error = answer["topics"][0]["partitions"][0]["error_code"]
        assert error == ProtocolError.REQUEST_TIMED_OUT
        assert not await world.transactions.settled(9)
        world.release()
        monkeypatch.setattr(transactions, "_MARKER_WAITS_S", 20.0)
        assert await world.transactions.settled(9)

    play(scenario)


def test_markers_come_behind_the_commits_that_are_under_way() -> None:
    async def scenario(world: GroupWorld, rig: Rig) -> None:
        client = await rig.client()
        world.held = []
        client.write(ApiKey.TXN_OFFSET_COMMIT, 4, in_transaction())
        await rig.counted("requests_TxnOffsetCommit", 1)
        settling = asyncio.create_task(world.transactions.settled(9))
        assert await world.transactions.settled(8)
        await asyncio.sleep(0)
        assert not settling.done()
        world.release()
        assert await settling
        await client.read_frame()
        assert await world.transactions.settled(9)

    play(scenario)


def test_an_offset_that_a_marker_makes_count_is_not_taken_by_its_predecessors_expiry() -> None:
    """The marker comes while the batch that looks for expired offsets is running."""

    async def scenario(world: GroupWorld, rig: Rig) -> None:
        client = await rig.client()
        assert await commit(client, None, 5, version=5) == 0
        world.pass_ms(70_000)
        answer = await client.ask(ApiKey.TXN_OFFSET_COMMIT, 3, in_transaction())
        assert answer["topics"][0]["partitions"][0]["error_code"] == 0
        world.held = []
        buckets = [group_bucket(GROUP)]
        expiring = asyncio.create_task(world.groups.expiry.expire(buckets))
        await wait_on_loop("the expiry", lambda: world.payloads("offsets_expiration_due"))
        await complete(world, 9)
        world.release()
        world.groups.batch_completed(len(world.events))
        await expiring
        assert values(in_topic(world)) == values(image_of(world)) == values(decided(world))
        assert [offset for offset, *_ in values(in_topic(world)).values()] == [7]

    play(scenario, "offsets.retention.minutes=1")


async def complete(world: GroupWorld, producer_id: int) -> None:
    """Let a transaction be committed, as its coordinator does."""

    async def completed(producer_id: int, committed: bool, partitions: list[int]) -> None:
        body = {"producer_id": producer_id, "committed": committed, "partitions": partitions}
        world.append([event(EventKind.TRANSACTION_COMPLETED, body)])

    settled = world.transactions.settled
    markers = TxnMarkers(world.leader, settled, completed, lambda: world.time.now_ms)
    partitions = [world.groups.partition_of(GROUP)]
    marker = {
        "producer_id": producer_id,
        "producer_epoch": 1,
        "coordinator_epoch": 0,
        "transaction_result": True,
        "topics": [{"name": GROUP_TOPIC, "partition_indexes": partitions}],
    }
    header = RequestHeader(ApiKey.WRITE_TXN_MARKERS, 1, 1, "broker")
    listener = BoundListener("INTERNAL", "127.0.0.1", 0)
    answer = await markers.handle(Call(header, {"markers": [marker]}, listener, b"", STRANGER))
    (topic,) = answer["markers"][0]["topics"]
    assert [one["error_code"] for one in topic["partitions"]] == [0]
