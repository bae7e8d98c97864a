"""Leaders are answered before those who follow; nobody is left out."""

from __future__ import annotations

import asyncio
from typing import Any

from state.protocol_errors import ProtocolError
from streaming.front.groups import replies
from streaming.front.groups.replies import GroupReplies
from tests.fixtures.waiting import wait_on_loop
from tests.unit.front.group_members import Member, alone, until_told_to_rejoin
from tests.unit.front.group_requests import play
from tests.unit.front.group_world import GroupWorld
from tests.unit.gateway.support import Rig


def of_generation(group: int, members: int) -> list[dict[str, Any]]:
    """Return the replies to the JoinGroups of a group; its last member leads."""
    ids = [f"{group}-{number}" for number in range(members)]
    rows = [[one, None, ""] for one in ids]
    return [{"request_id": one, "members": rows if one == ids[-1] else []} for one in ids]


def test_leaders_of_all_groups_are_answered_first_and_each_reply_is_given_once() -> None:
    async def scenario() -> None:
        given: list[str] = []
        order = GroupReplies(lambda some: given.extend(one["request_id"] for one in some))
        for group in range(10):
            order.answer(of_generation(group, 5))
        order.answer([{"request_id": "sync", "assignment": ""}])
        first = [f"{group}-4" for group in range(10)] + ["sync"]
        assert given == first
        await asyncio.sleep(0)
        assert len(given) == len(first) + replies._PER_TURN
        order.answer([*of_generation(10, 2), {"request_id": "left", "members": [["m", None, 0]]}])
        assert given[-2:] == ["10-1", "left"]
        await wait_on_loop("all", lambda: len(given) >= 54, poll_s=0)
        others = [f"{group}-{number}" for group in range(10) for number in range(4)]
        late = ("10-1", "left")
        assert [one for one in given if one not in late] == [*first, *others, "10-0"]

    asyncio.run(scenario())


def is_decided(held: list[tuple[int, bytes]], change: str) -> bool:
    """Return whether there is such a change in decisions that are held back."""
    return any(change.encode() in body for _, body in held)


def test_a_group_may_rebalance_again_before_all_are_answered() -> None:
    """What the others do then is what they do when their answers are on their way."""

    async def scenario(world: GroupWorld, rig: Rig) -> None:
        leader, follower, third = await alone(rig), *[Member(await rig.client()) for _ in "ab"]
        follows = asyncio.create_task(follower.join())
        await until_told_to_rejoin(leader)
        held: list[tuple[int, bytes]] = []
        world.held = held
        leads = asyncio.create_task(leader.join())
        await wait_on_loop("a generation", lambda: is_decided(held, "generation_started"))
        comes = asyncio.create_task(third.join())
        await wait_on_loop("a rebalance", lambda: is_decided(held, "rebalance_started"))
        world.release()
        await asyncio.gather(leads, follows)
        assert leader.generation == follower.generation == 2
        for one in (leader, follower):
            assert (await one.ask_sync())["error_code"] == ProtocolError.REBALANCE_IN_PROGRESS
        await asyncio.gather(leader.join(), follower.join(), comes)
        assert {one.generation for one in (leader, follower, third)} == {3}
        assert (world.groups.waiting, world.counters["late_replies"]) == (0, 0)

    play(scenario)
