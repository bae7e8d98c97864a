"""A job that ends at some step of a batch: its brokers get what they have not confirmed."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from state.topic_ids import topic_id_to_text
from streaming.log.api import NewRecord
from streaming.sinks.channel import Answer
from streaming.sinks.plan import SharedRequest
from streaming.wire.apis import ApiKey
from streaming.zk.znodes import TopicZNode, epoch_bytes, topic_bytes
from streaming.zk.znodes.controller import CONTROLLER_EPOCH_PATH
from streaming.zk.znodes.paths import (
    DELETE_TOPICS_PATH,
    partition_state_path,
    topic_deletion_path,
    topic_path,
)
from tests.property.control_actions import change_isr, end, let_go
from tests.property.control_brokers import Broker
from tests.property.control_checks import (
    WrittenStates,
    check_agreement,
    check_nobody_is_left,
    settle,
)
from tests.property.control_loop import ControlLoop, stored_state
from tests.property.control_names import ObservedLoop
from tests.property.control_restarts import STEPS, RestartingLoop
from tests.property.control_terms import claim, finish_term

PLACE = ("t", 0)
V = ("v", 0)
STEPS_OF_MOST = [one for one in STEPS if one != "amid delivery"]
"""Those of a batch that has requests for one broker alone too."""
STEPS_WITHOUT_EVENTS = [
    "before delivery",
    "after delivery",
    "before the commit",
    "after the commit",
]
"""Those of a batch whose writes have no outcome that becomes an event."""


@pytest.mark.parametrize("step", STEPS_OF_MOST)
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


ID_OF_V, ID_OF_NEXT_V = (topic_id_to_text(one.to_bytes(16, "big")) for one in (7, 8))
V_AND_BELOW = topic_path("v") + "/"


class Unstopped(ObservedLoop):
    """A loop in which no broker is to stop a replica."""

    def hand(self, broker: Broker, request: SharedRequest) -> Answer:
        assert request.api is not ApiKey.STOP_REPLICA, ("LOST: is to stop", broker, request.rows)
        return super().hand(broker, request)


def with_topic_v(loop: ObservedLoop, replicas: Sequence[int] = (1, 2, 3)) -> WrittenStates:
    """Create a topic v that has an id."""
    states = WrittenStates(loop)
    loop.log.create("v", [[*replicas]], topic_id=ID_OF_V)
    settle(loop, states)
    return states


def delete_v(loop: RestartingLoop) -> None:
    loop.log.write("delete_topic_requested", "v", request_id="delete", topic="v", topic_id=None)


def delete_v_and_end(loop: RestartingLoop, states: WrittenStates, step: str) -> None:
    delete_v(loop)
    loop.ends_at = step
    states.run_batch()
    assert loop.ends_at == "", "the step is reached"
    settle(loop, states)


@pytest.mark.parametrize("step", STEPS_OF_MOST)
def test_a_topic_whose_mark_for_deletion_was_rejected_keeps_its_replicas(step: str) -> None:
    loop = Unstopped([])
    states = with_topic_v(loop)
    loop.store.denied = DELETE_TOPICS_PATH
    delete_v_and_end(loop, states, step)
    assert topic_path("v") in loop.store.nodes
    check_agreement(loop)


@pytest.mark.parametrize("step", STEPS_WITHOUT_EVENTS)
def test_a_topic_whose_mark_for_deletion_was_fenced_keeps_its_replicas(step: str) -> None:
    """Another controller was elected before the mark was written."""
    loop = Unstopped([])
    states = with_topic_v(loop)
    loop.store.change(CONTROLLER_EPOCH_PATH, epoch_bytes(2))
    delete_v_and_end(loop, states, step)
    assert topic_path("v") in loop.store.nodes


def use_v_again(loop: ObservedLoop) -> WrittenStates:
    """Let the next batch write the state of v, which a load finds in deletion, delete it, and make
    another v.
    """
    states = with_topic_v(loop, [1, 2])
    loop.slow = {1, 2, 3}
    delete_v(loop)
    states.run_batch()
    loop.slow = set()
    claim(loop)
    finish_term(loop)
    loop.take_answers()
    loop.log.create("v", [[1, 3]], topic_id=ID_OF_NEXT_V)
    return states


def v_is_used_again() -> tuple[ObservedLoop, WrittenStates]:
    """A cluster whose next batch uses v again, and elects another leader as the first leaves."""
    loop = ObservedLoop([])
    states = use_v_again(loop)
    let_go(loop, loop.brokers[1])
    return loop, states


@pytest.mark.parametrize("step", STEPS_WITHOUT_EVENTS)
def test_a_batch_that_is_run_again_leaves_the_topic_that_took_the_name(step: str) -> None:
    """It has the version that the write of the old state expects."""
    loop, states = v_is_used_again()
    loop.ends_at = step
    states.run_batch()
    assert loop.ends_at == "", "the step is reached"
    settle(loop, states)
    check_agreement(loop)
    written = [one for one in loop.store.written if one.path == partition_state_path(*V)]
    assert [one.op for one in written if one.op != "set"] == ["create", "delete", "create"]


@pytest.mark.parametrize("step", ["", "before events", "after events", "after the commit"])
def test_a_topic_has_a_leader_though_a_write_of_the_one_before_it_was_lost(step: str) -> None:
    """Somebody wrote the state of the old one; what it was tells nothing of the new one."""
    loop, states = v_is_used_again()
    path = partition_state_path(*V)
    loop.store.change(path, loop.store.nodes[path].data)
    loop.ends_at = step
    states.run_batch()
    assert loop.ends_at == "", "the step is reached"
    settle(loop, states)
    check_agreement(loop)
    assert stored_state(loop, V)["leader"] == 3


@pytest.mark.parametrize("at_once", [False, True])
def test_a_topic_has_a_leader_though_the_one_before_it_was_gone_before_its_last_write(
    at_once: bool,
) -> None:
    """Somebody removed its znodes; the name is used again before the correction, or in the batch of
    that write.
    """
    loop = ObservedLoop([])
    with_topic_v(loop, [1, 2])
    end(loop, loop.brokers[1])
    ended = len(loop.log.events)
    for path in sorted(one for one in loop.store.nodes if f"{one}/".startswith(V_AND_BELOW)):
        loop.store.remove(path)
    loop.look()
    loop.log.create("v", [[2, 3]], topic_id=ID_OF_NEXT_V)
    if not at_once:
        loop.run_batch(ended)
        assert loop.log.events[-1].kind == "partition_states_observed"
    loop.run_batch()
    assert stored_state(loop, V)["leader"] == 2
    loop.run_batch()
    assert stored_state(loop, V)["leader"] == 2


class AskedMeanwhile(ObservedLoop):
    """A loop whose front is away while a correction waits for it: what is asked comes before."""

    awaited = False

    def append(self, events: list[NewRecord]) -> int:
        if self.awaited and any(one.kind == "partition_states_observed" for one in events):
            self.awaited = False
            change_isr(self, self.brokers[1], V, [1])
        return super().append(events)


def test_a_leader_that_asks_by_name_is_told_of_its_own_topic() -> None:
    """AlterPartition before version 2 names no id, and a write to the topic before was lost."""
    loop = AskedMeanwhile([1, 2, 3, 4, 5])
    states = use_v_again(loop)
    path = partition_state_path(*V)
    loop.store.change(path, loop.store.nodes[path].data)
    loop.awaited = True
    loop.run_batch()
    settle(loop, states)
    assert not loop.awaited
    assert stored_state(loop, V)["isr"] == [1]
    check_agreement(loop)


def test_a_deletion_that_has_begun_goes_on_though_its_mark_is_removed() -> None:
    """As without a restart: some brokers have deleted their replicas already."""
    loop = ObservedLoop([])
    states = with_topic_v(loop)
    loop.slow = {2}
    delete_v(loop)
    states.run_batch()
    del loop.store.nodes[topic_deletion_path("v")]
    loop.log.write("topic_deletion_withdrawn", "v", topic="v", topic_id=ID_OF_V)
    states.run_batch()
    assert V in loop.brokers[2].replicas
    loop.restart()
    check_nothing_is_left(loop, states)


STEPS_OF_ANY = [one for one in STEPS if one.endswith(("delivery", "commit"))]
"""Those of a batch from which nothing follows too."""


def v_moves() -> tuple[ObservedLoop, WrittenStates]:
    """A cluster where v-0 moves from 3 to 4."""
    loop = ObservedLoop([])
    states = with_topic_v(loop)
    loop.log.move("v", {0: [1, 2, 4]})
    settle(loop, states)
    return loop, states


def catch_up_with_v(loop: RestartingLoop) -> None:
    """4 is in sync, so that the move ends."""
    change_isr(loop, loop.brokers[1], V, [1, 2, 3, 4])
    loop.notice(V)
    loop.unnoticed.clear()


def check_nothing_is_left(loop: RestartingLoop, states: WrittenStates) -> None:
    assert loop.ends_at == "", "the step is reached"
    loop.slow = set()
    settle(loop, states)
    check_nobody_is_left(loop)
    check_agreement(loop)


@pytest.mark.parametrize("step", STEPS_OF_ANY)
def test_a_replica_that_leaves_as_a_deletion_starts_goes_too(step: str) -> None:
    """The deletion waited for the move, so that both end in one event."""
    loop, states = v_moves()
    delete_v(loop)
    settle(loop, states)
    catch_up_with_v(loop)
    loop.slow, loop.ends_at = {3}, step
    states.run_batch()
    check_nothing_is_left(loop, states)


@pytest.mark.parametrize("step", STEPS_OF_ANY)
def test_a_replica_of_a_cancelled_move_goes_though_a_deletion_starts(step: str) -> None:
    loop, states = v_moves()
    delete_v(loop)
    settle(loop, states)
    loop.log.move("v", {0: None})
    loop.slow, loop.ends_at = {4}, step
    states.run_batch()
    check_nothing_is_left(loop, states)


def test_a_replica_that_was_moved_away_goes_though_its_topic_is_gone() -> None:
    """All brokers but 3, which is to lose its replica, are done with the topic."""
    loop, states = v_moves()
    catch_up_with_v(loop)
    loop.slow = {3}
    states.run_batch()
    delete_v(loop)
    for _ in range(8):
        ControlLoop.take_answers(loop)
        loop.look()
        states.run_batch()
    assert topic_path("v") not in loop.store.nodes
    assert V in loop.brokers[3].replicas
    loop.log.create("w", [[1]])
    loop.ends_at = "after the commit"
    states.run_batch()
    check_nothing_is_left(loop, states)


def refused_while_3_is_slow() -> tuple[ObservedLoop, WrittenStates]:
    """A cluster where 3 is to lose its replica, and somebody else wrote the topic."""
    loop, states = v_moves()
    catch_up_with_v(loop)
    loop.slow = {3}
    states.run_batch()
    loop.store.change(topic_path("v"), loop.store.nodes[topic_path("v")].data)
    asked = {"topic": "v", "partitions": 2, "assignment": [[1, 2, 4]]}
    loop.log.write("create_partitions_requested", "v", request_id="grow", **asked)
    return loop, states


def test_a_replica_that_was_moved_away_goes_though_its_topic_is_not_read_again_yet() -> None:
    loop, states = refused_while_3_is_slow()
    states.run_batch()
    removed, observed = loop.log.events[loop.folded :]
    assert (removed.kind, observed.kind) == ("topic_removed", "topic_observed")
    loop.ends_at = "after the commit"
    loop.run_batch(removed.offset + 1)
    check_nothing_is_left(loop, states)


def test_a_replica_that_is_assigned_again_before_its_topic_is_read_again_stays() -> None:
    """Somebody else assigns it while there is no job."""
    loop, states = refused_while_3_is_slow()
    states.run_batch()
    removed, _ = loop.log.events[loop.folded :]
    data = topic_bytes(TopicZNode({0: [1, 2, 4, 3]}, ID_OF_V))
    loop.store.change(topic_path("v"), data)
    loop.ends_at = "after the commit"
    loop.run_batch(removed.offset + 1)
    loop.slow = set()
    loop.deliver_late()
    assert V in loop.brokers[3].replicas


def test_a_replica_of_which_the_state_is_unknown_stays() -> None:
    loop, states = refused_while_3_is_slow()
    states.run_batch()
    removed, _ = loop.log.events[loop.folded :]
    loop.store.change(partition_state_path(*V), b"{}")
    loop.ends_at = "after the commit"
    loop.run_batch(removed.offset + 1)
    loop.slow = set()
    loop.deliver_late()
    assert V in loop.brokers[3].replicas
