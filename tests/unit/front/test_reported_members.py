"""How often members are reported to the log, in a group of many, while others are silent."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

import orjson
import pytest

from state.groups.buckets import group_bucket
from state.groups.change_bodies import GroupRemoved, Timeouts
from state.groups.change_kinds import ChangeKind
from streaming.front.groups.sessions import Sessions
from streaming.log.api import NewRecord
from tests.unit.front.standing_time import StandingTime

MEMBERS = 200
SESSION_S = 45
BEAT_S = 3
EVENT = NewRecord("join_group_requested", "g", b"{}")


def timeouts(session_s: int) -> Timeouts:
    return {"session_timeout_ms": session_s * 1000, "rebalance_timeout_ms": session_s * 1000}


class Crowd:
    """Members of one group; reported: rows of heartbeats_received so far, by member."""

    def __init__(self) -> None:
        self.time = StandingTime()
        self.sessions = Sessions(self.time, list, lambda: self.time.now_ms, lambda: False)
        self.names = [f"m{number}" for number in range(MEMBERS)]
        self.reported: Counter[str] = Counter()
        self.events = 0
        self.add(*self.names)

    def add(self, *names: str, instance: str | None = None, session_s: int = SESSION_S) -> None:
        """Let members be added."""
        changes: list[Any] = [
            {
                "change": "member_added",
                "member": name,
                "instance": instance,
                "at_ms": self.time.now_ms,
                **timeouts(session_s),
            }
            for name in names
        ]
        self.sessions.decided("g", changes)

    def beat(self, seconds: int, *silent: str) -> None:
        """Let time pass in which all but some send heartbeats."""
        for _ in range(seconds // BEAT_S):
            self.time.pass_to(self.time.now_ms + BEAT_S * 1000)
            for name in self.names:
                if name not in silent:
                    self.sessions.heard("g", name)

    def append(self) -> dict[str, int]:
        """Append an event of the group; return who is reported before it, and how long silent."""
        rows = []
        for record in self.sessions.heartbeats_before([EVENT]):
            assert record.key == str(group_bucket("g"))
            rows += orjson.loads(record.payload)["heartbeats"]
            self.events += 1
        self.reported.update(row[1] for row in rows)
        return {row[1]: row[4] for row in rows}


@pytest.mark.parametrize("silent", [0, 1, 20])
def test_members_that_rejoin_are_reported_once_whoever_is_silent(silent: int) -> None:
    crowd = Crowd()
    quiet = crowd.names[:silent]
    crowd.beat(30, *quiet)
    for name in crowd.names[silent:]:
        crowd.time.pass_to(crowd.time.now_ms + 1)
        crowd.sessions.heard("g", name)
        crowd.append()
    assert crowd.reported == dict.fromkeys(crowd.names[silent:], 1)
    assert crowd.events == 1


def test_one_that_was_silent_is_reported_before_the_next_event() -> None:
    crowd = Crowd()
    crowd.beat(30, "m0", "m1")
    assert "m0" not in crowd.append()
    crowd.beat(BEAT_S, "m0")
    crowd.time.pass_to(crowd.time.now_ms + 500)
    assert crowd.append() == {"m1": 500}
    assert crowd.append() == {}


def test_under_steady_events_a_member_is_reported_a_few_times_a_session() -> None:
    """Times of beats are spread, as those of clients are."""
    crowd = Crowd()
    for second in range(10 * SESSION_S):
        crowd.time.pass_to(crowd.time.now_ms + 1000)
        for number, name in enumerate(crowd.names):
            if (second + number) % (SESSION_S // 3) == 0:
                crowd.sessions.heard("g", name)
        crowd.append()
    assert max(crowd.reported.values()) <= 41, "a quarter of a session is between two"
    assert min(crowd.reported.values()) >= 10
    assert crowd.events <= 61, "they are reported together"


def test_a_member_that_is_silent_for_its_session_is_reported_as_such() -> None:
    crowd = Crowd()
    crowd.beat(SESSION_S, "m0")
    crowd.time.pass_to(crowd.time.now_ms + 10)
    silent_ms = crowd.append()
    assert (silent_ms["m0"], silent_ms["m1"]) == (SESSION_S * 1000 + 10, 10)


def test_one_that_joins_is_reported_by_the_id_it_is_to_have_until_it_is_answered() -> None:
    async def scenario() -> None:
        crowd = Crowd()
        reply: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        crowd.sessions.joins("g", "new", None, timeouts(6), reply)
        crowd.time.pass_to(crowd.time.now_ms + 3_000)
        assert crowd.append() == {"new": 0}
        reply.set_result({})
        await asyncio.sleep(0)
        crowd.time.pass_to(crowd.time.now_ms + 3_000)
        assert crowd.append() == {}

    asyncio.run(scenario())


def test_a_static_member_that_joins_is_reported_in_time_for_its_old_session_timeout() -> None:
    async def scenario() -> None:
        crowd = Crowd()
        crowd.add("old", instance="i", session_s=6)
        reply: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        crowd.sessions.joins("g", "new", "i", timeouts(SESSION_S), reply)
        crowd.time.pass_to(crowd.time.now_ms + 3_000)
        assert crowd.append() == {"new": 0}

    asyncio.run(scenario())


def test_one_that_joins_a_group_that_is_removed_is_of_the_next_one() -> None:
    async def scenario() -> None:
        crowd = Crowd()
        reply: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        crowd.sessions.joins("g", "new", None, timeouts(6), reply)
        removed = GroupRemoved(change=ChangeKind.GROUP_REMOVED, reason="deleted")
        crowd.sessions.decided("g", [removed])
        crowd.time.pass_to(crowd.time.now_ms + 3_000)
        assert crowd.append() == {"new": 0}

    asyncio.run(scenario())
