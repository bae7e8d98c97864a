"""Which partitions that are led are served, and what the end of that leaves of them."""

from __future__ import annotations

from streaming.front.groups.terms import GroupTerms

EPOCHS = {0: 7, 1: 8}


def loaded() -> GroupTerms:
    """Partitions 0 and 1, loaded at offsets 10 and 20."""
    terms = GroupTerms()
    terms.elected(EPOCHS)
    terms.loaded(0, 10)
    terms.loaded(1, 20)
    return terms


def test_a_partition_is_served_once_all_that_was_loaded_is_decided() -> None:
    terms = loaded()
    assert terms.completed(10, EPOCHS) == []
    assert terms.completed(11, EPOCHS) == [0]
    assert [terms.is_served(one) for one in EPOCHS] == [True, False]
    assert terms.completed(99, EPOCHS) == [1], "each of them once"
    assert all(map(terms.is_served, EPOCHS))


def test_a_partition_whose_decisions_are_not_taken_is_not_served() -> None:
    terms = loaded()
    assert terms.completed(99, [1]) == [1]
    assert not terms.is_served(0)
    assert terms.completed(99, EPOCHS) == [0], "they are taken by now"


def test_what_is_not_served_any_more_is_led() -> None:
    terms = loaded()
    terms.completed(11, EPOCHS)
    terms.unserved()
    assert not any(map(terms.is_served, EPOCHS))
    assert {one: terms.epoch(one) for one in terms.led} == EPOCHS
    assert terms.completed(21, EPOCHS) == [1], "it is loaded"


def test_nothing_is_left_of_a_term_that_ended() -> None:
    terms = loaded()
    terms.completed(11, EPOCHS)
    terms.ended()
    assert terms.led == []
    assert not any(map(terms.is_served, EPOCHS))
    assert terms.completed(99, EPOCHS) == []
