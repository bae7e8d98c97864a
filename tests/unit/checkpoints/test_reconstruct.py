"""How an event was decided: the elections, and why each other replica did not win."""

from __future__ import annotations

from typing import Any

import pytest

from checkpoints.fold import fold_state
from checkpoints.reconstruct import reconstruct
from state.decisions import Rule
from state.partitions.ballots import Finding
from tests.fixtures.story import Story

PORTS = {1: 11, 2: 12, 3: 13}


@pytest.fixture
def story() -> Story:
    story = Story()
    story.elect(PORTS)
    story.create("t", [[1, 2, 3]])
    story.create("other", [[1, 2]])
    return story


def findings(story: Story, **more: Any) -> dict[int, Finding]:
    found = reconstruct(story.events, "t", **more)
    assert found is not None
    (ballot,) = found.ballots
    return dict(ballot.candidates)


def test_a_creation_takes_the_first_live_replica(story: Story) -> None:
    assert findings(until(story, 4)) == {
        1: Finding.ELECTED,
        2: Finding.LATER_IN_LIST,
        3: Finding.LATER_IN_LIST,
    }


def until(story: Story, count: int) -> Story:
    cut = Story()
    cut.events = story.events[:count]
    return cut


def test_a_dead_leader_is_followed_by_the_first_in_sync(story: Story) -> None:
    story.alter("t", 0, [1, 3])
    story.unregister(1)
    assert findings(story) == {
        1: Finding.NOT_REGISTERED,
        2: Finding.NOT_IN_SYNC,
        3: Finding.ELECTED,
    }


def test_nobody_can_lead(story: Story) -> None:
    story.alter("t", 0, [1])
    story.unregister(1)
    found = reconstruct(story.events, "t")
    assert found is not None
    (ballot,) = found.ballots
    assert (ballot.leader, ballot.rule, ballot.unclean_allowed, ballot.isr) == (
        -1,
        Rule.OFFLINE_PARTITION_ELECTED,
        False,
        (1,),
    )
    assert found.registered == (2, 3)


def test_an_unclean_election_says_so(story: Story) -> None:
    story.alter("t", 0, [1])
    story.unregister(1)
    story.write("topic_config_changed", "t", topic="t", unclean=True)
    found = reconstruct(story.events, "t")
    assert found is not None
    (ballot,) = found.ballots
    assert (ballot.leader, ballot.rule) == (2, Rule.UNCLEAN_ELECTED)
    assert dict(ballot.candidates)[3] is Finding.LATER_IN_LIST


def test_a_broker_that_shuts_down_is_passed_over(story: Story) -> None:
    story.shut_down(1)
    assert findings(story) == {
        1: Finding.SHUTTING_DOWN,
        2: Finding.ELECTED,
        3: Finding.LATER_IN_LIST,
    }


def test_a_preferred_election_has_one_candidate(story: Story) -> None:
    story.shut_down(1)
    story.unregister(1)
    story.write(
        "elect_leaders_requested",
        "t",
        request_id=None,
        topic="t",
        election_type="preferred",
        partitions=[0],
    )
    assert findings(story) == {
        1: Finding.NOT_REGISTERED,
        2: Finding.NOT_PREFERRED,
        3: Finding.NOT_PREFERRED,
    }


def test_what_is_reconstructed_from_a_retained_state_is_the_same(story: Story) -> None:
    """Also where other topics share the slot, and the log's beginning is gone."""
    story.alter("t", 0, [1, 3])
    before, _ = fold_state(0, None, story.events)
    start = len(story.events)
    story.unregister(1)
    assert reconstruct(story.events[start:], "t") is None
    found = reconstruct(story.events[start:], "t", before)
    assert found is not None
    whole = reconstruct(story.events, "t")
    assert whole is not None
    assert found.ballots == whole.ballots


def test_deciding_notes_nothing(story: Story) -> None:
    """What is reconstructed is what was decided, and the state does not know of it."""
    story.unregister(1)
    state, decisions = fold_state(0, None, story.events)
    found = reconstruct(story.events, "t")
    assert found is not None
    of_last = [one for one in decisions if one.offset == len(story.events) - 1]
    assert {one.kind for one in found.decisions} == {one.kind for one in of_last}
    assert b"ballot" not in state
