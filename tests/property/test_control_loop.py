"""Brokers die, change their ISRs and are moved while we control: whatever meets our writes, in the
end everybody agrees, and no acknowledged record is lost on the way.
"""

from __future__ import annotations

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tests.property.control_actions import ACTIONS, FREQUENT, change_isr, end, move_place, start
from tests.property.control_checks import (
    WrittenStates,
    assigned,
    check_agreement,
    check_nobody_is_left,
    check_whole,
    has_left_its_data,
    restore,
    settle,
    unaware_leaders,
)
from tests.property.control_loop import BROKERS, ControlLoop, stored_state

# What another controller leaves behind in the midst of a move: test_control_takeovers.
ACTION = st.tuples(st.sampled_from([*FREQUENT, *ACTIONS]), st.integers(0, 63), st.integers(0, 255))
BATCHES = st.lists(st.lists(ACTION, max_size=6), min_size=8, max_size=14)
ASKING = st.sampled_from([(), (), (), (2, 4), BROKERS])
PLACE = ("t", 0)


@given(asking=ASKING, batches=BATCHES)
@settings(derandomize=True, max_examples=2 * settings.default.max_examples)
def test_everybody_agrees_in_the_end(
    asking: tuple[int, ...], batches: list[list[tuple[str, int, int]]]
) -> None:
    loop = ControlLoop(asking)
    states = WrittenStates(loop)
    for batch in batches:
        for name, a, b in batch:
            ACTIONS[name](loop, a, b)
        states.run_batch()
    settle(loop, states)
    assume(not has_left_its_data(loop) and not unaware_leaders(loop))
    check_agreement(loop)
    restore(loop, states)
    assume(not has_left_its_data(loop))
    check_agreement(loop)
    check_whole(loop)


def cancel_while_4_alone_is_in_sync(loop: ControlLoop) -> WrittenStates:
    """Have 4 lead, write an ISR of its own, and its move cancelled before that is noticed."""
    states = WrittenStates(loop)
    loop.log.move("t", {0: [4, 2]})
    settle(loop, states)
    change_isr(loop, loop.brokers[1], PLACE, [1, 3, 4])
    settle(loop, states)
    end(loop, loop.brokers[1])
    settle(loop, states)
    start(loop, loop.brokers[1], "registered")
    settle(loop, states)
    assert loop.brokers[4].leads() == [PLACE]
    change_isr(loop, loop.brokers[4], PLACE, [4])
    move_place(loop, PLACE, b=0)
    return states


def cancelled_while_4_alone_is_in_sync() -> tuple[ControlLoop, WrittenStates]:
    """A cluster where 4 leads although its move was cancelled."""
    loop = ControlLoop(())
    states = cancel_while_4_alone_is_in_sync(loop)
    settle(loop, states)
    assert sorted(assigned(loop, PLACE)) == [1, 2, 3]
    check_leads(loop, 4)
    return loop, states


def check_leads(loop: ControlLoop, id_: int) -> None:
    """A broker leads alone, and knows it."""
    state = stored_state(loop, PLACE)
    assert state is not None
    assert (state["leader"], state["isr"]) == (id_, [id_])
    replica = loop.brokers[id_].replicas[PLACE]
    assert (replica.leader, replica.epoch) == (id_, state["leader_epoch"])


def test_a_broker_that_alone_is_in_sync_leads_when_it_comes_back_until_others_are() -> None:
    loop, states = cancelled_while_4_alone_is_in_sync()
    end(loop, loop.brokers[4])
    settle(loop, states)
    start(loop, loop.brokers[4], "registered")
    settle(loop, states)
    check_leads(loop, 4)
    check_agreement(loop)
    restore(loop, states)
    check_agreement(loop)
    check_whole(loop)
    assert sorted(assigned(loop, PLACE)) == [1, 2, 3]
    assert PLACE not in loop.brokers[4].replicas


def delete_place(loop: ControlLoop) -> None:
    topic = PLACE[0]
    asked = {"topic": topic, "topic_id": None}
    loop.log.write("delete_topic_requested", topic, request_id="delete", **asked)


def test_an_unlisted_leader_deletes_its_replica_with_the_topic() -> None:
    loop, states = cancelled_while_4_alone_is_in_sync()
    delete_place(loop)
    settle(loop, states)
    check_nobody_is_left(loop)


def test_who_turns_out_to_lead_unlisted_a_topic_that_goes_deletes_its_replica() -> None:
    loop = ControlLoop(())
    states = cancel_while_4_alone_is_in_sync(loop)
    delete_place(loop)
    settle(loop, states)
    check_nobody_is_left(loop)
