"""The head start of a job as a thread: it folds what comes, ends when the query keeps up, and says
what ended it otherwise.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from checkpoints.ahead import Ahead, note_ahead, read_ahead
from streaming.log.embedded import EmbeddedLogReader
from streaming.sinks.appender import JobStopping
from streaming.starting.beginning import Beginning
from tests.fixtures.folding import fold_log
from tests.fixtures.starting_job import SLOTS, Job
from tests.fixtures.story import Fold
from tests.fixtures.waiting import wait_for
from tests.logs.state_logs import long_log


@pytest.fixture
def job(tmp_path) -> Iterator[Job]:
    found = Job(tmp_path, long_log(5, plausible=True))
    yield found
    found.close()


def test_it_decides_until_the_query_keeps_up(job, monkeypatch):
    rested = threading.Event()
    monkeypatch.setattr(EmbeddedLogReader, "rest", lambda _: rested.set())
    head_start = job.begin(Beginning(0, True, 0, {}))
    head_start.start()  # there is no log yet: the front makes it
    for end in (5, 20):
        job.write(end)
        wait_for("the head start", lambda end=end: job.sinks.end() == end)
    assert {batch_id for batch_id, _ in job.sinks.carried_out} == {None}
    assert read_ahead(job.folders.checkpoint).first == 0

    head_start.process_batch(0, job.fold.folded(job.log[:20]))
    assert job.sinks.passed_over == [20]
    assert rested.wait(30), "the log is followed by the query alone"
    job.write(30)
    head_start.process_batch(1, job.fold.folded(job.log[20:30]))
    batch_id, last = job.sinks.carried_out[-1]
    assert (batch_id, last.end_offset) == (1, 30)
    assert read_ahead(job.folders.checkpoint) is None, "the query has committed what was ahead"
    head_start.check()

    decided = [one for _, folded in job.sinks.carried_out for one in folded.decisions]
    assert decided == fold_log(job.log[:30], SLOTS)[1]


def test_of_a_batch_that_goes_further_the_rest_is_carried_out(job):
    head_start = job.begin(Beginning(0, True, 0, {}))
    job.write(20)
    head_start.start()
    wait_for("the head start", lambda: job.sinks.end() == 20)
    head_start.process_batch(0, job.fold.folded(job.log[:30]))
    batch_id, rest = job.sinks.carried_out[-1]
    assert batch_id == 0
    assert min(rest.time_ms) >= 20
    assert read_ahead(job.folders.checkpoint) == Ahead(0, 20, 30)


def test_a_query_that_is_behind_leaves_it_at_work(job, monkeypatch):
    monkeypatch.setattr("streaming.starting.catch_up._FEW", 1)
    head_start = job.begin(Beginning(0, True, 0, {}))
    job.write(20)
    head_start.start()
    wait_for("the head start", lambda: job.sinks.end() == 20)
    head_start.process_batch(0, job.fold.folded(job.log[:1]))
    job.write(30)
    wait_for("the head start", lambda: job.sinks.end() == 30)
    assert {batch_id for batch_id, _ in job.sinks.carried_out} == {None}


def test_a_query_that_comes_nearer_leaves_it_at_work(job, monkeypatch):
    """However many batches it takes; one that comes no nearer decides in the end."""
    monkeypatch.setattr("streaming.starting.catch_up._FEW", 0)
    monkeypatch.setattr("streaming.starting.catch_up._MOST_BATCHES", 3)
    head_start = job.begin(Beginning(0, True, 0, {}))
    head_start.start()

    def step(written: int, folded: int) -> bool:
        job.write(written)
        wait_for("the head start", lambda: job.sinks.end() == written)
        head_start.process_batch(folded, job.fold.folded(job.log[folded - 1 : folded]))
        return head_start._is_over

    assert not any(step(20, folded) for folded in range(1, 6))
    assert [step(18 + folded, folded) for folded in (6, 7, 8)] == [False, False, True]


def test_a_long_head_start_is_told_of(job, monkeypatch, caplog):
    monkeypatch.setattr("streaming.starting.head_start._LONG_S", 0.1)
    head_start = job.begin(Beginning(0, True, 0, {}))
    job.write(5)
    head_start.start()
    wait_for("a warning", lambda: "the query is not ready yet: 5 events" in caplog.text)


def test_a_query_that_decides_otherwise_is_told_of(job, caplog):
    head_start = job.begin(Beginning(0, True, 0, {}))
    job.write(20)
    head_start.start()
    wait_for("the head start", lambda: job.sinks.end() == 20)
    head_start.process_batch(0, Fold(SLOTS).folded([job.log[0], *job.log[3:20]]))
    assert "decided otherwise on the events 0 to 20" in caplog.text


def test_what_ends_it_ends_the_job(job, caplog):
    job.sinks.error = OSError("no space left")
    head_start = job.begin(Beginning(0, True, 0, {}))
    job.write(5)
    head_start.start()

    def failed() -> bool:
        try:
            head_start.check()
        except OSError:
            return True
        return False

    wait_for("the failure", failed)
    assert "nothing is decided until the job is started again" in caplog.text
    with pytest.raises(OSError, match="no space left"):
        head_start.process_batch(0, job.fold.folded(job.log[:5]))


def test_the_query_waits_for_the_batch_of_before_a_crash(job):
    note_ahead(job.folders.checkpoint, Ahead(0, 4, 9))
    head_start = job.begin(Beginning(0, True, 4, fold_log(job.log[:4], SLOTS)[0], first_end=9))
    job.write(20)
    waiting = threading.Thread(
        target=head_start.process_batch, args=[0, job.fold.folded(job.log[:20])]
    )
    waiting.start()
    head_start.start()
    waiting.join(30)
    assert not waiting.is_alive()
    _, first = job.sinks.carried_out[0]
    assert (min(first.time_ms), first.end_offset) == (4, 9)
    decided = [one for _, folded in job.sinks.carried_out for one in folded.decisions]
    assert decided == [one for one in fold_log(job.log[:20], SLOTS)[1] if one.offset >= 4]


def test_a_job_that_is_to_end_waits_for_nothing(job):
    head_start = job.begin(Beginning(0, True, 4, {}, first_end=9))
    head_start.start()
    job.stopped.set()
    with pytest.raises(JobStopping):
        head_start.process_batch(0, job.fold.folded(job.log[:9]))
    head_start.close()
    assert job.sinks.carried_out == []
