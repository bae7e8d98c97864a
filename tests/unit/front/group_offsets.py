"""The offsets of a group as the machine has them, as they are answered, and as a broker would load
them.
"""

from __future__ import annotations

import asyncio

from state.groups.buckets import group_bucket
from state.groups.load import LoadedPartition
from state.groups.offset_rows import OffsetRow, read_rows
from state.topic_partition import TopicPartition
from streaming.offsets.loading import fold_records
from tests.unit.front.group_requests import GROUP
from tests.unit.front.group_world import GroupWorld


def decided(world: GroupWorld) -> dict[TopicPartition, OffsetRow]:
    """The offsets that the machine has."""
    group = world.machine.bucket(group_bucket(GROUP)).get(GROUP)
    return {} if group is None else dict(group.store.rows)


def in_topic(world: GroupWorld) -> dict[TopicPartition, OffsetRow]:
    """The offsets that a broker would load."""
    log = world.leader.logs[world.groups.partition_of(GROUP)]
    loaded = LoadedPartition()
    assert fold_records(loaded, log.read(0, 1 << 30), log.end) == 0
    found = {one["group"]: one["offsets"] for one in loaded.observed(log.partition, log.epoch)}
    return read_rows(found.get(GROUP, []))


def image_of(world: GroupWorld) -> dict[TopicPartition, OffsetRow]:
    """The offsets that are answered."""
    view = world.groups.image.groups.get(GROUP)
    return {} if view is None else view.offsets


def values(rows: dict[TopicPartition, OffsetRow]) -> dict[TopicPartition, tuple[object, ...]]:
    """Rows without their positions."""
    return {at: row[:-1] for at, row in rows.items()}


async def all_gone(world: GroupWorld) -> None:
    """Wait until the offsets of all deleted topics are gone."""
    async with asyncio.timeout(10):
        while any(world.groups.known.excluded.values()):
            await asyncio.sleep(0.01)
            world.groups.batch_completed(len(world.events))
