"""What brokers get when they follow this node."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from state.protocol_errors import ProtocolError
from streaming.offsets.batches import spans
from streaming.offsets.follower import UNKNOWN, EpochEnd
from streaming.offsets.follower_reports import FollowerReports
from streaming.offsets.history_connection import HistoryUnreadable
from streaming.offsets.replica_fetch import ReplicaFetch
from tests.unit.offsets.support import BATCH, FETCH_VERSION, OLDER, Led

LAST_EPOCHS_SINCE = 12
"""Before, a broker names no leader epoch in Fetch, but asks where the last one ended."""


class Fetching(Led):
    """With broker 2 fetching; history: (partition, offset, bytes) that were asked for. ends: where
    older epochs ended, as a witness says it.
    """

    def __init__(self) -> None:
        super().__init__()
        self.history: list[tuple[int, int, int]] = []
        self.older = b"older records"
        self.ends: dict[int, EpochEnd] = {}
        reports = FollowerReports(self.leader, self._epoch_end, None)
        self.replica_fetch = ReplicaFetch(
            self.leader, self.cluster.image, reports, self._read, self.consumers
        )

    async def _read(self, partition: int, offset: int, max_bytes: int) -> bytes:
        self.history.append((partition, offset, max_bytes))
        return self.older

    async def _epoch_end(self, partition: int, last_epoch: int) -> EpochEnd:
        if last_epoch not in self.ends:
            raise HistoryUnreadable(f"nobody knows epoch {last_epoch} of partition {partition}")
        return self.ends[last_epoch]

    async def ask(self, version: int = FETCH_VERSION, **partition: Any) -> dict[str, Any]:
        body = await self.replica_fetch.handle(self.asked(partition, version))
        answer: dict[str, Any] = body["responses"][0]["partitions"][0]
        return answer


def run(scenario: Callable[[Fetching], Awaitable[None]]) -> None:
    async def play() -> None:
        await scenario(Fetching())

    asyncio.run(play())


@pytest.mark.parametrize("version", [10, 11, 12, 13, 15, 17])
def test_followers_get_what_they_lack_and_say_what_they_have(version: int) -> None:
    async def scenario(led: Fetching) -> None:
        led.begin()
        done = led.leader.append(0, BATCH)
        said = {"last_fetched_epoch": UNKNOWN} if version < LAST_EPOCHS_SINCE else {}
        answer = await led.ask(version, fetch_offset=0, **said)
        assert answer["error_code"] == 0
        assert [span.base_offset for span in spans(answer["records"])] == [0]
        for broker in (1, 3):
            led.fetch(broker, 1)
        assert not done.done()
        answer = await led.ask(version, fetch_offset=1, **said)
        assert done.done()
        assert (answer["records"], answer["high_watermark"]) == (b"", 1)

    run(scenario)


def test_an_answer_waits_for_news() -> None:
    async def scenario(led: Fetching) -> None:
        led.begin()
        await led.ask()
        asking = asyncio.create_task(led.ask())
        await asyncio.sleep(0)
        assert not asking.done()
        led.leader.append(0, BATCH)
        assert (await asking)["records"]

    run(scenario)


@pytest.mark.parametrize(
    ("change", "error"),
    [(-1, ProtocolError.FENCED_LEADER_EPOCH), (1, ProtocolError.UNKNOWN_LEADER_EPOCH)],
)
def test_other_leader_epochs(change: int, error: int) -> None:
    async def scenario(led: Fetching) -> None:
        led.begin()
        epoch = led.leader.logs[0].epoch + change
        assert (await led.ask(current_leader_epoch=epoch))["error_code"] == error
        assert led.leader.logs[0].high_watermark == 0

    run(scenario)


def test_before_all_agree_there_is_nothing_to_say() -> None:
    async def scenario(led: Fetching) -> None:
        led.fetch(1, 9)
        asking = asyncio.create_task(led.ask(fetch_offset=7))
        await asyncio.sleep(0)
        led.fetch(3, 9)
        answer = await asking
        assert (answer["error_code"], answer["high_watermark"]) == (0, 7)
        assert led.leader.logs[0].end == 7

    run(scenario)


def test_alone_it_is_told_to_come_again() -> None:
    async def scenario(led: Fetching) -> None:
        answer = await led.ask(fetch_offset=7)
        assert answer["error_code"] == ProtocolError.UNKNOWN_LEADER_EPOCH

    run(scenario)


def test_records_that_were_never_safe_are_cut_off() -> None:
    async def scenario(led: Fetching) -> None:
        led.begin(5)
        answer = await led.ask(fetch_offset=8, last_fetched_epoch=OLDER)
        assert answer["diverging_epoch"] == {"epoch": OLDER, "end_offset": 5}
        assert answer["records"] == b""
        assert led.leader.logs[0].follower(2).position == UNKNOWN, "it has not done so yet"
        await led.ask(fetch_offset=5, last_fetched_epoch=OLDER)
        assert led.leader.logs[0].follower(2).position == 5

    run(scenario)


def test_an_old_tail_is_cut_off_where_a_witness_says_that_its_epoch_ended() -> None:
    async def scenario(led: Fetching) -> None:
        led.raise_epochs()
        for broker in (1, 2, 3):
            led.fetch(broker, 120, epoch=OLDER + 1)
        answer = await led.ask(fetch_offset=110, last_fetched_epoch=OLDER)
        assert answer["error_code"] == ProtocolError.UNKNOWN_LEADER_EPOCH, "it must ask again"
        assert led.leader.logs[0].follower(2).position == UNKNOWN, "nobody can say what it has"
        led.ends[OLDER] = EpochEnd(OLDER, 100)
        answer = await led.ask(fetch_offset=110, last_fetched_epoch=OLDER)
        assert answer["diverging_epoch"] == {"epoch": OLDER, "end_offset": 100}
        answer = await led.ask(fetch_offset=100, last_fetched_epoch=OLDER)
        assert answer["records"] == led.older
        assert led.leader.logs[0].follower(2).position == 100

    run(scenario)


def test_a_replica_in_sync_with_an_old_tail_cuts_it_off_before_the_log_begins() -> None:
    async def scenario(led: Fetching) -> None:
        led.raise_epochs()
        led.ends[OLDER] = EpochEnd(OLDER, 100)
        for broker in (1, 3):
            led.fetch(broker, 120, epoch=OLDER + 1)
        log = led.leader.logs[0]
        answer = await led.ask(fetch_offset=110, last_fetched_epoch=OLDER)
        assert answer["diverging_epoch"] == {"epoch": OLDER, "end_offset": 100}
        assert not log.begun
        answer = await led.ask(fetch_offset=100, last_fetched_epoch=OLDER)
        assert (answer["error_code"], log.end) == (0, 100)

    run(scenario)


def test_who_led_an_empty_log_follows_one_that_no_record_was_written_to() -> None:
    """A broker passes over a diverging epoch of -1 and asks the same again."""

    async def scenario(led: Fetching) -> None:
        led.cluster.happen("broker_registrations_changed", "", {"unregistered": [2]})
        led.look()
        for broker in (1, 3):
            led.fetch(broker, 0, epoch=UNKNOWN)
        log = led.leader.logs[0]
        assert log.begun
        answer = await led.ask(fetch_offset=0, last_fetched_epoch=OLDER)
        assert not answer.get("diverging_epoch")
        assert log.follower(2).position == 0
        led.leader.append(0, BATCH)
        answer = await led.ask(fetch_offset=0, last_fetched_epoch=OLDER)
        assert answer["records"]

    run(scenario)


def test_what_stands_before_our_log_is_read_from_another_broker() -> None:
    async def scenario(led: Fetching) -> None:
        led.begin(5)
        answer = await led.ask(fetch_offset=3, last_fetched_epoch=OLDER)
        assert answer["records"] == led.older
        assert led.history == [(0, 3, 1_000_000)]
        led.older = b""
        answer = await led.ask(fetch_offset=3, last_fetched_epoch=OLDER)
        assert answer["error_code"] == ProtocolError.UNKNOWN_LEADER_EPOCH, "it must ask again"

    run(scenario)


def test_old_protocols_and_other_partitions_are_not_led() -> None:
    async def scenario(led: Fetching) -> None:
        led.begin()
        assert (await led.ask(8))["error_code"] == ProtocolError.NOT_LEADER_OR_FOLLOWER
        assert (await led.ask(partition=7))["error_code"] == ProtocolError.NOT_LEADER_OR_FOLLOWER

    run(scenario)


def test_a_broker_that_has_no_replica_counts_for_nothing() -> None:
    async def scenario(led: Fetching) -> None:
        led.fetch(1, 5)
        await led.replica_fetch.handle(led.asked({"fetch_offset": 5}, broker=4))
        assert 4 not in led.leader.logs[0].followers

    run(scenario)
