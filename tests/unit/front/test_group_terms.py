"""What groups wait for, what they are told meanwhile, and what ends a term."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from state.groups.tables import CoordinatorPhase
from state.protocol_errors import ProtocolError
from streaming.gateway.ports import DecisionTimedOut
from streaming.internal_topics import GROUP_TOPIC
from streaming.wire.apis import ApiKey
from streaming.wire.responses import decode_response
from tests.fixtures.waiting import wait_on_loop
from tests.unit.front.group_requests import (
    GROUP,
    commit,
    commit_body,
    fetched,
    heartbeat,
    join,
    joining,
    member_of,
    play,
    sync,
)
from tests.unit.front.group_world import PARTITIONS, GroupWorld
from tests.unit.gateway.answering_broker import AnsweringBroker, brokers
from tests.unit.gateway.support import NODE_ID, Rig

OLD = 5
"""A version of OffsetCommit that is always decided."""


def test_nobody_hears_of_a_commit_that_not_all_brokers_in_sync_have() -> None:
    async def scenario(world: GroupWorld, rig: Rig) -> None:
        client, other = await rig.client(), await rig.client()
        world.following = False
        client.write(ApiKey.OFFSET_COMMIT, 9, commit_body(None))
        await wait_on_loop("a commit", lambda: world.payloads("offset_commit_requested"))
        found = await fetched(other, require_stable=True)
        assert found["error_code"] == ProtocolError.UNSTABLE_OFFSET_COMMIT
        assert (await fetched(other))["committed_offset"] == -1
        world.follow()
        await client.read_frame()
        assert (await fetched(other))["committed_offset"] == 7

    play(scenario)


def test_a_repeated_join_is_answered_and_the_one_before_too() -> None:
    """The later request takes the place of the earlier one."""

    async def scenario(world: GroupWorld, rig: Rig) -> None:
        first, second, again = [await rig.client() for _ in range(3)]
        joined = await member_of(first)
        required = await second.ask(ApiKey.JOIN_GROUP, 9, joining())
        new = required["member_id"]
        second.write(ApiKey.JOIN_GROUP, 9, joining(new))
        async with asyncio.timeout(10):
            while await heartbeat(first, joined) != ProtocolError.REBALANCE_IN_PROGRESS:
                await asyncio.sleep(0.01)
        again.write(ApiKey.JOIN_GROUP, 9, joining(new))
        await wait_on_loop(
            "the JoinGroups", lambda: len(world.payloads("join_group_requested")) >= 5
        )
        rejoined = await join(first, member=joined["member_id"])
        assert rejoined["generation_id"] == joined["generation_id"] + 1
        assert len(rejoined["members"]) == 2
        frames = [await second.read_frame(), await again.read_frame()]
        answers = [decode_response(ApiKey.JOIN_GROUP, 9, one)[1] for one in frames]
        errors = [answer["error_code"] for answer in answers]
        assert errors == [ProtocolError.COORDINATOR_LOAD_IN_PROGRESS, ProtocolError.NONE]

    play(scenario)


def test_a_member_gets_its_id_before_that_is_decided() -> None:
    async def scenario(world: GroupWorld, rig: Rig) -> None:
        client = await rig.client()
        world.held = []
        answer = await client.ask(ApiKey.JOIN_GROUP, 9, joining())
        assert answer["error_code"] == ProtocolError.MEMBER_ID_REQUIRED
        member = answer["member_id"]
        (asked,) = world.payloads("join_group_requested")
        assert asked["new_member"] == member
        asking = asyncio.create_task(join(client, member=member))
        await wait_on_loop(
            "the JoinGroups", lambda: len(world.payloads("join_group_requested")) >= 2
        )
        world.release()
        joined = await asking
        assert (joined["error_code"], joined["member_id"]) == (0, member)

    play(scenario)


@pytest.mark.parametrize(
    ("size", "error"),
    [
        (1, ProtocolError.GROUP_MAX_SIZE_REACHED),
        (2, ProtocolError.INCONSISTENT_GROUP_PROTOCOL),
    ],
)
def test_what_is_wrong_with_a_new_member_is_told_when_it_comes_with_its_id(
    size: int, error: ProtocolError
) -> None:
    async def scenario(world: GroupWorld, rig: Rig) -> None:
        client, other = await rig.client(), await rig.client()
        await member_of(client)
        body = joining() | {"protocol_type": "connect"}
        answer = await other.ask(ApiKey.JOIN_GROUP, 9, body)
        assert answer["error_code"] == ProtocolError.MEMBER_ID_REQUIRED
        answer = await other.ask(ApiKey.JOIN_GROUP, 9, body | {"member_id": answer["member_id"]})
        assert answer["error_code"] == error

    play(scenario, f"group.max.size={size}")


def test_a_member_hears_at_once_that_it_has_to_rejoin() -> None:
    async def scenario(world: GroupWorld, rig: Rig) -> None:
        client, other = await rig.client(), await rig.client()
        joined = await member_of(client)
        asking = asyncio.create_task(join(other))
        async with asyncio.timeout(10):
            while await heartbeat(client, joined) != ProtocolError.REBALANCE_IN_PROGRESS:
                await asyncio.sleep(0.01)
        asked = len(world.payloads("sync_group_requested"))
        answer = await sync(client, joined)
        assert answer["error_code"] == ProtocolError.REBALANCE_IN_PROGRESS
        assert len(world.payloads("sync_group_requested")) == asked
        stale = await sync(client, joined | {"generation_id": 9})
        assert stale["error_code"] == ProtocolError.ILLEGAL_GENERATION
        again = await join(client, member=joined["member_id"])
        assert again["generation_id"] == joined["generation_id"] + 1
        assert (await asking)["error_code"] == 0

    play(scenario)


def test_while_groups_load_clients_are_told_to_wait() -> None:
    async def scenario(world: GroupWorld, rig: Rig) -> None:
        client = await rig.client()
        joined = await member_of(client)
        client.write(ApiKey.JOIN_GROUP, 9, joining(joined["member_id"]))
        await client.read_frame()
        world.groups.resigned()
        assert set(world.groups.phases()) == {CoordinatorPhase.LOADING}
        assert await commit(client, joined) == ProtocolError.COORDINATOR_LOAD_IN_PROGRESS
        assert await heartbeat(client, joined) == 0
        world.cluster.controller = False
        assert await commit(client, joined) == ProtocolError.NOT_COORDINATOR
        assert await heartbeat(client, joined) == ProtocolError.NOT_COORDINATOR

    play(scenario)


@pytest.mark.parametrize("version", [1, 7, 9])
def test_who_asks_another_nodes_groups_for_offsets_is_hung_up_on(version: int) -> None:
    """Who is told that they are another node's may never ask again."""

    async def scenario(world: GroupWorld, rig: Rig) -> None:
        client = await rig.client()
        await member_of(client)
        world.groups.role_lost()
        world.cluster.controller = False
        with pytest.raises(EOFError):
            await fetched(client, version)
        assert rig.gateway.counters["closed_refused"] == 1

    play(scenario)


