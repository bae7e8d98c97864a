"""Commits in transactions that take too long, or fail."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from state.protocol_errors import ProtocolError
from streaming.gateway.groups import transactions
from streaming.gateway.groups.transactions import Producing, Transactions
from streaming.log.api import LogError

PRODUCING = Producing("x", 9, 1, partition=4, version=4)


async def verified(producing: Producing) -> int:
    return 0


def test_a_commit_that_is_not_answered_in_time_still_holds_markers_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(transactions, "COMMIT_TIMEOUT_S", 0.01)

    async def scenario() -> None:
        ordered, decided = Transactions(verified), asyncio.Event()

        async def submit(code: int) -> dict[str, Any]:
            await decided.wait()
            return {"error": code}

        reply = await ordered.commit(PRODUCING, submit)
        assert reply == {"error": ProtocolError.REQUEST_TIMED_OUT}
        monkeypatch.setattr(transactions, "_MARKER_WAITS_S", 0.01)
        assert not await ordered.settled(9)
        decided.set()
        monkeypatch.setattr(transactions, "_MARKER_WAITS_S", 20.0)
        assert await ordered.settled(9)

    asyncio.run(scenario())


def test_a_commit_that_fails_is_not_under_way_any_more() -> None:
    async def scenario() -> None:
        ordered = Transactions(verified)

        async def submit(code: int) -> dict[str, Any]:
            raise LogError("full")

        with pytest.raises(LogError):
            await ordered.commit(PRODUCING, submit)
        assert await ordered.settled(9)

    asyncio.run(scenario())


def test_what_the_coordinator_says_goes_with_the_commit() -> None:
    async def fenced(producing: Producing) -> int:
        return ProtocolError.INVALID_PRODUCER_EPOCH

    async def submit(code: int) -> dict[str, Any]:
        return {"error": code}

    async def scenario() -> None:
        reply = await Transactions(fenced).commit(PRODUCING, submit)
        assert reply == {"error": ProtocolError.INVALID_PRODUCER_EPOCH}

    asyncio.run(scenario())
