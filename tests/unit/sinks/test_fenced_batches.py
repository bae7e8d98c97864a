"""What a controller decided that was replaced before its writes came: nobody is told of it."""

from __future__ import annotations

from typing import Any

import pytest

from state.protocol_errors import ProtocolError
from streaming.sinks.channel import Answer
from streaming.sinks.plan import SharedRequest
from streaming.wire.apis import ApiKey
from tests.property.control_actions import end, start
from tests.property.control_brokers import Broker
from tests.property.control_checks import WrittenStates, check_agreement, settle
from tests.property.control_loop import ControlLoop, stored_state
from tests.property.control_names import ObservedLoop
from tests.property.control_restarts import STEPS
from tests.property.control_terms import claim, load

PLACE = ("t", 0)


class Told(ControlLoop):
    """A loop that keeps what brokers are told, and the errors of replies."""

    def __init__(self) -> None:
        self.heard: list[tuple[int, ApiKey]] = []
        self.errors: list[int] = []
        super().__init__([])

    def hand(self, broker: Broker, request: SharedRequest) -> Answer:
        self.heard.append((broker.id, request.api))
        return super().hand(broker, request)

    def send(self, head: dict[str, Any], body: bytes = b"") -> None:
        self.errors += [one["error"] for one in head.get("replies", ())]
        super().send(head, body)


def test_a_batch_without_writes_behind_a_fenced_one_is_not_told_to_brokers() -> None:
    """A leader was elected in vain; a broker that comes before the next election is in the log
    would hear of it.
    """
    loop = Told()
    states = WrittenStates(loop)
    end(loop, loop.brokers[3])
    settle(loop, states)
    claim(loop)
    loop.heard.clear()
    end(loop, loop.brokers[1])
    loop.run_batch()
    start(loop, loop.brokers[3], "registered")
    loop.run_batch()
    assert loop.heard == []
    load(loop)
    settle(loop, states)
    check_agreement(loop)


def test_a_batch_of_nothing_but_a_reply_behind_a_fenced_one_says_that_we_are_replaced() -> None:
    """The leader asks for the ISR that there is, which decides nothing that says its epoch."""
    loop = Told()
    settle(loop, WrittenStates(loop))
    claim(loop)
    end(loop, loop.brokers[5])
    loop.run_batch()
    loop.errors.clear()
    loop.log.alter("t", 0, [1, 2, 3], broker=1, broker_epoch=loop.brokers[1].epoch)
    loop.run_batch()
    assert loop.errors == [ProtocolError.NOT_CONTROLLER]


@pytest.mark.parametrize(
    "step", [one for one in STEPS if one.endswith(("delivery", "commit")) and "amid" not in one]
)
def test_a_job_that_restarts_does_not_tell_what_was_fenced(step: str) -> None:
    """The broker that led was away for a moment; the next term finds it as ZooKeeper has it."""
    loop = ObservedLoop([])
    states = WrittenStates(loop)
    settle(loop, states)
    loop.slow = {2}
    loop.log.create("w", [[2]])
    states.run_batch()
    claim(loop)
    end(loop, loop.brokers[1])
    loop.ends_at = step
    states.run_batch()
    assert loop.ends_at == "", "the step is reached"
    loop.deliver_late()
    before = stored_state(loop, PLACE)
    assert before is not None
    assert before["leader"] == 1
    loop.brokers[1].start()
    load(loop)
    loop.slow = set()
    settle(loop, states)
    check_agreement(loop)
