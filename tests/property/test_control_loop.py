"""Brokers die, change their ISRs and are moved while we control: whatever meets our writes, in the
end everybody agrees, and no acknowledged record is lost on the way.
"""

from __future__ import annotations

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tests.property.control_actions import ACTIONS, FREQUENT
from tests.property.control_checks import (
    WrittenStates,
    check_agreement,
    check_whole,
    has_left_its_data,
    restore,
    settle,
)
from tests.property.control_loop import BROKERS, ControlLoop

# No other controller takes over: in the midst of a move that was cancelled that is an open case.
ACTION = st.tuples(st.sampled_from([*FREQUENT, *ACTIONS]), st.integers(0, 63), st.integers(0, 255))
BATCHES = st.lists(st.lists(ACTION, max_size=6), min_size=8, max_size=14)
ASKING = st.sampled_from([(), (), (), (2, 4), BROKERS])


@given(asking=ASKING, batches=BATCHES)
@settings(derandomize=True, max_examples=3 * settings.default.max_examples)
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
    assume(not has_left_its_data(loop))
    check_agreement(loop)
    restore(loop, states)
    assume(not has_left_its_data(loop))
    check_agreement(loop)
    check_whole(loop)
