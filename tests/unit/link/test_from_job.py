"""What a job says comes to the front as it was, also from a job of another version."""

from __future__ import annotations

from typing import Any

import pytest

from state.decisions import Decision, DecisionKind
from streaming.link.from_job import (
    Append,
    BatchCompleted,
    Delivered,
    FromJob,
    Hello,
    ImageTold,
    PersistedDecisions,
    QueryFolded,
    Reobserve,
    Replies,
    by_broker,
)
from streaming.link.messages import HEADER_BYTES, decode_message, encode_message, frame_lengths
from streaming.log.api import NewRecord

# As they come over the wire: lists for tuples.
APPENDED: Any = [["k", "key", 2]]
PERSISTED: Any = [[4, "set_aside", 2]]
SAID = [
    Hello(7),
    Append(1, APPENDED),
    ImageTold({"a": 5}, True, 9, True, True, {"1": {"confirmed": 3}}, {"1": 0}),
    PersistedDecisions(PERSISTED, None),
    Replies([{"id": 1}]),
    BatchCompleted(3, 9, 1, 2, 3, True, 4, 5, 6, 0.5, {"unclean_elected": 1}, {"1": 2}),
    QueryFolded(9),
    Reobserve(["t", "u"], ["u"]),
    Delivered(by_broker({1: {"confirmed": 3}}), by_broker({1: 0})),
]


def over_the_wire(said: FromJob) -> dict[str, object]:
    frame = encode_message(said.head())
    cut = HEADER_BYTES + frame_lengths(frame[:HEADER_BYTES])[0]
    return decode_message(frame[HEADER_BYTES:cut], b"").head


@pytest.mark.parametrize("said", SAID, ids=lambda one: one.kind)
def test_a_message_comes_as_it_was_said(said):
    head = over_the_wire(said)
    assert head["type"] == said.kind
    assert type(said).read(head) == said


@pytest.mark.parametrize("said", SAID, ids=lambda one: one.kind)
def test_what_another_version_says_more_is_passed_over(said):
    assert type(said).read({**over_the_wire(said), "of another version": 1}) == said


def test_all_messages_are_tried():
    assert {one.kind for one in SAID} == {one.kind for one in FromJob.__subclasses__()}


def test_what_another_version_leaves_out_has_a_default():
    assert ImageTold.read({"type": "image"}) == ImageTold()
    batch = BatchCompleted.read({"type": "batch", "batch_id": None, "end_offset": 4})
    assert batch == BatchCompleted(None, 4)
    with pytest.raises(TypeError, match="end_offset"):
        BatchCompleted.read({"type": "batch", "batch_id": 1})


def test_sizes_travel_in_the_head():
    assert Append.of(3, [NewRecord("k", "key", b"ab")]) == Append(3, [("k", "key", 2)])
    decided = Decision(9, DecisionKind.SET_ASIDE, b"abc")
    assert PersistedDecisions.of(3, [decided]) == PersistedDecisions([(9, "set_aside", 3)], 3)


def test_the_figures_of_a_batch_are_what_it_says_of_itself():
    figures = BatchCompleted(3, 9, elections={"unclean_elected": 1}, queue_lengths={"1": 2})
    assert list(figures.figures())[:2] == ["batch_id", "end_offset"]
    assert not {"type", "elections", "queue_lengths"} & set(figures.figures())
