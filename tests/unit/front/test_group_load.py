"""The load that coordinators are measured with, against the front's group coordination."""

from __future__ import annotations

import asyncio

from tests.bench.groups import frames
from tests.bench.groups.members import Population
from tests.bench.groups.wire import Wire
from tests.unit.front.group_world import coordinating

GROUPS, MEMBERS, PARTITIONS = 3, 4, 20


def load(port: int) -> None:
    wire = Wire(("127.0.0.1", port))
    try:
        population = Population(wire, "g", GROUPS, MEMBERS)
        assert min(population.form()) > 0
        for _ in range(2):
            assert len(population.rejoin()) == GROUPS
        requests = population.heartbeats()
        assert len(set(requests)) == GROUPS * MEMBERS
        assert len(wire.flood(requests, frames.is_heard, 5, 0.0)) == 5
        commits = population.commits(PARTITIONS)

        def is_good(answer: bytes) -> bool:
            return frames.is_committed(answer, PARTITIONS)

        assert len(wire.flood(commits, is_good, GROUPS * MEMBERS, 0.0)) == GROUPS * MEMBERS
    finally:
        wire.close()


def test_members_form_groups_rejoin_heartbeat_and_commit() -> None:
    async def scenario() -> None:
        async with coordinating() as (world, rig):
            world.cluster.create(frames.TOPIC, [[1, 2]] * PARTITIONS)
            world.look()
            await asyncio.to_thread(load, rig.port())
            groups = world.groups.image.groups
            assert len(groups) == GROUPS
            for view in groups.values():
                assert (view.state, len(view.members)) == ("Stable", MEMBERS)
                assert len(view.offsets) == PARTITIONS
            joins = world.payloads("join_group_requested")
            rejoined = [
                one for one in joins if one["member"] and one["protocols"] != joins[0]["protocols"]
            ]
            assert len(rejoined) == 2 * GROUPS * MEMBERS, "one JoinGroup for each member"

    asyncio.run(scenario())
