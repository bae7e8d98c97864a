"""What depends on a topic's failed write is dropped, up to where the topic is read again."""

from __future__ import annotations

import pytest

from state.decisions import DecisionKind
from streaming.sinks.topic_dependents import drop_topic_dependents
from tests.fixtures.states import stored
from tests.unit.sinks.support import Job, changes


@pytest.fixture
def job() -> Job:
    started = Job()
    started.story.elect({1: 11, 2: 12, 3: 13})
    started.story.create("t", [[1, 2]])
    started.story.create("u", [[1, 2]])
    started.persist(started.decide())
    return started


def read_again(job: Job) -> int:
    """The topic is forgotten and read again."""
    job.story.write("topic_removed", "t", topic="t", observed_again=True)
    states = [stored(1, [1, 2], controller_epoch=1, zk_version=4)]
    return job.story.observe("t", [[1, 2]], states=states, zk_version=7, observed_again=True)


def decided_with_failure(job: Job):
    """Decide about what was asked for since, of which the first write of a topic failed."""
    batch = job.decide()
    batch.of_kind(DecisionKind.REWRITE_ASSIGNMENT)[0].failed = True
    drop_topic_dependents(batch, batch.decisions)
    return batch


def test_what_follows_is_lost_and_other_topics_are_not(job):
    first, second = job.story.move("t", {0: [3, 1]}), job.story.move("t", {0: [2, 3]})
    other = job.story.move("u", {0: [3, 1]})
    batch = decided_with_failure(job)
    assert {one.offset: one.lost.all() for one in changes(batch)} == {
        first: True,
        second: True,
        other: False,
    }
    failed = [one.failed for one in batch.of_kind(DecisionKind.REWRITE_ASSIGNMENT)]
    assert failed == [True, True, False]


def test_what_is_decided_after_the_topic_was_read_again_counts(job):
    """Nothing would tell the machine that it was not written."""
    lost = job.story.move("t", {0: [3, 1]})
    again = read_again(job)
    moved = job.story.move("t", {0: [2, 3]})
    batch = decided_with_failure(job)
    assert {one.offset: one.lost.any() for one in changes(batch)} == {
        lost: True,
        again: False,
        moved: False,
    }
    failed = [one.failed for one in batch.of_kind(DecisionKind.REWRITE_ASSIGNMENT)]
    assert failed == [True, False]


def test_a_write_that_fails_after_that_has_consequences_of_its_own(job):
    job.story.move("t", {0: [3, 1]})
    again = read_again(job)
    job.story.move("t", {0: [2, 3]})
    batch = job.decide()
    for one in batch.of_kind(DecisionKind.REWRITE_ASSIGNMENT):
        one.failed = True
    drop_topic_dependents(batch, batch.decisions)
    assert [one.offset for one in changes(batch) if not one.lost.any()] == [again]