def test_a_commit_that_waits_is_answered_when_the_role_is_lost() -> None:
    async def scenario(world: GroupWorld, rig: Rig) -> None:
        client = await rig.client()
        world.following = False
        asking = asyncio.create_task(commit(client, None))
        await wait_on_loop("a commit", lambda: world.payloads("offset_commit_requested"))
        world.groups.role_lost()
        assert await asking == ProtocolError.NOT_COORDINATOR

    play(scenario)


def test_nobody_waits_for_a_job_that_is_away() -> None:
    """Heartbeats stand behind a commit of the same client: its session must not end of that."""

    async def scenario(world: GroupWorld, rig: Rig) -> None:
        client, other = await rig.client(), await rig.client()
        joined = await member_of(client)
        world.following = False
        asking = asyncio.create_task(commit(client, joined, version=OLD))
        await wait_on_loop("a commit", lambda: world.payloads("offset_commit_requested"))
        world.has_job = False
        world.groups.job_gone()
        assert await asking == ProtocolError.COORDINATOR_LOAD_IN_PROGRESS
        events = len(world.events)
        assert await commit(client, joined) == ProtocolError.COORDINATOR_LOAD_IN_PROGRESS
        answer = await join(other)
        assert answer["error_code"] == ProtocolError.COORDINATOR_LOAD_IN_PROGRESS
        assert await heartbeat(client, joined) == 0
        assert (await fetched(client))["error_code"] == 0, "what is known is answered"
        assert len(world.events) == events

    play(scenario)


