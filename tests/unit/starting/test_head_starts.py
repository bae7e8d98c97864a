"""A running job that has to load the cluster folds the load ahead of its query."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from dataclasses import replace
from functools import partial

import pytest

from checkpoints.state_files import StatesUnreadable
from streaming.starting import head_starts
from streaming.starting.beginning import Beginning
from streaming.starting.head_start import HeadStart
from tests.fixtures.folding import fold_log
from tests.fixtures.starting_job import SLOTS, Job
from tests.fixtures.story import Story
from tests.fixtures.waiting import wait_for

PORTS = {1: 1_001, 2: 1_002}


def two_loads() -> tuple[Story, int]:
    """A log with a load, a change, and another load of as much that begins at the second value."""
    story = Story()
    for epoch in (1, 2):
        again = story.elected(epoch, epoch)
        story.register(PORTS)
        story.observe("orders", [[1, 2]] * 3)
        story.write("resync_completed", topics=1)
        story.unregister(2)
    return story, again


@pytest.fixture
def job(tmp_path, monkeypatch) -> Iterator[Job]:
    """One that has folded the first load, and states as its query has written them."""
    story, again = two_loads()
    found = Job(tmp_path, story.events)
    found.write(again)
    every = found.begin_all(Beginning(0, False, 0, {}))
    every.start()
    wait_for("the first head start", lambda: found.sinks.end() == again)
    every.process_batch(0, found.fold.batch(story.events[:again]))
    monkeypatch.setattr(
        head_starts, "read_state_files", lambda *_, most_bytes: dict(found.fold.states)
    )
    monkeypatch.setattr("streaming.starting.head_start._STILL_S", 60)
    yield found
    found.close()


def decided(job: Job) -> list[object]:
    return [one for _, folded in job.sinks.carried_out for one in folded.decisions]


def test_a_load_is_decided_before_the_query_has_folded_it(job):
    _, again = two_loads()
    job.write(len(job.log))
    job.head_start.process_batch(1, job.fold.batch(job.log[again : again + 1]))
    assert job.sinks.end() == len(job.log), "the query waits for the end of the load"
    assert [batch_id for batch_id, _ in job.sinks.carried_out[1:]] == [1, None]
    job.head_start.process_batch(2, job.fold.batch(job.log[again + 1 :]))
    assert job.sinks.passed_over[-1] == len(job.log)
    assert decided(job) == fold_log(job.log, SLOTS)[1]
    job.head_start.check()


def test_the_query_waits_no_longer_for_a_load_of_which_nothing_comes(job, monkeypatch):
    monkeypatch.setattr("streaming.starting.head_start._STILL_S", 0.1)
    _, again = two_loads()
    job.write(again + 2)
    job.head_start.process_batch(1, job.fold.batch(job.log[again : again + 2]))
    assert job.sinks.end() == again + 2


def take_while_more_comes(job, rows, end):
    """Take a batch of the query while one event after another is written; return their end."""
    waiting = threading.Thread(target=job.head_start.process_batch, args=[1, rows])
    waiting.start()
    while waiting.is_alive() and end < len(job.log):
        end += 1
        job.write(end)
        waiting.join(0.02)
    assert not waiting.is_alive(), "the query waits, whatever comes"
    return end


def test_a_broker_that_does_not_answer_holds_the_query_no_longer_than_that(job, monkeypatch):
    """Whatever else happens meanwhile."""
    monkeypatch.setattr("streaming.starting.head_start._STILL_S", 0.3)
    _, again = two_loads()
    job.sinks.left = 1
    end = len(job.log)
    job.log += [replace(job.log[-1], offset=end + more) for more in range(400)]
    job.write(end)
    rows = job.fold.batch(job.log[again : again + 1])
    take_while_more_comes(job, rows, end)  # the load is over, and what comes is not of it


def test_a_job_that_is_to_end_does_not_wait_for_a_load(job, monkeypatch):
    monkeypatch.setattr("streaming.starting.head_start._STILL_S", 3_600)
    _, again = two_loads()
    job.write(again + 1)
    rows = job.fold.batch(job.log[again : again + 1])
    waiting = threading.Thread(target=job.head_start.process_batch, args=[1, rows])
    waiting.start()
    job.stopped.set()
    waiting.join(30)
    assert not waiting.is_alive()


def test_a_load_that_comes_in_parts_is_decided_ahead_to_its_end(job, monkeypatch):
    """However often the query has folded all that there is."""
    monkeypatch.setattr("streaming.starting.head_start._STILL_S", 0.1)
    _, again = two_loads()
    job.write(again + 1)
    job.head_start.process_batch(1, job.fold.batch(job.log[again : again + 1]))
    for end in (again + 2, again + 3):
        job.write(end)
        wait_for("the head start", lambda end=end: job.sinks.end() == end)
        job.head_start.process_batch(end, job.fold.batch(job.log[end - 1 : end]))
    job.write(len(job.log))
    wait_for("the rest of the load", lambda: job.sinks.end() == len(job.log))
    assert job.sinks.carried_out[-1][0] is None
    job.head_start.process_batch(99, job.fold.batch(job.log[again + 3 :]))
    assert job.head_start._last.passed, "the load is over"
    assert decided(job) == fold_log(job.log, SLOTS)[1]


def test_a_job_that_begins_within_a_load_decides_it_to_its_end(tmp_path, monkeypatch):
    monkeypatch.setattr("streaming.starting.head_start._STILL_S", 0.1)
    story, again = two_loads()
    begun = again + 2
    job = Job(tmp_path, story.events)
    job.fold.batch(job.log[:begun])
    job.write(begun)
    job.begin_all(Beginning(begun, False, begun, dict(job.fold.states))).start()
    job.write(begun + 1)
    wait_for("the head start", lambda: job.sinks.end() == begun + 1)
    job.head_start.process_batch(1, job.fold.batch(job.log[begun : begun + 1]))
    job.write(len(job.log))
    wait_for("the rest of the load", lambda: job.sinks.end() == len(job.log))
    job.close()


def test_the_query_neither_waits_for_a_load_that_never_ends_nor_leaves_it(job, monkeypatch):
    """Whatever else happens meanwhile."""
    monkeypatch.setattr("streaming.starting.current_load._LONGEST_LOAD_S", 0.3)
    _, again = two_loads()
    end = again + 2
    job.log[end:] = [replace(job.log[end - 1], offset=end + more) for more in range(400)]
    job.write(end)
    rows = job.fold.batch(job.log[again : again + 1])
    end = take_while_more_comes(job, rows, end)
    wait_for("the head start", lambda: job.sinks.end() == end)
    job.head_start.process_batch(2, job.fold.batch(job.log[again + 1 : end]))
    assert job.head_start._last.passed


def test_a_load_within_a_batch_is_decided_by_the_query(job):
    _, again = two_loads()
    job.write(len(job.log))
    job.head_start.process_batch(1, job.fold.batch(job.log[again:]))
    batch_id, folded = job.sinks.carried_out[-1]
    assert (batch_id, folded.end_offset) == (1, len(job.log))
    assert decided(job) == fold_log(job.log, SLOTS)[1]


def test_a_log_cluster_that_is_away_leaves_the_load_to_the_query(job, monkeypatch, caplog):
    """The query goes on with the connections that it has."""
    monkeypatch.setattr("streaming.log.source.LOG_CLUSTER_TIMEOUT_MS", 50)
    _, again = two_loads()
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))  # and does not listen
        url = f"kafka://127.0.0.1:{bound.getsockname()[1]}/events"
        folders = replace(job.folders, event_log_url=url)
        new = partial(HeadStart, job.settings, folders, job.sinks, stopped=job.stopped)
        monkeypatch.setattr(job.head_start, "_new", new)
        job.head_start.process_batch(1, job.fold.batch(job.log[again : again + 1]))
    job.head_start.check()
    assert "the query folds the load itself: the log cluster of kafka://" in caplog.text
    job.head_start.process_batch(2, job.fold.batch(job.log[again + 1 :]))
    assert job.sinks.carried_out[-1][0] == 2
    assert decided(job) == fold_log(job.log, SLOTS)[1]


def test_without_the_states_the_query_folds_the_load(job, monkeypatch, caplog):
    def unreadable(*_: object, most_bytes: int) -> None:
        raise StatesUnreadable("RocksDB")

    caplog.set_level("INFO")
    monkeypatch.setattr(head_starts, "read_state_files", unreadable)
    _, again = two_loads()
    job.write(len(job.log))
    for batch, cut in enumerate((again + 1, len(job.log)), 1):
        begin = again if batch == 1 else again + 1
        job.head_start.process_batch(batch, job.fold.batch(job.log[begin:cut]))
        assert job.sinks.carried_out[-1][0] == batch
    assert "the query folds the load itself: RocksDB" in caplog.text
    assert decided(job) == fold_log(job.log, SLOTS)[1]
