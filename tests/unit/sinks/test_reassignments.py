"""What the end of reassignments needs: order, holding back, who is told of a new replica."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from state.decisions import DecisionKind
from streaming.sinks.batch import DecidedBatch, LostWrite, SinkDecision
from streaming.sinks.batch_events import batch_events
from streaming.sinks.reassignments import (
    ended_requests,
    hold_back_completions,
    remove_ended,
    runs,
    without,
)
from streaming.wire.apis import ApiKey
from streaming.zk.ops import Delete
from streaming.zk.outcomes import OpOutcome, OutcomeKind
from streaming.zk.types import ZNode
from streaming.zk.znodes.admin import reassignment_bytes
from tests.unit.sinks.support import Job, lose, planner_of
from tests.unit.sinks.test_plan import decoded, led

COMPLETE, REWRITE = DecisionKind.COMPLETE_REASSIGNMENT, DecisionKind.REWRITE_ASSIGNMENT


def job() -> Job:
    """Topic t: partition 0 on brokers 1 and 2, partition 1 on 2 and 1; topic u on broker 1."""
    job = Job()
    job.story.elect({1: 11, 2: 12, 3: 13})
    job.story.create("t", [[1, 2], [2, 1]])
    job.story.create("u", [[1]])
    job.persist(job.decide())
    return job


def move(
    job: Job, topic: str, partition: int, target: list[int], request_id: str | None = "r"
) -> None:
    job.story.write(
        "alter_reassignments_requested",
        topic,
        request_id=request_id,
        topic=topic,
        partitions=[partition],
        targets=[target],
    )


def topic_writes(run: list[SinkDecision]) -> list[tuple[DecisionKind, str]]:
    return [(one.kind, one.topic) for one in run if one.kind in (COMPLETE, REWRITE)]


def test_a_topic_that_is_written_after_an_end_begins_a_run() -> None:
    moved = job()
    move(moved, "t", 0, [2, 1])
    move(moved, "u", 0, [3])
    move(moved, "t", 1, [1, 2])
    cut = list(runs(moved.decide().decisions))
    assert [topic_writes(run) for run in cut] == [
        [(REWRITE, "t"), (COMPLETE, "t"), (REWRITE, "u")],
        [(REWRITE, "t"), (COMPLETE, "t")],
    ]


def test_what_was_not_written_holds_its_own_topics_end_back() -> None:
    moved = job()
    move(moved, "t", 0, [2, 1])
    move(moved, "u", 0, [1])
    batch: DecidedBatch = moved.decide()
    lose(batch, "t", 0)
    hold_back_completions(batch, batch.decisions)
    of_t, of_u = batch.of_kind(COMPLETE)
    assert (of_t.failed, of_u.failed) == (True, False)
    assert {topic for topic, _ in ended_requests(batch, batch.decisions)} == {"u"}
    assert [(one.kind, one.key) for one in batch_events(batch)] == [("topic_removed", "t")]


@pytest.mark.parametrize("rejected", ["", "ZooKeeper answered NO_AUTH"])
def test_what_was_asked_of_a_topic_that_was_not_written_stays_unless_it_was_rejected(
    rejected: str,
) -> None:
    asked = job()
    move(asked, "t", 0, [3, 2], None)
    move(asked, "t", 1, [1, 2], None)
    move(asked, "u", 0, [1], None)
    batch: DecidedBatch = asked.decide()
    first, second = batch.of_kind(REWRITE)
    of_t, _ = batch.of_kind(COMPLETE)
    first.failed = second.failed = of_t.failed = True
    batch.lost_writes.append(LostWrite(first.offset, REWRITE, "t", None, None, rejected=rejected))
    gone = ended_requests(batch, batch.decisions)
    of_rejected = [("t", [(0, [3, 2])]), ("t", [(0, [3, 2])]), ("t", [[1, [1, 2]]])]
    assert gone == (of_rejected if rejected else []) + [("u", [[0, [1]]])]


def test_only_the_replicas_that_come_are_told_that_they_are_new() -> None:
    moved = job()
    move(moved, "t", 0, [3, 2])
    moved.persist(batch := moved.decide())
    plan = planner_of(moved.image).plan(batch.decisions)
    told = {id_: [decoded(one) for one in requests] for id_, requests in plan.items()}
    assert {id_: led(requests) for id_, requests in told.items()} == {
        1: {("t", 0): (1, 1, False)},
        2: {("t", 0): (1, 1, False)},
        3: {("t", 0): (1, 1, True)},
    }


def test_the_replicas_that_go_are_deleted_under_the_partitions_epoch() -> None:
    moved = job()
    move(moved, "t", 0, [2])
    moved.persist(batch := moved.decide())
    plan = planner_of(moved.image).plan(batch.decisions)
    (stop,) = [decoded(one) for one in plan[1] if one.api is ApiKey.STOP_REPLICA]
    (topic,) = stop.body["topic_states"]
    (state,) = topic["partition_states"]
    assert (state["delete_partition"], state["leader_epoch"]) == (True, 1)


def test_what_ended_goes_out_of_the_request_if_it_is_what_was_asked_for() -> None:
    asked = {("t", 0): [1, 2], ("t", 1): [2], ("u", 0): [3]}
    assert without(asked, [("t", [(0, [1, 2])])]) == {("t", 1): [2], ("u", 0): [3]}
    assert without(asked, [("t", [(0, [2, 1]), (7, None)])]) == asked
    assert without(asked, [("t", [(0, None)]), ("t", [(1, None)])]) == {("u", 0): [3]}


class LaggingSession:
    """A session with a server that has not heard of a request until it is told to catch up."""

    def __init__(self) -> None:
        self.asked: ZNode | None = None

    def sync(self) -> None:
        self.asked = ZNode(reassignment_bytes({("t", 0): [1, 2]}), 3, 1, 1, 1, 0)

    def get(self, path: str) -> ZNode | None:
        assert path == "/admin/reassign_partitions"
        return self.asked


def test_what_ended_is_taken_out_though_our_server_lags_behind_the_one_that_showed_it() -> None:
    written = []

    def write(ops: list) -> list[OpOutcome]:
        written.extend(ops)
        return [OpOutcome(OutcomeKind.WRITTEN)]

    ended = [("t", [(0, [1, 2])])]
    assert remove_ended(LaggingSession(), SimpleNamespace(write=write), ended)
    assert written == [Delete("/admin/reassign_partitions", 3)]