def test_what_is_not_decided_in_time_is_to_be_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    def late(*_: object) -> asyncio.Future[dict[str, Any]]:
        reply: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        reply.set_exception(DecisionTimedOut())
        return reply

    async def scenario(world: GroupWorld, rig: Rig) -> None:
        client = await rig.client()
        joined = await member_of(client)
        for name in ("submit", "ask"):
            monkeypatch.setattr(world.groups, name, late)
        assert await commit(client, joined, version=OLD) == ProtocolError.REQUEST_TIMED_OUT
        answer = await join(client, member=joined["member_id"])
        assert answer["error_code"] == ProtocolError.COORDINATOR_NOT_AVAILABLE

    play(scenario)


def test_what_was_decided_before_a_take_over_is_not_appended_after_it() -> None:
    """A batch that a killed job left behind is run again when partitions are taken over anew."""

    async def scenario(world: GroupWorld, rig: Rig) -> None:
        client = await rig.client()
        world.held = []
        asking = asyncio.create_task(commit(client, None))
        await wait_on_loop("a decision", lambda: world.held)
        late = list(world.held)
        world.held = None
        world.groups.resigned()
        assert await asking == ProtocolError.NOT_COORDINATOR
        world.groups.elected({one: log.epoch for one, log in world.leader.logs.items()})
        await asyncio.sleep(0)
        ends = {one: log.end for one, log in world.leader.logs.items()}
        world.groups.decisions.apply(late)
        assert {one: log.end for one, log in world.leader.logs.items()} == ends
        assert GROUP not in world.groups.image.groups

    play(scenario)


def test_members_of_one_group_too_many_are_refused() -> None:
    async def scenario(world: GroupWorld, rig: Rig) -> None:
        client = await rig.client()
        joined = await member_of(client)
        refused = await join(client, group="another")
        assert refused["error_code"] == ProtocolError.GROUP_MAX_SIZE_REACHED
        again = await join(client, member=joined["member_id"])
        assert again["error_code"] == 0, "those that are there go on"

    play(scenario, "groups.max=1")


@pytest.mark.parametrize("version", [OLD, 9])
def test_commits_begin_no_group_too_many(version: int) -> None:
    async def scenario(world: GroupWorld, rig: Rig) -> None:
        client = await rig.client()
        topics = commit_body(None)["topics"]
        assert await commit(client, None, version=version) == 0
        assert await commit(client, None, 8, version) == 0, "those that are there go on"
        one_more = commit_body(None) | {"group_id": "another"}
        answer = await client.ask(ApiKey.OFFSET_COMMIT, version, one_more)
        refused = ProtocolError.COORDINATOR_NOT_AVAILABLE
        assert answer["topics"][0]["partitions"][0]["error_code"] == refused
        who = {"group_id": "another", "transactional_id": "x", "producer_id": 9}
        body = who | {"producer_epoch": 1, "generation_id": -1, "topics": topics}
        answer = await client.ask(ApiKey.TXN_OFFSET_COMMIT, 4, body)
        assert answer["topics"][0]["partitions"][0]["error_code"] == refused
        stale = one_more | {"generation_id_or_member_epoch": 3, "member_id": "m"}
        answer = await client.ask(ApiKey.OFFSET_COMMIT, version, stale)
        error = answer["topics"][0]["partitions"][0]["error_code"]
        assert error == ProtocolError.ILLEGAL_GENERATION, "that would begin none"
        assert world.groups.image.groups.keys() == {GROUP}

    play(scenario, "groups.max=1")


def test_a_group_without_a_name_is_refused() -> None:
    async def scenario(world: GroupWorld, rig: Rig) -> None:
        client = await rig.client()
        answer = await join(client, group="")
        assert answer["error_code"] == ProtocolError.INVALID_GROUP_ID

    play(scenario)


