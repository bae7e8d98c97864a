"""What a controller decided that was replaced before its writes came: nobody is told of it."""

from __future__ import annotations

from typing import Any

import pytest

from state.payloads.admin import REASSIGN_PARTITIONS_PATH
from state.protocol_errors import ProtocolError
from streaming.image.cluster_image import ClusterImage
from streaming.link.from_job import Delivered
from streaming.sinks.channel import Answer
from streaming.sinks.plan import SharedRequest
from streaming.wire.apis import ApiKey
from streaming.zk.znodes.admin import reassignment_bytes
from streaming.zk.znodes.paths import topic_path
from tests.property.control_actions import change_isr, end, fetching, start, topics
from tests.property.control_brokers import Broker
from tests.property.control_checks import (
    WrittenStates,
    check_agreement,
    check_nobody_is_left,
    settle,
)
from tests.property.control_loop import ControlLoop, stored_state
from tests.property.control_names import ObservedLoop
from tests.property.control_restarts import STEPS
from tests.property.control_terms import claim, claim_behind, finish_term, load

PLACE = ("t", 0)


class Told(ControlLoop):
    """A loop that keeps what brokers are told, the errors of replies, and of each batch whether it
    was fenced.
    """

    def __init__(self) -> None:
        self.heard: list[tuple[int, ApiKey]] = []
        self.errors: list[int] = []
        self.fenced: list[bool] = []
        super().__init__([])

    def hand(self, broker: Broker, request: SharedRequest) -> Answer:
        self.heard.append((broker.id, request.api))
        return super().hand(broker, request)

    def send(self, head: dict[str, Any], body: bytes = b"") -> None:
        self.errors += [one["error"] for one in head.get("replies", ())]
        self.fenced += [head["fenced"]] if head["type"] == "batch" else []
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


@pytest.mark.parametrize("with_election", [False, True])
def test_a_batch_of_nothing_but_a_reply_behind_a_fenced_one_says_that_we_are_replaced(
    with_election: bool,
) -> None:
    """The leader asks for the ISR that there is, which decides nothing that says its epoch; the
    load of the next term may begin behind it.
    """
    loop = Told()
    settle(loop, WrittenStates(loop))
    claim(loop)
    end(loop, loop.brokers[5])
    loop.run_batch()
    loop.errors.clear()
    asked = loop.log.alter("t", 0, [1, 2, 3], broker=1, broker_epoch=loop.brokers[1].epoch)
    load(loop)
    loop.run_batch(asked + 1 + with_election)
    assert loop.errors == [ProtocolError.NOT_CONTROLLER]


def test_batches_of_the_next_load_do_not_count_as_fenced() -> None:
    loop = Told()
    settle(loop, WrittenStates(loop))
    claim(loop)
    end(loop, loop.brokers[5])
    loop.fenced.clear()
    loop.run_batch()
    assert loop.fenced == [True]
    load(loop, gone="v")
    while loop.folded < len(loop.log.events):
        loop.run_batch(loop.folded + 1)
    assert len(loop.fenced) > 2
    assert not any(loop.fenced[1:])


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


def told_image(loop: ControlLoop) -> bytes:
    """What a front that comes now is told of the cluster."""
    return loop._pipeline._decided.message(Delivered({}))[1]


def test_a_front_is_not_told_what_was_fenced_though_the_job_restarts() -> None:
    """It keeps the image that it has."""
    loop = ObservedLoop([])
    states = WrittenStates(loop)
    settle(loop, states)
    claim(loop)
    end(loop, loop.brokers[1])
    states.run_batch()
    assert told_image(loop)
    loop.restart()
    assert not told_image(loop)
    start(loop, loop.brokers[1], "registered")
    states.run_batch()
    assert not told_image(loop)
    finish_term(loop)
    settle(loop, states)
    assert told_image(loop)
    check_agreement(loop)


def known_to(image: ClusterImage) -> tuple[list[str], int]:
    """The topics that an image knows, and how many partitions."""
    return image.topic_names(), len(image)


@pytest.mark.parametrize("together", [False, True])
def test_a_front_keeps_the_topics_that_it_knows_though_a_load_is_fenced(together: bool) -> None:
    """What the load found is lost with its writes; the next one finds it again."""
    loop = ObservedLoop([])
    states = WrittenStates(loop)
    settle(loop, states)
    known = known_to(loop.image)
    assert known == (["t", "u"], 2)
    claim(loop)
    end(loop, loop.brokers[1])
    load(loop)
    claim_behind(loop)
    while loop.folded < len(loop.log.events):
        loop.run_batch(None if together else loop.folded + 1)
    assert known_to(loop.image) == known
    assert known_to(ClusterImage.from_snapshot(told_image(loop))) == known
    finish_term(loop)
    settle(loop, states)
    assert known_to(loop.image) == known
    check_agreement(loop)


def test_a_broker_that_missed_its_election_leads_though_a_pause_comes_with_the_next_term() -> None:
    """The election was written in the term before the pause."""
    loop = ObservedLoop([])
    states = WrittenStates(loop)
    settle(loop, states)
    loop.slow = {2}
    end(loop, loop.brokers[1])
    loop.run_batch()
    loop.log.write("controller_paused", reason="upgrade")
    loop.run_batch()
    claim(loop)
    loop.restart()
    loop.slow = set()
    finish_term(loop)
    settle(loop, states)
    check_agreement(loop)


class Overtaken(ObservedLoop):
    """A loop in which our node is elected again while there is no job."""

    def go_on_without_job(self) -> None:
        super().go_on_without_job()
        claim(self)


def end_move(loop: ObservedLoop, request_id: str | None = "move") -> WrittenStates:
    """Move t-0 from 3 to 4 until 4 is in sync: the next batch ends the move."""
    states = WrittenStates(loop)
    settle(loop, states)
    if request_id is None:
        asked = reassignment_bytes({PLACE: [1, 2, 4]})
        loop.store.put(REASSIGN_PARTITIONS_PATH, asked)
    loop.log.move("t", {0: [1, 2, 4]}, request_id=request_id)
    settle(loop, states)
    leader = loop.brokers[1]
    change_isr(loop, leader, PLACE, [1, *fetching(loop, leader, PLACE)])
    loop.notice(loop.unnoticed.pop())
    return states


def check_3_has_lost_its_replica(loop: ObservedLoop, states: WrittenStates) -> None:
    """The end of the move is written; the next term knows nothing of 3."""
    assert topics(loop)["t"].replicas == {0: [1, 2, 4]}
    assert PLACE in loop.brokers[3].replicas
    finish_term(loop)
    settle(loop, states)
    check_nobody_is_left(loop)
    check_agreement(loop)


def test_a_replica_goes_that_was_moved_away_before_a_later_write_was_fenced() -> None:
    """The request under /admin is removed behind the end of the move."""
    loop = ObservedLoop([])
    states = end_move(loop, request_id=None)
    claim_behind(loop, topic_path("t"))
    loop.run_batch()
    assert REASSIGN_PARTITIONS_PATH in loop.store.nodes
    check_3_has_lost_its_replica(loop, states)


def test_a_replica_goes_that_a_job_moved_away_which_ended_before_it_was_replaced() -> None:
    """The batch runs again, finds the end of the move written, and is fenced."""
    loop = Overtaken([])
    states = end_move(loop)
    loop.ends_at = "before marks"
    loop.run_batch()
    assert loop.ends_at == "", "the step is reached"
    check_3_has_lost_its_replica(loop, states)
