"""Appending waits for the front, and what a batch has appended before is not appended again."""

from __future__ import annotations

import pytest

from streaming.link.job_side import AppendRefused, LinkDown
from streaming.log.api import LogRecord, NewRecord
from streaming.sinks import appender
from streaming.sinks.appender import JobStopping, SinkAppender


class FakeLink:
    """A link that is down a number of times."""

    def __init__(self, down: int = 0, end: int = 20) -> None:
        self.down = down
        self.end = end
        self.appended: list[NewRecord] = []

    def append(self, records):
        if self.down:
            self.down -= 1
            raise LinkDown("away")
        start, self.end = self.end, self.end + len(records)
        self.appended += records
        return start


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch):
    monkeypatch.setattr(appender, "_RETRY_S", 0)


def event(name):
    return NewRecord("topic_removed", name, name.encode())


def stored(offset, name):
    return LogRecord(offset, 5, "topic_removed", name, name.encode())


def test_an_append_waits_for_the_front():
    link = FakeLink(down=3)
    assert SinkAppender(link, lambda: False, unfolded=[]).append([event("a")]) == 20
    assert link.appended == [event("a")]


def test_an_event_that_the_log_never_takes_ends_the_batch_at_once():
    class Refusing:
        def append(self, records):
            raise AppendRefused("too large")

    with pytest.raises(AppendRefused, match="too large"):
        SinkAppender(Refusing(), lambda: False, unfolded=[]).append([event("a")])


def test_a_job_that_is_to_end_does_not_pretend_to_have_appended():
    link = FakeLink(down=100)
    with pytest.raises(JobStopping, match="2 events wait for the front: away"):
        SinkAppender(link, lambda: True, unfolded=[]).append([event("a"), event("b")])
    assert link.appended == []


def test_a_front_that_is_there_is_used_even_by_a_job_that_is_to_end():
    link = FakeLink()
    assert SinkAppender(link, lambda: True, unfolded=[]).append([event("a")]) == 20


def test_a_repeated_batch_appends_only_what_is_missing():
    link = FakeLink(end=31)
    unfolded = [stored(9, "a"), stored(15, "b"), stored(17, "c"), stored(18, "c")]
    door = SinkAppender(link, lambda: False, unfolded=unfolded)
    offsets = door.append_of_batch([event("a"), event("b"), event("c"), event("d")], 12)
    assert link.appended == [event("a"), event("d")], "offset 9 is an event that the batch folds"
    assert offsets == [31, 15, 17, 32]


def test_only_the_first_batch_can_have_been_there_before():
    link = FakeLink(end=31)
    door = SinkAppender(link, lambda: False, unfolded=[stored(15, "b")])
    assert door.append_of_batch([event("b")], 12) == [15]
    assert door.append_of_batch([event("b")], 14) == [31]
