"""What consumers get of the partitions that this node leads."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from state.protocol_errors import ProtocolError
from streaming.internal_topics import GROUP_TOPIC
from streaming.offsets.consumer_reads import ANSWER_MAX_BYTES
from tests.unit.offsets.support import BATCH, FETCH_VERSION, OLDER, Led

NOT_LED = ProtocolError.NOT_LEADER_OR_FOLLOWER
EARLIEST, LATEST, LARGEST_TIMESTAMP = -2, -1, -3
COMMITTED = 1


class Reading(Led):
    """All brokers have ten records of partition 0."""

    def __init__(self) -> None:
        super().__init__()
        self.begin(10)

    async def fetch_of(self, *partitions: dict[str, Any], **body: Any) -> list[dict[str, Any]]:
        call = self.asked({"current_leader_epoch": -1}, body.pop("version", FETCH_VERSION), -1)
        (topic,) = call.body["topics"]
        (base,) = topic["partitions"]
        topic["partitions"] = [base | one for one in partitions]
        call.body.update({"max_bytes": 50_000_000, "isolation_level": 0, "max_wait_ms": 0} | body)
        (said,) = (await self.consumers.fetch(call))["responses"]
        return list(said["partitions"])

    async def read(self, offset: int, **partition: Any) -> dict[str, Any]:
        (said,) = await self.fetch_of({"fetch_offset": offset, **partition})
        return said

    async def offset(self, timestamp: int, isolation: int = 0, **partition: Any) -> dict[str, Any]:
        asked = {"partition_index": 0, "current_leader_epoch": -1, "timestamp": timestamp}
        call = self.asked({})
        topics = [{"name": GROUP_TOPIC, "partitions": [asked | partition]}]
        call.body.update({"isolation_level": isolation, "topics": topics})
        (topic,) = (await self.consumers.list_offsets(call))["topics"]
        (said,) = topic["partitions"]
        assert said.pop("partition_index") == asked["partition_index"]
        return dict(said)


def run(scenario: Callable[[Reading], Awaitable[None]]) -> None:
    async def play() -> None:
        await scenario(Reading())

    asyncio.run(play())


def test_what_is_safe_is_read_from_a_broker_in_sync() -> None:
    async def scenario(led: Reading) -> None:
        led.followers.records = BATCH
        (said,) = await led.fetch_of({"fetch_offset": 4}, isolation_level=COMMITTED)
        assert (said["error_code"], said["records"], said["high_watermark"]) == (0, BATCH, 10)
        assert (said["last_stable_offset"], said["log_start_offset"]) == (7, 1)
        assert led.followers.asked == [(0, 4, 1_000_000, COMMITTED)]
        led.followers.error = ProtocolError.OFFSET_OUT_OF_RANGE
        assert (await led.read(0))["error_code"] == ProtocolError.OFFSET_OUT_OF_RANGE, (
            "it was cleaned away"
        )

    run(scenario)


def test_what_is_not_safe_yet_is_waited_for() -> None:
    async def scenario(led: Reading) -> None:
        led.followers.records = BATCH
        led.leader.append(0, BATCH)
        asking = asyncio.create_task(led.fetch_of({"fetch_offset": 10}, max_wait_ms=60_000))
        await asyncio.sleep(0.01)
        assert not asking.done() and led.followers.asked == []
        for broker in (1, 2, 3):
            led.fetch(broker, 11)
        (said,) = await asking
        assert (said["records"], said["high_watermark"]) == (BATCH, 11)
        assert (await led.read(11))["records"] == b""
        assert (await led.read(12))["error_code"] == ProtocolError.OFFSET_OUT_OF_RANGE

    run(scenario)


def test_of_what_only_a_later_leader_can_have_the_client_asks_that_one() -> None:
    async def scenario(led: Reading) -> None:
        epoch = led.leader.logs[0].epoch
        assert (await led.read(12))["error_code"] == ProtocolError.OFFSET_OUT_OF_RANGE
        assert led.followers.asked == [(0, epoch)]
        led.followers.follow = False
        assert (await led.read(12))["error_code"] == NOT_LED
        led.followers.unreadable = True
        assert (await led.read(12))["error_code"] == NOT_LED
        asked = {"partition": 0, "current_leader_epoch": -1, "leader_epoch": epoch + 1}
        (topic,) = (
            await led.consumers.offsets_for_leader_epoch(led.asked_about_epochs(asked, -1))
        )["topics"]
        unknown = {"partition": 0, "error_code": ProtocolError.UNKNOWN_LEADER_EPOCH}
        assert topic["partitions"] == [unknown]

    run(scenario)


def test_an_answer_has_a_bound() -> None:
    async def scenario(led: Reading) -> None:
        led.followers.records = b"x" * (ANSWER_MAX_BYTES - 10)
        asked = {"fetch_offset": 0, "partition_max_bytes": 50_000_000}
        said = await led.fetch_of(asked, asked, asked)
        assert [len(one["records"]) > 0 for one in said] == [True, True, False]
        assert [one[2] for one in led.followers.asked] == [ANSWER_MAX_BYTES, 10]

    run(scenario)


@pytest.mark.parametrize(
    ("asked", "error"),
    [
        ({"partition": 7}, NOT_LED),
        ({"partition": 1}, NOT_LED),
        ({"current_leader_epoch": 0}, ProtocolError.FENCED_LEADER_EPOCH),
        ({"current_leader_epoch": 99}, ProtocolError.UNKNOWN_LEADER_EPOCH),
    ],
    ids=["not led", "not begun", "an older epoch", "a newer epoch"],
)
def test_what_cannot_be_read(asked: dict[str, int], error: ProtocolError) -> None:
    async def scenario(led: Reading) -> None:
        assert (await led.read(0, **asked))["error_code"] == error
        named = {"partition_index" if name == "partition" else name: asked[name] for name in asked}
        if "partition" not in asked:
            assert await led.offset(LATEST, **named) == {"error_code": error}

    run(scenario)


def test_without_a_broker_that_can_be_asked_it_is_asked_again() -> None:
    async def scenario(led: Reading) -> None:
        led.followers.unreadable = True
        assert (await led.read(0))["error_code"] == NOT_LED
        assert await led.offset(EARLIEST) == {"error_code": NOT_LED}
        assert await led.offset(LATEST, COMMITTED) == {"error_code": NOT_LED}

    run(scenario)


def test_offsets_are_those_of_what_is_safe() -> None:
    async def scenario(led: Reading) -> None:
        led.leader.append(0, BATCH)
        epoch = led.leader.logs[0].epoch
        assert await led.offset(LATEST) == {"error_code": 0, "offset": 10, "leader_epoch": epoch}
        assert (await led.offset(LATEST, COMMITTED))["offset"] == 7
        assert led.followers.asked == [(0, 9, 1, COMMITTED)]
        found = {"error_code": 0, "offset": 3, "leader_epoch": OLDER}
        assert await led.offset(EARLIEST) == {**found, "timestamp": EARLIEST}
        assert await led.offset(1_000) == {**found, "timestamp": 1_000}
        led.followers.offset = 10
        assert await led.offset(1_000) == {"error_code": 0}, "of that time there is nothing safe"
        unsupported = {"error_code": ProtocolError.UNSUPPORTED_VERSION}
        assert await led.offset(LARGEST_TIMESTAMP) == unsupported

    run(scenario)


def test_what_a_consumer_has_read_is_never_cut_off() -> None:
    async def scenario(led: Reading) -> None:
        asked = {"partition": 0, "current_leader_epoch": -1, "leader_epoch": OLDER}
        call = led.asked_about_epochs(asked, -1)
        (topic,) = (await led.consumers.offsets_for_leader_epoch(call))["topics"]
        stands = {"error_code": 0, "leader_epoch": OLDER, "end_offset": 10}
        assert topic["partitions"] == [{"partition": 0, **stands}]
        call = led.asked_about_epochs({**asked, "partition": 1}, -1)
        (topic,) = (await led.consumers.offsets_for_leader_epoch(call))["topics"]
        assert topic["partitions"] == [{"partition": 1, "error_code": NOT_LED}]

    run(scenario)
