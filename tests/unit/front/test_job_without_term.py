"""A job that comes back knowing of no election: the front has everything loaded again."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

from state.event_kinds import EventKind
from streaming.log.embedded import EmbeddedLogReader
from tests.fixtures.waiting import wait_on_loop
from tests.unit.front.front_figures import made_front, say


def told(folder, *heads: dict[str, Any]) -> tuple[list[str], list[str], bool]:
    """What a term was asked for, the events that were appended, and whether there is a pause."""
    asked: list[str] = []

    async def inner() -> bool:
        front, log = made_front(folder)
        front._term = SimpleNamespace(load_again=lambda _: asked.append("load again"))
        front._feed.job_connected(77)
        for head in heads:
            say(front, {"type": "image", **head})
        log.close()
        return front.status()["paused"]

    paused = asyncio.run(inner())
    with EmbeddedLogReader(folder / "events") as reader:
        kinds = [one.kind for one in reader.read(0, reader.end_offset())]
    return asked, kinds, paused


def test_everything_is_loaded_again_for_a_job_that_knows_of_no_election(tmp_path):
    assert told(tmp_path, {"end_offset": 0, "without_term": True}) == (["load again"], [], False)


def test_nothing_is_for_a_job_that_knows_one_or_has_a_new_log(tmp_path):
    assert told(tmp_path, {"end_offset": 0, "without_term": False}, {}) == ([], [], False)


def test_a_pause_goes_on_though_the_job_does_not_know_of_it(tmp_path):
    knows, knows_not = {"paused": True}, {"paused": False, "without_term": True}
    paused = [EventKind.CONTROLLER_PAUSED]
    assert told(tmp_path, knows, knows_not) == (["load again"], paused, True)


def test_a_pause_ends_with_a_job_that_knows_that_it_did(tmp_path):
    assert told(tmp_path, {"paused": True}, {"paused": False}) == ([], [], False)


def test_a_pause_that_the_job_does_not_know_ends_no_sooner_than_it_has_folded_it(tmp_path):
    async def inner() -> list[bool]:
        front, log = made_front(tmp_path)
        front._feed.job_connected(77)
        found = []
        say(front, {"type": "image", "paused": True})
        found.append(front._control._may_resume())
        say(front, {"type": "image", "without_term": True})
        found.append(front._control._may_resume())
        await wait_on_loop("the pause", lambda: not front._control._under_way)
        found.append(front._control._may_resume())
        say(front, {"type": "batch", "batch_id": 1, "end_offset": 1})
        found.append(front._control._may_resume())
        log.close()
        return found

    assert asyncio.run(inner()) == [True, False, False, True]