@pytest.mark.parametrize("version", range(7))
def test_this_node_is_found_as_coordinator(version: int) -> None:
    async def scenario(world: GroupWorld, rig: Rig) -> None:
        client = await rig.client()
        body = {"key": GROUP, "key_type": 0, "coordinator_keys": [GROUP, "h"]}
        answer = await client.ask(ApiKey.FIND_COORDINATOR, version, body)
        found = answer["coordinators"] if version >= 4 else [answer]
        assert {(one["error_code"], one["node_id"]) for one in found} == {(0, NODE_ID)}

    play(scenario)


@pytest.mark.parametrize("version", [0, 6, 12])
@pytest.mark.parametrize("named", [True, False], ids=["by name", "with all topics"])
def test_clients_are_told_the_leader_that_brokers_are_told(version: int, named: bool) -> None:
    """Who reads the topic asks brokers and this node in turn."""

    async def scenario(world: GroupWorld, rig: Rig) -> None:
        world.cluster.create("other", [[1, 2, 3]])
        name = {"name": GROUP_TOPIC, "topic_id": None}
        everything = [] if version == 0 else None
        body = {"topics": [name] if named else everything}
        answer = await rig.ask(ApiKey.METADATA, version, body)
        led = {one["name"]: one["partitions"] for one in answer["topics"]}
        ours = {one["partition_index"]: one for one in led[GROUP_TOPIC]}
        assert {one["leader_id"] for one in ours.values()} == {NODE_ID}
        if version >= 7:
            told = {number: one["leader_epoch"] for number, one in ours.items()}
            assert told == {log.partition: log.epoch for log in world.leader.logs.values()}
        assert named or led["other"][0]["leader_id"] == 1

    play(scenario)


@pytest.mark.parametrize("missing", range(PARTITIONS))
def test_groups_keep_their_partition_while_another_one_has_no_state(missing: int) -> None:
    async def scenario(world: GroupWorld, rig: Rig) -> None:
        names = [f"group {number}" for number in range(20)]
        before = [world.groups.partition_of(name) for name in names]
        assert set(before) == set(range(PARTITIONS))
        world.cluster.assigned[GROUP_TOPIC] = PARTITIONS
        world.cluster.known.forget_partition(GROUP_TOPIC, missing)
        world.look()
        assert missing not in world.leader.facts
        assert [world.groups.partition_of(name) for name in names] == before

    play(scenario)


@pytest.mark.parametrize("lost", [{"controller": False}, {"overtaken": True}])
def test_groups_have_no_coordinator_while_we_may_not_be_it(lost: dict[str, bool]) -> None:
    async def scenario(world: GroupWorld, rig: Rig) -> None:
        asked: list[bytes] = []

        async def answer(request: bytes) -> bytes:
            asked.append(request)
            return request

        async with brokers(rig, AnsweringBroker(1, answer=answer)):
            vars(rig.cluster).update(lost)
            found = await rig.ask(ApiKey.FIND_COORDINATOR, 0, {"key": GROUP})
        assert found["error_code"] == ProtocolError.COORDINATOR_NOT_AVAILABLE
        assert not asked, "brokers would name who led before"

    play(scenario)


def test_decisions_that_come_before_it_is_known_which_count_are_kept() -> None:
    async def scenario(world: GroupWorld, rig: Rig) -> None:
        client = await rig.client()
        decisions, term = world.groups.decisions, world.groups.decisions.hold_back()
        asking = asyncio.create_task(commit(client, None))
        await wait_on_loop("a commit", lambda: world.payloads("offset_commit_requested"))
        body = {"key_type": 0, "coordinator_keys": [GROUP]}
        await (await rig.client()).ask(ApiKey.FIND_COORDINATOR, 4, body)
        assert not asking.done(), "another request was answered meanwhile"
        decisions.taken_over(term - 1, [0], 0)
        assert not asking.done(), "that was another term"
        decisions.taken_over(term, [], 0)
        world.follow()
        assert await asking == 0

    play(scenario)
