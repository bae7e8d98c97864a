"""Deletions end: whatever happened before, once all brokers are back and answer."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tests.logs.log_parts import BROKERS, TOPICS, deleting
from tests.logs.partition_intents import catch_up
from tests.logs.state_logs import INTENTS, SEEDS, Author, Intent, author_of, random_intents
from tests.logs.topic_intents import answer_deletions

MARKS = st.lists(st.integers(0, 5), min_size=1, max_size=3)


def bring_all_back(author: Author) -> None:
    """Every broker comes, or comes back, under a controller that decides."""
    if not author.decides():
        author.come_back(0, 1, 10, 1)
    known = set(author.registered)
    author.write(
        "broker_registrations_changed",
        registered=[author.broker(number) for number in BROKERS if number not in known],
        bounced=[author.broker(number) for number in sorted(known)],
    )


def end_reassignments(author: Author) -> None:
    """Leaders take every replica into their ISRs; a partition that nobody can lead stays."""
    for _ in range(3):
        for row in range(len(author.slot().table.rows)):
            catch_up(author, row, 0, 0, 0)


def answer_all(author: Author) -> None:
    """Brokers answer, one after the other, until nobody is asked any more."""
    for _ in range(50):
        asked = [number for number in BROKERS if deleting(author.slot(), number)]
        if not asked:
            return
        for _ in asked:
            answer_deletions(author, 0, 0, 1, 1)
    raise AssertionError("brokers are asked again and again")


@given(intents=INTENTS | SEEDS.map(random_intents), marks=MARKS)
def test_every_deletion_ends_when_all_brokers_are_back_and_answer(
    intents: list[Intent], marks: list[int]
) -> None:
    author = author_of(intents)
    bring_all_back(author)
    for topic in marks:
        name = TOPICS[topic]
        author.write("topic_deletion_requested", name, topic=name)
    marked = set(author.slot().table.deletions)
    end_reassignments(author)
    answer_all(author)
    slot = author.slot()
    stuck = slot.table.deletions_held_by_reassignment()
    rows = slot.table.rows
    at = np.flatnonzero(slot.table.is_of(stuck) & rows.in_motion(np.arange(len(rows))))
    assert not slot.online_leader(at).all() or not stuck
    assert slot.table.deletions.keys() <= stuck
    assert marked & {topic.name for topic in slot.table.topics} <= stuck
