"""Another controller ended in the midst of a move that it took back, and we load what it left."""

from __future__ import annotations

from collections.abc import Collection

import pytest

from streaming.zk.znodes.paths import topic_path
from streaming.zk.znodes.topic import TopicZNode, topic_bytes
from tests.property.control_actions import change_isr, topics
from tests.property.control_brokers import Place
from tests.property.control_checks import (
    WrittenStates,
    check_agreement,
    check_whole,
    restore,
    settle,
)
from tests.property.control_loop import BROKERS, ControlLoop, stored_state
from tests.property.control_terms import claim, load

PLACE: Place = ("t", 0)
LISTED = [1, 2, 3]


def taken_back(asking: Collection[int], isr: list[int]) -> tuple[ControlLoop, WrittenStates]:
    """A cluster whose topic does not list 4 any more: another controller wrote that, and ended
    before it stopped 4. isr: what the leader asked for before.
    """
    loop = ControlLoop(asking)
    states = WrittenStates(loop)
    loop.log.move(PLACE[0], {0: [1, 2, 4]})
    settle(loop, states)
    change_isr(loop, loop.brokers[1], PLACE, isr)
    settle(loop, states)
    claim(loop)
    listed = {**topics(loop)[PLACE[0]].replicas, 0: LISTED}
    loop.store.change(topic_path(PLACE[0]), topic_bytes(TopicZNode(listed)))
    claim(loop)
    load(loop)
    settle(loop, states)
    return loop, states


def isr_of(loop: ControlLoop) -> list[int]:
    state = stored_state(loop, PLACE)
    assert state is not None
    return sorted(state["isr"])


@pytest.mark.parametrize("asking", [(), BROKERS])
def test_who_was_in_sync_leaves_the_isr_and_deletes_its_replica(asking: Collection[int]) -> None:
    loop, states = taken_back(asking, [1, 3, 4])
    assert isr_of(loop) == [1, 3]
    check_agreement(loop)
    restore(loop, states)
    check_agreement(loop)
    check_whole(loop)
    assert isr_of(loop) == LISTED


@pytest.mark.parametrize("asking", [(), BROKERS])
def test_who_gets_in_sync_later_leaves_no_leader_waiting(asking: Collection[int]) -> None:
    """The leader still has it among the replicas."""
    loop, states = taken_back(asking, [1, 3])
    change_isr(loop, loop.brokers[1], PLACE, [1, 3, 4])
    settle(loop, states)
    check_agreement(loop)
    change_isr(loop, loop.brokers[1], PLACE, LISTED)
    settle(loop, states)
    check_agreement(loop)
    assert isr_of(loop) == LISTED
