"""ZooKeeper takes no write of a topic that is moved: the end is tried once an occasion, and the
rest goes on.
"""

from __future__ import annotations

from collections.abc import Collection

import pytest

from state.protocol_errors import ProtocolError
from streaming.sinks.answer_events import answer_events
from streaming.sinks.channel import Answer
from streaming.sinks.plan import SharedRequest
from streaming.wire.apis import ApiKey
from streaming.zk.znodes.paths import topic_path
from tests.property.control_actions import change_isr, fetching, start
from tests.property.control_brokers import Broker, Place
from tests.property.control_checks import (
    WrittenStates,
    assigned,
    check_agreement,
    restore,
    settle,
)
from tests.property.control_loop import BROKERS, ControlLoop, stored_state

MOVED, OTHER = ("x", 0), ("x", 1)


class DiskLoop(ControlLoop):
    """A loop whose brokers say that disks failed. failed: brokers and what they cannot store."""

    failed: Collection[tuple[int, Place]] = ()

    def hand(self, broker: Broker, request: SharedRequest) -> Answer:
        answer = super().hand(broker, request)
        if request.api is ApiKey.LEADER_AND_ISR:
            for one in answer.body["partition_errors"]:
                place = (one["topic_name"], one["partition_index"])
                if (broker.id, place) in self.failed:
                    one["error_code"] = ProtocolError.KAFKA_STORAGE_ERROR
            answer.body["topics"] = None
            self._answers += answer_events(answer, self.image)
        return answer

    def fail(self, id_: int, place: Place) -> None:
        self.failed = {(id_, place)}
        self.log.write("log_dir_failure_notified", broker_ids=[id_])


def moving(asking: Collection[int]) -> tuple[DiskLoop, WrittenStates]:
    """Both partitions of x are on 1, 2, 3; one moves to 1, 2, 4, which cannot be written."""
    loop = DiskLoop(asking)
    states = WrittenStates(loop)
    loop.log.create("x", [[1, 2, 3], [1, 2, 3]])
    settle(loop, states)
    loop.log.move("x", {0: [1, 2, 4]})
    settle(loop, states)
    loop.store.fixed = {topic_path("x")}
    return loop, states


def everybody_joins(loop: ControlLoop, states: WrittenStates) -> int:
    """All that fetch from the leader join its ISR; return how many batches that took."""
    leader, before = loop.brokers[1], loop.batches
    change_isr(loop, leader, MOVED, [1, *fetching(loop, leader, MOVED)])
    settle(loop, states)
    return loop.batches - before


def check_end(loop: DiskLoop, states: WrittenStates) -> None:
    """The move ends when a broker starts and the topic can be written."""
    loop.store.fixed, loop.failed = (), ()
    start(loop, loop.brokers[3], "bounced")
    settle(loop, states)
    assert assigned(loop, MOVED) == [1, 2, 4]
    restore(loop, states)
    check_agreement(loop)


@pytest.mark.parametrize("place", [MOVED, OTHER])
def test_a_failed_disk_does_not_have_a_rejected_end_tried_without_end(place: Place) -> None:
    loop, states = moving(BROKERS)
    change_isr(loop, loop.brokers[1], MOVED, [1, 2, 3, 4])
    loop.fail(3, place)
    settle(loop, states)
    assert sorted(assigned(loop, MOVED)) == [1, 2, 3, 4]
    check_end(loop, states)


@pytest.mark.parametrize("asking", [(), BROKERS])
def test_the_replica_that_goes_joins_again_and_stays_until_the_end_is_tried(
    asking: Collection[int],
) -> None:
    loop, states = moving(asking)
    everybody_joins(loop, states)
    everybody_joins(loop, states)
    state = stored_state(loop, MOVED)
    assert state is not None
    assert sorted(state["isr"]) == [1, 2, 3, 4]
    assert everybody_joins(loop, states) == 0, "nothing is left to be tried"
    check_end(loop, states)
