"""Partitions that are taken over under epochs that a topic which was made again begins with."""

from __future__ import annotations

from state.groups.tables import CoordinatorPhase
from tests.unit.state.group_support import PARTITION, Coordinator


def phase(coordinator: Coordinator, kind: str, epoch: int | None, **more: bool) -> CoordinatorPhase:
    """What we are for the partition after an event about it."""
    coordinator.happen(f"group_partitions_{kind}", partitions=[PARTITION], epoch=epoch, **more)
    return coordinator.slot.phase(PARTITION)


def test_epochs_begin_anew_with_a_front() -> None:
    coordinator = Coordinator()
    assert phase(coordinator, "elected", 9) is CoordinatorPhase.OWNED
    coordinator.commit("g", [["a", 0, 5, -1, ""]])
    assert phase(coordinator, "resigned", None, unheard=True) is CoordinatorPhase.NONE
    assert coordinator.group("g") is None
    assert phase(coordinator, "elected", 1) is CoordinatorPhase.LOADING
    assert phase(coordinator, "loaded", 1) is CoordinatorPhase.OWNED


def test_an_unknown_epoch_alone_lets_no_older_one_count() -> None:
    coordinator = Coordinator()
    phase(coordinator, "elected", 9)
    assert phase(coordinator, "resigned", None) is CoordinatorPhase.NONE
    assert phase(coordinator, "elected", 8) is CoordinatorPhase.NONE
    assert phase(coordinator, "elected", 9) is CoordinatorPhase.LOADING


def test_a_front_begins_without_partitions_that_its_topic_does_not_have() -> None:
    coordinator = Coordinator()
    coordinator.commit("g", [["a", 0, 5, -1, ""]])
    ended = {"partitions": [0, 1], "epoch": None, "unheard": True, "every": True}
    coordinator.happen("group_partitions_resigned", **ended)
    assert coordinator.slot.phase(PARTITION) is CoordinatorPhase.NONE
    assert coordinator.group("g") is None


def test_partitions_that_are_elected_later_in_a_term_end_no_others() -> None:
    coordinator = Coordinator()
    coordinator.commit("g", [["a", 0, 5, -1, ""]])
    ended = {"partitions": [0, 1], "epoch": None, "unheard": True}
    coordinator.happen("group_partitions_resigned", **ended)
    assert coordinator.slot.phase(PARTITION) is CoordinatorPhase.OWNED
    assert coordinator.group("g") is not None
