"""Sessions of members, which the front keeps: what the log hears of heartbeats, and when."""

from __future__ import annotations

import asyncio

import orjson
import pytest

from state.groups.buckets import group_bucket
from state.groups.tables import CoordinatorPhase
from state.protocol_errors import ProtocolError
from streaming.wire.apis import ApiKey
from tests.fixtures.waiting import wait_on_loop
from tests.unit.front.group_members import Member, alone, pair, until_told_to_rejoin
from tests.unit.front.group_requests import GROUP, commit, joining, play
from tests.unit.front.group_world import GroupWorld
from tests.unit.gateway.support import Rig

SESSION_MS = 10_000
LEFT_OVER_MS = 400_000
"""After that no timer of a rebalance is left at the clock."""
BUCKET = group_bucket(GROUP)
NEIGHBOUR = next(name for name in (f"g{n}" for n in range(10**6)) if group_bucket(name) == BUCKET)


async def idle(world: GroupWorld, ms: int, *heard: Member) -> None:
    """Let time pass in which some members send a heartbeat each third of a session."""
    end_ms = world.time.now_ms + ms
    while world.time.now_ms < end_ms:
        for one in heard:
            assert await one.beat() == 0
        world.pass_ms(min(SESSION_MS // 3, end_ms - world.time.now_ms))


def removals(world: GroupWorld) -> list[tuple[str, str, int]]:
    """Return (member, reason, when) of the members that were removed, in order."""
    return [
        (change["member"], change["reason"], change["at_ms"])
        for body in world.decided
        for step in orjson.loads(body)["steps"]
        for change in step["changes"]
        if change["change"] == "member_removed"
    ]


def test_nothing_is_appended_while_all_members_are_heard_from() -> None:
    async def scenario(world: GroupWorld, rig: Rig) -> None:
        members = [await alone(rig), await alone(rig, NEIGHBOUR), await alone(rig, "elsewhere")]
        await idle(world, LEFT_OVER_MS, *members)
        appended = len(world.events)
        await idle(world, 10 * SESSION_MS, *members)
        assert len(world.events) == appended
        assert removals(world) == []

    play(scenario)


def test_a_silent_member_goes_at_the_end_of_its_session_and_its_neighbours_stay() -> None:
    async def scenario(world: GroupWorld, rig: Rig) -> None:
        one, silent = await pair(rig)
        neighbour = await alone(rig, NEIGHBOUR)
        await idle(world, LEFT_OVER_MS, one, silent, neighbour)
        appended = len(world.events)
        heard_ms = world.time.now_ms
        assert await silent.beat() == 0
        await idle(world, SESSION_MS - 1, one, neighbour)
        assert len(world.events) == appended
        world.pass_ms(1_000)
        assert removals(world) == [(silent.id, "session_expired", heard_ms + SESSION_MS)]
        kinds = [event.kind for event in world.events[appended:]]
        assert kinds == ["heartbeats_received", "group_timer_due"]
        [heartbeats] = world.payloads("heartbeats_received")[-1:]
        assert {row[1] for row in heartbeats["heartbeats"]} == {one.id, silent.id, neighbour.id}
        await until_told_to_rejoin(one)
        assert await neighbour.beat() == 0
        async with asyncio.timeout(20):
            while await silent.beat() != ProtocolError.UNKNOWN_MEMBER_ID:
                await asyncio.sleep(0)

    play(scenario)


def test_a_commit_is_as_good_as_a_heartbeat() -> None:
    async def scenario(world: GroupWorld, rig: Rig) -> None:
        one = await alone(rig)
        for _ in range(5):
            world.pass_ms(SESSION_MS - 100)
            joined = {"member_id": one.id, "generation_id": one.generation}
            assert await commit(one.client, joined) == 0
        assert removals(world) == []

    play(scenario)


@pytest.mark.parametrize("kind", ["offsets_expiration_due", "group_timer_due"])
def test_no_event_of_the_bucket_ends_the_session_of_a_member_that_was_heard_from(kind: str) -> None:
    async def scenario(world: GroupWorld, rig: Rig) -> None:
        one = await alone(rig)
        await idle(world, 5 * SESSION_MS - 100, one)
        world.happen(kind, BUCKET)
        assert removals(world) == []
        assert world.payloads("heartbeats_received")
        before = len(world.events)
        world.happen(kind, BUCKET)
        assert len(world.events) == before + 1, "it is reported once"

    play(scenario)


def test_a_rebalance_that_ends_does_not_end_sessions_of_members_that_were_heard_from() -> None:
    """A static member that does not rejoin stays while it is heard from; its neighbour too."""

    async def scenario(world: GroupWorld, rig: Rig) -> None:
        still = Member(await rig.client())
        await still.join(instance="i")
        await still.sync()
        neighbour = await alone(rig, NEIGHBOUR)
        await idle(world, LEFT_OVER_MS, still, neighbour)
        other = Member(await rig.client())
        joins = asyncio.create_task(other.join())
        async with asyncio.timeout(20):
            while await still.beat() != ProtocolError.REBALANCE_IN_PROGRESS:
                await asyncio.sleep(0)
        for _ in range(6):
            world.pass_ms(2_000)
            await still.beat()
            await neighbour.beat()
        await joins
        assert removals(world) == []

    play(scenario)


def test_a_member_that_waits_is_not_silent() -> None:
    async def scenario(world: GroupWorld, rig: Rig) -> None:
        one, other = await alone(rig), Member(await rig.client())
        joins = asyncio.create_task(other.join(rebalance_timeout_ms=45_000))
        await until_told_to_rejoin(one)
        world.pass_ms(9_000)
        rejoins = asyncio.create_task(one.join(rebalance_timeout_ms=45_000))
        await asyncio.gather(joins, rejoins)
        syncs = asyncio.create_task(other.sync())
        await wait_on_loop("a request", lambda: world.groups.waiting, poll_s=0)
        await idle(world, 4 * SESSION_MS, one)
        assert removals(world) == []
        await one.sync()
        await syncs

    play(scenario)


def test_silence_is_reported_once_in_a_session() -> None:
    """The decision that the member is gone may take its time."""

    async def scenario(world: GroupWorld, rig: Rig) -> None:
        one = await alone(rig)
        await idle(world, LEFT_OVER_MS, one)
        world.held = []
        appended = len(world.events)
        world.pass_ms(SESSION_MS + 500)
        assert [event.kind for event in world.events[appended:]].count("group_timer_due") == 1
        world.pass_ms(SESSION_MS - 1_000)
        assert [event.kind for event in world.events[appended:]].count("group_timer_due") == 1
        world.pass_ms(1_000)
        assert [event.kind for event in world.events[appended:]].count("group_timer_due") == 2
        assert [member for member, _, _ in removals(world)] == [one.id]

    play(scenario)


def test_nobody_goes_who_waits_for_a_generation_that_is_decided_late() -> None:
    """The front tells of them with the generation before: it knows no other."""

    async def scenario(world: GroupWorld, rig: Rig) -> None:
        one, other = await alone(rig), Member(await rig.client())
        joins = asyncio.create_task(other.join(rebalance_timeout_ms=60_000))
        await until_told_to_rejoin(one)
        world.held = []
        rejoins = asyncio.create_task(one.join(rebalance_timeout_ms=60_000))
        await wait_on_loop(
            "a generation", lambda: b"generation_started" in world.decided[-1], poll_s=0
        )
        world.pass_ms(SESSION_MS - 500)
        world.happen("offsets_expiration_due", BUCKET)
        told = world.payloads("heartbeats_received")[-1]["heartbeats"]
        assert [row[3:] for row in told] == [[1, 0], [1, 0]], "both wait"
        world.pass_ms(1_000)
        world.happen("offsets_expiration_due", BUCKET)
        assert removals(world) == []
        world.release()
        await asyncio.gather(joins, rejoins)
        assert (one.generation, other.generation) == (2, 2)

    play(scenario)


async def joins_decided_late(world: GroupWorld, rig: Rig, instance: str | None) -> Member:
    """Let a member join without an id, and events pass until its generation is known."""
    world.held = []
    one = Member(await rig.client())
    joins = asyncio.create_task(one.join(instance=instance, rebalance_timeout_ms=60_000))
    kinds = (b"generation_started", b"member_replaced")
    await wait_on_loop(
        "a session",
        lambda: any(kind in body for body in world.decided[-1:] for kind in kinds),
        poll_s=0,
    )
    for passed_ms in (SESSION_MS + 500, SESSION_MS // 2, SESSION_MS // 2):
        world.pass_ms(passed_ms)
        world.happen("offsets_expiration_due", BUCKET)
    assert removals(world) == []
    world.release()
    await joins
    return one


def test_a_new_member_stays_whose_generation_is_decided_late() -> None:
    async def scenario(world: GroupWorld, rig: Rig) -> None:
        one = await joins_decided_late(world, rig, None)
        assert await one.beat() == 0

    play(scenario)


def test_a_static_member_stays_whose_new_id_is_decided_late() -> None:
    """A process that still has the old id keeps nobody."""

    async def scenario(world: GroupWorld, rig: Rig) -> None:
        old = Member(await rig.client())
        await old.join(instance="i")
        await old.sync()
        one = await joins_decided_late(world, rig, "i")
        assert (one.generation, await one.beat()) == (1, 0)
        for _ in range(4):
            assert await old.beat() == ProtocolError.UNKNOWN_MEMBER_ID
            world.pass_ms(SESSION_MS // 3)
        assert [member for member, _, _ in removals(world)] == [one.id]

    play(scenario)


def test_a_static_member_stays_that_comes_back_with_a_longer_session() -> None:
    """Its first session still has the length of the old one."""

    async def scenario(world: GroupWorld, rig: Rig) -> None:
        old, one = Member(await rig.client()), Member(await rig.client())
        await old.join(instance="i", session_timeout_ms=SESSION_MS)
        await old.sync()
        await one.join(instance="i", session_timeout_ms=SESSION_MS * 5)
        await idle(world, SESSION_MS + 1_000, one)
        world.happen("offsets_expiration_due", BUCKET)
        assert removals(world) == []

    play(scenario)


def test_a_session_that_is_shorter_than_allowed_is_not_kept() -> None:
    """The machine refuses who asks for it, so there is nothing to report to it."""

    async def scenario(world: GroupWorld, rig: Rig) -> None:
        body = joining() | {"session_timeout_ms": -5}
        answer = await (await rig.client()).ask(ApiKey.JOIN_GROUP, 3, body)
        assert answer["error_code"] == ProtocolError.INVALID_SESSION_TIMEOUT
        kinds = [event.kind for event in world.events]
        assert "join_group_requested" in kinds
        assert "heartbeats_received" not in kinds

    play(scenario)


def test_what_was_sent_before_silence_is_reported_counts() -> None:
    async def scenario(world: GroupWorld, rig: Rig) -> None:
        one = await alone(rig)
        await idle(world, LEFT_OVER_MS, one)
        appended = len(world.events)
        world.time.turns = lambda: world.sessions.heard(GROUP, one.id)  # it was not read yet
        world.pass_ms(SESSION_MS + 500)
        assert len(world.events) == appended

    play(scenario)


def test_last_heard_times_are_kept_while_the_job_is_away() -> None:
    async def scenario(world: GroupWorld, rig: Rig) -> None:
        one, silent = await alone(rig), await alone(rig, NEIGHBOUR)
        await idle(world, LEFT_OVER_MS, one, silent)
        appended = len(world.events)
        world.has_job = False
        await idle(world, 3 * SESSION_MS, one)
        assert len(world.events) == appended, "nobody decides it"
        world.has_job = True
        await idle(world, 2 * SESSION_MS, one)
        assert [member for member, _, _ in removals(world)] == [silent.id]

    play(scenario)


def test_sessions_begin_when_groups_are_loaded() -> None:
    """Even where last-heard times are not known, as after a restart of the front."""

    async def scenario(world: GroupWorld, rig: Rig) -> None:
        one = await alone(rig)
        await idle(world, LEFT_OVER_MS, one)
        world.sessions.forget()
        world.pass_ms(3 * SESSION_MS)
        world.groups.resigned()
        world.leader.stop()
        loaded = {
            "generation": one.generation,
            "protocol_type": "consumer",
            "protocol": "range",
            "leader": one.id,
            "state_since_ms": None,
            "members": [
                {
                    "member": one.id,
                    "instance": None,
                    "client": "c",
                    "host": "/h",
                    "session_timeout_ms": SESSION_MS,
                    "rebalance_timeout_ms": SESSION_MS,
                    "metadata": "AAEC",
                    "assignment": "AAEC",
                }
            ],
        }
        await world.take_over({GROUP: loaded})
        assert removals(world) == []
        begun_ms = world.time.now_ms
        appended = len(world.events)
        world.pass_ms(SESSION_MS - 1)
        assert await one.beat() == 0
        world.pass_ms(SESSION_MS - 1)
        assert len(world.events) == appended
        world.pass_ms(1_000)
        ended_ms = begun_ms + 2 * SESSION_MS - 1
        assert removals(world) == [(one.id, "session_expired", ended_ms)]
        assert set(world.groups.phases()) == {CoordinatorPhase.OWNED}

    play(scenario)
