"""A job that comes back knowing of no election: the front has everything loaded again."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import orjson

from state.event_kinds import EventKind
from streaming.log.embedded import EmbeddedLogReader
from streaming.log.events import event
from tests.fixtures.waiting import wait_on_loop
from tests.unit.front.front_figures import made_front, say

PAUSED, RESUMED = EventKind.CONTROLLER_PAUSED, EventKind.CONTROLLER_RESUMED
ELECTED = event(EventKind.CONTROLLER_ELECTED, {})
Seen = tuple[list[str], bool]
"""The events that were appended, and whether there is a pause."""


def told(folder, *heads: dict[str, Any], pauses=False) -> tuple[list[int], list[str], bool]:
    """Behind which offsets a load is to begin, the events that were appended, and whether there is
    a pause; pauses: an operator orders one before jobs come.
    """
    asked: list[int] = []

    async def inner() -> bool:
        front, log = made_front(folder)
        front._term.begin(SimpleNamespace(load_again=asked.append, deprioritized=tuple))
        log.append([ELECTED])
        if pauses:
            await front._control._take(orjson.dumps({"order": "pause", "reason": "r"}))
        front._feed.job_connected(77)
        for head in heads:
            say(front, {"type": "image", **head})
        log.close()
        return front.status()["paused"]

    paused = asyncio.run(inner())
    return asked, kinds_in(folder), paused


def kinds_in(folder) -> list[str]:
    """The events that were appended."""
    with EmbeddedLogReader(folder / "events") as reader:
        return [one.kind for one in reader.read(0, reader.end_offset())]


def test_everything_is_loaded_again_for_a_job_that_knows_of_no_election(tmp_path):
    assert told(tmp_path, {"end_offset": 1, "without_term": True}) == ([0], [ELECTED.kind], False)


def test_a_load_that_the_job_will_fold_is_enough(tmp_path):
    assert told(tmp_path, {"end_offset": 0, "without_term": True}) == ([-1], [ELECTED.kind], False)


def test_a_load_that_the_job_will_fold_in_a_pause_that_it_knows_is_enough(tmp_path):
    head = {"end_offset": 0, "without_term": True, "paused": True}
    assert told(tmp_path, head) == ([-1], [ELECTED.kind], True)


def test_a_load_that_the_job_will_fold_before_it_comes_to_a_pause_is_enough(tmp_path):
    head = {"end_offset": 0, "without_term": True}
    assert told(tmp_path, head, pauses=True) == ([-1], [ELECTED.kind, PAUSED], True)


def test_nothing_is_for_a_job_that_knows_one_or_has_a_new_log(tmp_path):
    assert told(tmp_path, {"end_offset": 0}, {}) == ([], [ELECTED.kind], False)


def test_a_pause_that_goes_on_keeps_its_reason(tmp_path):
    async def inner() -> str:
        front, log = made_front(tmp_path)
        front._feed.job_connected(77)
        say(front, {"type": "image", "paused": True, "pause_reason": "new disks"})
        say(front, {"type": "image", "without_term": True})
        await wait_on_loop("the pause", lambda: not front._control._under_way)
        log.close()
        return front.status()["pause_reason"]

    assert asyncio.run(inner()) == "new disks"
    with EmbeddedLogReader(tmp_path / "events") as reader:
        (again,) = reader.read(0, reader.end_offset())
    assert (again.kind, orjson.loads(again.payload)) == (PAUSED, {"reason": "new disks"})


def test_a_pause_goes_on_though_the_job_does_not_know_of_it_and_the_load_comes_behind_it(tmp_path):
    knows, knows_not = {"paused": True}, {"paused": False, "without_term": True}
    asked, kinds, paused = told(tmp_path, knows, knows_not)
    assert (asked, paused) == ([0], True)
    assert kinds == [ELECTED.kind, PAUSED]


def after_orders(folder, was_paused: bool, orders: list[str], *jobs: dict[str, Any]) -> Seen:
    """What a job came to that began without a term after one that was gone had folded none of some
    orders; the jobs after it have its head, changed.
    """

    async def inner() -> Seen:
        front, log = made_front(folder)
        front._term.begin(SimpleNamespace(load_again=lambda _: None, deprioritized=tuple))
        front._feed.job_connected(77)
        say(front, {"type": "image", "paused": was_paused})
        front._progress.completed = log.end_offset()
        front._feed.job_gone()
        for order in orders:
            await front._control._take(orjson.dumps({"order": order, "reason": "r"}))
        head = {"type": "image", "without_term": True, "end_offset": log.end_offset()}
        for changed in jobs:
            say(front, {**head, **changed})
        await wait_on_loop("the appends", lambda: not front._control._under_way)
        log.close()
        return kinds_in(folder), front.status()["paused"]

    return asyncio.run(inner())


def test_a_pause_that_no_job_has_folded_is_given_again(tmp_path):
    assert after_orders(tmp_path, False, ["pause"], {}) == ([PAUSED, PAUSED], True)


def test_a_pause_that_the_job_will_fold_or_has_folded_is_not(tmp_path):
    jobs = {"end_offset": 0}, {"end_offset": 1, "paused": True}
    assert after_orders(tmp_path, False, ["pause"], *jobs) == ([PAUSED], True)


def test_the_end_of_a_pause_that_no_job_has_folded_holds(tmp_path):
    assert after_orders(tmp_path, True, ["resume"], {}) == ([RESUMED], False)


def test_the_newest_order_about_a_pause_counts(tmp_path):
    orders = ["resume", "pause"]
    assert after_orders(tmp_path, True, orders, {}) == ([RESUMED, PAUSED, PAUSED], True)


def test_an_order_that_is_being_appended_counts(tmp_path):
    async def inner() -> bool:
        front, log = made_front(tmp_path)
        front._feed.job_connected(77)
        say(front, {"type": "image"})
        front._feed.job_gone()
        front._control.give(event(EventKind.CONTROLLER_PAUSED, {"reason": ""}))
        say(front, {"type": "image", "without_term": True, "end_offset": 1})
        paused = front.status()["paused"]
        await wait_on_loop("the appends", lambda: not front._control._under_way)
        log.close()
        return paused

    assert asyncio.run(inner())
    assert kinds_in(tmp_path) == [PAUSED, PAUSED]


def test_a_pause_ends_with_a_job_that_knows_that_it_did(tmp_path):
    assert told(tmp_path, {"paused": True}, {"paused": False}) == ([], [ELECTED.kind], False)


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
