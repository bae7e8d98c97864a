"""The job ends at any step of a batch and begins again, our node is elected again, names of topics
are used again, and brokers take their requests late: in the end everybody agrees, as in
`test_control_loop`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tests.property.control_actions import ACTIONS, FREQUENT
from tests.property.control_checks import (
    WrittenStates,
    check_agreement,
    check_nobody_is_left,
    check_whole,
    has_left_its_data,
    restore,
    settle,
    unaware_leaders,
)
from tests.property.control_names import NAME_ACTIONS, ObservedLoop
from tests.property.control_restarts import STEPS, RestartingLoop
from tests.property.control_terms import TERM_ACTIONS, finish_term, has_outdated_leader
from tests.property.test_control_loop import (
    ASKING,
    cancel_while_4_alone_is_in_sync,
    check_leads,
    delete_place,
)

ALL: Mapping[str, Callable[[Any, int, int], None]] = {**ACTIONS, **NAME_ACTIONS, **TERM_ACTIONS}
OFTEN = [*[*NAME_ACTIONS] * 4, *["renew"] * 25, *[*TERM_ACTIONS] * 8]
NAMES_OF_ACTIONS = [*FREQUENT, *ALL, *OFTEN]
ACTION = st.tuples(st.sampled_from(NAMES_OF_ACTIONS), st.integers(0, 63), st.integers(0, 255))
BATCH = st.tuples(st.lists(ACTION, max_size=6), st.sampled_from(["", *STEPS]))


@given(asking=ASKING, batches=st.lists(BATCH, min_size=8, max_size=14))
@settings(derandomize=True, max_examples=3 * settings.default.max_examples // 5)
def test_everybody_agrees_whenever_the_job_ended(
    asking: tuple[int, ...], batches: list[tuple[list[tuple[str, int, int]], str]]
) -> None:
    loop = ObservedLoop(asking)
    states = WrittenStates(loop)
    for batch, step in batches:
        for name, a, b in batch:
            ALL[name](loop, a, b)
        loop.ends_at = step
        states.run_batch()
    loop.ends_at = ""
    finish_term(loop)
    settle(loop, states)
    assume(not has_left_its_data(loop) and not unaware_leaders(loop))
    assume(not has_outdated_leader(loop))
    check_agreement(loop)
    restore(loop, states)
    assume(not has_left_its_data(loop))
    check_agreement(loop)
    check_whole(loop)


def test_a_job_that_restarts_leaves_who_alone_is_in_sync_its_replica() -> None:
    """The removal that the cancelled move decided was lost, but is in the decision log."""
    loop = RestartingLoop(())
    states = cancel_while_4_alone_is_in_sync(loop)
    loop.slow = {4}
    loop.log.create("other", [[4]])  # of which 4 has not confirmed that it knows
    states.run_batch()
    loop.ends_at = "after the commit"
    states.run_batch()
    assert not loop.ends_at
    loop.slow = set()
    settle(loop, states)
    check_leads(loop, 4)


def test_an_unlisted_leader_deletes_its_replica_with_the_topic_though_the_job_restarts() -> None:
    loop = RestartingLoop(())
    states = cancel_while_4_alone_is_in_sync(loop)
    settle(loop, states)
    loop.slow = {4}
    delete_place(loop)
    loop.ends_at = "after the commit"
    states.run_batch()
    assert not loop.ends_at
    loop.slow = set()
    settle(loop, states)
    check_nobody_is_left(loop)
