"""What goes wrong about one group costs that group only; what fails of their part, the front."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import AsyncGenerator, Mapping
from pathlib import Path
from typing import Any

import orjson
import pytest

from state.protocol_errors import ProtocolError
from streaming.front.groups import coordination, direct_assignments
from streaming.front.groups import decisions as group_decisions
from streaming.offsets.batches import UnreadableBatch
from streaming.offsets.history import History
from streaming.offsets.take_over import TakeOver
from streaming.wire.apis import ApiKey
from streaming.wire.reading import STRING_BYTES_MAX
from tests.unit.front.front_figures import made_front
from tests.unit.front.group_requests import (
    GROUP,
    commit,
    fetched,
    join,
    joining,
    member_of,
    play,
    sync,
)
from tests.unit.front.group_world import GroupWorld
from tests.unit.gateway.support import Rig

UUID_BYTES = 36


def test_records_that_cannot_be_written_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who waits for them is told; the group goes on from there, the front all along."""

    def encode(group: str, record: Mapping[str, Any]) -> tuple[bytes, bytes | None]:
        raise struct.error("'h' format requires -32768 <= number <= 32767")

    async def scenario(world: GroupWorld, rig: Rig) -> None:
        client, other = await rig.client(), await rig.client()
        joined = await join(client)
        with monkeypatch.context() as broken:
            broken.setattr(group_decisions, "encode_record", encode)
            broken.setattr(direct_assignments, "encode_record", encode)
            answer = await sync(client, joined)
        assert answer["error_code"] == ProtocolError.UNKNOWN_SERVER_ERROR
        assert world.counters["unwritable_group_records"] == 1
        assert await commit(other, None, group="another") == 0
        again = await join(client, member=joined["member_id"])
        assert again["generation_id"] == joined["generation_id"] + 1
        assert (await sync(client, again))["assignment"] == b"mine"

    play(scenario)


def test_a_change_that_does_not_fit_is_passed_over() -> None:
    """What else the decision says holds, and so do those of other groups behind it."""

    async def scenario(world: GroupWorld, rig: Rig) -> None:
        client = await rig.client()
        await member_of(client)
        decided = world.groups.decisions
        offset = len(world.events)
        decided.apply([(offset, _not_fitting(world)), (offset + 1, _created(world, "another"))])
        assert world.counters["broken_group_changes"] == 1
        assert "another" in decided.image.groups
        assert (await fetched(client))["committed_offset"] == 12
        listed = await client.ask(ApiKey.LIST_GROUPS, 4, {"states_filter": []})
        assert {one["group_id"] for one in listed["groups"]} == {GROUP, "another"}

    play(scenario)


@pytest.mark.parametrize("version", [3, 5, 9])
def test_a_name_that_leaves_no_room_for_a_member_id_ends_its_connection(version: int) -> None:
    """The longest that does can join, and its id be told, written and read."""

    async def scenario(world: GroupWorld, rig: Rig) -> None:
        client = await rig.client()
        client.client_id = "c" * (STRING_BYTES_MAX - UUID_BYTES)
        client.write(ApiKey.JOIN_GROUP, version, joining())
        await client.wait_closed()
        assert not world.payloads("join_group_requested")
        client = await rig.client()
        client.client_id = "c" * (STRING_BYTES_MAX - UUID_BYTES - 1)
        await member_of(client, version)

    play(scenario)


def test_what_failed_keeps_nothing_from_being_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(_: TakeOver) -> None:
        raise RuntimeError("not foreseen")

    monkeypatch.setattr(TakeOver, "run", fail)

    async def scenario() -> None:
        front, log = made_front(tmp_path, "groups.takeover.enable=true")
        with log:
            failed = asyncio.get_running_loop().create_future()
            front._groups.start(failed.set_result)
            assert str(await failed) == "not foreseen"
            await front._groups.stop()
            assert asyncio.all_tasks() == {asyncio.current_task()}

    asyncio.run(scenario())


def _created(world: GroupWorld, group: str) -> bytes:
    return _decision(world, group, [{"change": "group_created", "at_ms": 0}])


def _not_fitting(world: GroupWorld) -> bytes:
    """A generation with somebody who is no member, and an offset."""
    generation = {
        "change": "generation_started",
        "at_ms": 0,
        "generation": 2,
        "protocol_type": "consumer",
        "protocol": "range",
        "leader": "nobody",
        "members": [["nobody", None, ""]],
    }
    row = ["t", 0, 12, -1, "", 0, None, len(world.events)]
    offsets = {"change": "offsets_committed", "at_ms": 0, "offsets": [row]}
    return _decision(world, GROUP, [generation, offsets])


def _decision(world: GroupWorld, group: str, changes: list[dict[str, Any]]) -> bytes:
    steps = [{"changes": changes, "replies": []}]
    partition = world.groups.partition_of(group)
    return orjson.dumps({"group": group, "partition": partition, "steps": steps})


def test_who_read_what_cannot_be_read_hears_of_it_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that another broker is asked when the partition is loaded again."""
    closed = []

    async def whole(history: History, partition: int, end: int) -> AsyncGenerator[bytes]:
        try:
            yield b"?"
        except GeneratorExit:
            closed.append(partition)
            raise

    def fold(*_: object) -> int:
        raise UnreadableBatch("batch at offset 3: magic 1")

    async def scenario(world: GroupWorld, rig: Rig) -> None:
        monkeypatch.setattr(History, "whole", whole)
        monkeypatch.setattr(coordination, "fold_records", fold)
        with pytest.raises(UnreadableBatch):
            await world.groups.load(1, 5)
        assert closed == [1]

    play(scenario)
