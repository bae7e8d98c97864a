"""What is asked about several groups in one request."""

from __future__ import annotations

from typing import Any

import pytest

from state.protocol_errors import ProtocolError
from streaming.wire.apis import ApiKey
from tests.unit.front.group_requests import (
    GROUP,
    commit,
    in_transaction,
    member_of,
    play,
)
from tests.unit.front.group_world import GroupWorld
from tests.unit.gateway.support import Rig

OFFSETS = "offsets"
"""A group that only holds offsets."""


@pytest.mark.parametrize(
    ("version", "filters", "listed"),
    [
        (3, {}, {GROUP, OFFSETS}),
        (4, {"states_filter": []}, {GROUP, OFFSETS}),
        (4, {"states_filter": ["STABLE"]}, {GROUP}),
        (5, {"states_filter": ["empty"]}, {OFFSETS}),
        (5, {"states_filter": ["Stable", "Empty"]}, {GROUP, OFFSETS}),
        (5, {"states_filter": ["Nonsense"]}, set()),
        (5, {"types_filter": ["CLASSIC"]}, {GROUP, OFFSETS}),
        (5, {"types_filter": ["consumer", "nonsense"]}, set()),
        (5, {"states_filter": ["Empty"], "types_filter": ["classic"]}, {OFFSETS}),
        (5, {"states_filter": ["Empty"], "types_filter": ["consumer"]}, set()),
    ],
)
def test_groups_are_listed_by_state_and_type(
    version: int, filters: dict[str, list[str]], listed: set[str]
) -> None:
    """GroupCoordinator.handleListGroups."""

    async def scenario(world: GroupWorld, rig: Rig) -> None:
        client = await rig.client()
        await member_of(client)
        assert await commit(client, None, group=OFFSETS) == 0
        answer = await client.ask(ApiKey.LIST_GROUPS, version, filters)
        assert answer["error_code"] == 0
        assert {one["group_id"] for one in answer["groups"]} == listed

    play(scenario)


@pytest.mark.parametrize("version", [8, 9])
def test_offsets_of_several_groups_are_fetched_at_once(version: int) -> None:
    """Each group has its own error and its own partitions."""

    async def scenario(world: GroupWorld, rig: Rig) -> None:
        client = await rig.client()
        joined = await member_of(client)
        assert await commit(client, joined, offset=5) == 0
        assert await commit(client, None, offset=6, group=OFFSETS) == 0
        await client.ask(ApiKey.TXN_OFFSET_COMMIT, 4, in_transaction() | {"group_id": "open"})
        asked: list[dict[str, Any]] = [
            {"group_id": OFFSETS, "topics": None},
            {"group_id": "open", "topics": [{"name": "t", "partition_indexes": [0, 1]}]},
            {"group_id": "nobody", "topics": None},
            {"group_id": GROUP, "topics": [{"name": "t", "partition_indexes": [0]}]},
        ]
        body = {"groups": asked, "require_stable": True}
        answer = await client.ask(ApiKey.OFFSET_FETCH, version, body)
        assert [one["error_code"] for one in answer["groups"]] == [0] * 4
        unstable = ProtocolError.UNSTABLE_OFFSET_COMMIT
        assert [_told(one) for one in answer["groups"]] == [
            (OFFSETS, [("t", 0, 6, 0)]),
            ("open", [("t", 0, -1, unstable), ("t", 1, -1, 0)]),
            ("nobody", []),
            (GROUP, [("t", 0, 5, 0)]),
        ]
        world.groups.resigned()
        answer = await client.ask(ApiKey.OFFSET_FETCH, version, body)
        loading = ProtocolError.COORDINATOR_LOAD_IN_PROGRESS
        assert [(one["error_code"], one["topics"]) for one in answer["groups"]] == [
            (loading, [])
        ] * 4

    play(scenario)


def _told(group: dict[str, Any]) -> tuple[str, list[tuple[str, int, int, int]]]:
    """Return a group and its partitions: topic, number, offset, error."""
    return group["group_id"], [
        (topic["name"], one["partition_index"], one["committed_offset"], one["error_code"])
        for topic in group["topics"]
        for one in topic["partitions"]
    ]
