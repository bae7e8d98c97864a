"""A job that ends at some step of a batch: its brokers get what they have not confirmed."""

from __future__ import annotations

import pytest

from tests.property.control_actions import change_isr
from tests.property.control_checks import WrittenStates, check_agreement, settle
from tests.property.control_restarts import STEPS, RestartingLoop

PLACE = ("t", 0)
NOT_FOUND_AGAIN = {"after the commit"}
"""The image that a job begins with lacks partitions in doubt: a removal that its broker had not
confirmed is not found then, and the replica stays where it is.
"""


@pytest.mark.parametrize(
    "step", [one for one in STEPS if one != "amid delivery" and one not in NOT_FOUND_AGAIN]
)
def test_a_broker_that_a_cancelled_move_was_to_add_deletes_its_replica(step: str) -> None:
    """The state of the partition met an ISR that its leader wrote: the end of the move is held
    back, and the topic is read again, while the assignment that does not list 4 is written.
    """
    loop = RestartingLoop([])
    states = WrittenStates(loop)
    settle(loop, states)
    loop.log.move("t", {0: [1, 2, 4]})
    settle(loop, states)
    change_isr(loop, loop.brokers[1], PLACE, [1, 2])
    loop.log.move("t", {0: None})
    loop.slow, loop.ends_at = {4}, step
    loop.run_batch()
    assert loop.ends_at == "", "the step is reached"
    assert PLACE in loop.brokers[4].replicas
    loop.slow = set()
    settle(loop, states)
    assert PLACE not in loop.brokers[4].replicas
    check_agreement(loop)
