"""Requests wait for their own reply, and for nothing else."""

from __future__ import annotations

import asyncio
from collections import Counter
from concurrent.futures import Future

import orjson
import pytest

from state.event_kinds import EventKind
from streaming.front.pending_requests import PAUSED_KINDS, PendingRequests
from streaming.gateway.ports import DecisionTimedOut, NotController, Paused
from streaming.link.pause import Pause
from streaming.log.api import AppendFailed, LogClosed, RecordRefused
from tests.fixtures.waiting import wait_on_loop


class Log:
    def __init__(self, error: Exception | None = None) -> None:
        self.bodies: list[dict] = []
        self._error = error

    def append(self, records) -> Future:
        self.bodies += [orjson.loads(record.payload) for record in records]
        future: Future = Future()
        if self._error is None:
            future.set_result(range(len(records)))
        else:
            future.set_exception(self._error)
        return future


def pending(log: Log, counters: Counter, holds: bool = True) -> PendingRequests:
    return PendingRequests(log.append, lambda: holds, counters)


async def submit(asked: PendingRequests, timeout_s: float = 10.0) -> dict:
    return await asked.submit(EventKind.PRODUCER_IDS_REQUESTED, "", {"broker_id": 1}, timeout_s)


def test_replies_reach_who_asked_in_any_order():
    async def scenario():
        log, counters = Log(), Counter()
        asked = pending(log, counters)
        tasks = [asyncio.create_task(submit(asked)) for _ in range(3)]
        await wait_on_loop("the requests", lambda: len(log.bodies) >= 3, poll_s=0)
        ids = [body["request_id"] for body in log.bodies]
        assert len(set(ids)) == 3
        asked.answer([{"request_id": id_, "error": n} for n, id_ in reversed([*enumerate(ids)])])
        assert [reply["error"] for reply in await asyncio.gather(*tasks)] == [0, 1, 2]
        asked.answer([{"request_id": ids[0], "error": 0}, {"request_id": "unknown", "error": 0}])
        assert (counters["late_replies"], asked.waiting) == (2, 0)

    asyncio.run(scenario())


def test_without_the_role_nothing_is_appended():
    async def scenario():
        log = Log()
        with pytest.raises(NotController):
            await submit(pending(log, Counter(), holds=False))
        assert log.bodies == []

    asyncio.run(scenario())


@pytest.mark.parametrize("kind", sorted(PAUSED_KINDS))
def test_a_pause_refuses_what_is_about_partitions_and_appends_nothing(kind):
    async def scenario():
        log = Log()
        asked = PendingRequests(log.append, lambda: True, Counter(), Pause)
        with pytest.raises(Paused, match="paused by an operator and decides nothing"):
            await asked.submit(kind, "t", {}, 10.0)
        assert log.bodies == []
        with pytest.raises(DecisionTimedOut):
            await submit(asked, 0)
        assert len(log.bodies) == 1, "producer ids are not about partitions"

    asyncio.run(scenario())


def test_who_is_refused_by_a_pause_hears_its_reason():
    """As much of it as the protocol has room for."""

    async def scenario(reason):
        asked = PendingRequests(Log().append, lambda: True, Counter(), lambda: Pause(reason, 1))
        with pytest.raises(Paused) as refused:
            await asked.submit(EventKind.CREATE_TOPIC_REQUESTED, "t", {}, 10.0)
        return str(refused.value)

    assert "by an operator (new disks) and" in asyncio.run(scenario("new disks"))
    assert len(asyncio.run(scenario("x" * 40_000))) < 2_000


@pytest.mark.parametrize("timeout_s", [0, 0.01])
def test_a_reply_that_does_not_come_is_given_up_but_was_appended(timeout_s):
    async def scenario():
        log, counters = Log(), Counter()
        asked = pending(log, counters)
        with pytest.raises(DecisionTimedOut):
            await submit(asked, timeout_s)
        assert (len(log.bodies), asked.waiting, counters["reply_timeouts"]) == (1, 0, 1)

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("end", "error"),
    [
        pytest.param(lambda asked, _: asked.fail_all(), NotController, id="the role is lost"),
        pytest.param(lambda _, task: task.cancel(), asyncio.CancelledError, id="it is cancelled"),
    ],
)
def test_a_request_that_ends_unanswered_leaves_nothing_behind(end, error):
    async def scenario():
        log = Log()
        asked = pending(log, Counter())
        task = asyncio.create_task(submit(asked))
        await wait_on_loop("the request", lambda: log.bodies, poll_s=0)
        end(asked, task)
        with pytest.raises(error):
            await task
        assert asked.waiting == 0

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("failure", "told"),
    [
        pytest.param(LogClosed("disk"), NotController, id="the log has failed"),
        pytest.param(AppendFailed("full"), NotController, id="the disk is full"),
        pytest.param(RecordRefused("too large"), RecordRefused, id="the record is refused"),
    ],
)
def test_a_log_that_does_not_take_a_request_is_told(failure, told):
    """Clients give up for good at an unknown error; they look for who has the role after this."""

    async def scenario():
        with pytest.raises(told, match=str(failure)):
            await submit(pending(Log(failure), Counter()))

    asyncio.run(scenario())


def test_a_record_that_is_refused_keeps_no_other_out():
    class Choosy(Log):
        def append(self, records) -> Future:
            if any(orjson.loads(one.payload)["broker_id"] == 2 for one in records):
                refused: Future = Future()
                refused.set_exception(RecordRefused("too large"))
                return refused
            return super().append(records)

    async def scenario():
        log = Choosy()
        asked = pending(log, Counter())
        kind = EventKind.PRODUCER_IDS_REQUESTED
        tasks = [
            asyncio.create_task(asked.submit(kind, "", {"broker_id": id_}, 10.0))
            for id_ in (1, 2, 3)
        ]
        await wait_on_loop("the requests", lambda: len(log.bodies) >= 2, poll_s=0)
        asked.answer([{"request_id": one["request_id"], "error": 0} for one in log.bodies])
        one, refused, other = await asyncio.gather(*tasks, return_exceptions=True)
        assert isinstance(refused, RecordRefused)
        for answered in (one, other):
            assert isinstance(answered, dict) and answered["error"] == 0
        assert [body["broker_id"] for body in log.bodies] == [1, 3]

    asyncio.run(scenario())
