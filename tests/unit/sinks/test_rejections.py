"""Writes that ZooKeeper rejects, as events for the log and replies for who asked."""

from __future__ import annotations

from dataclasses import replace

import pytest

from state.decisions import DecisionKind
from state.protocol_errors import ProtocolError
from streaming.log.api import LogRecord
from streaming.sinks.batch_events import batch_events, lost_partition_events
from streaming.sinks.doubts import Doubts
from streaming.sinks.reassignments import hold_back_completions
from streaming.sinks.replies import replies
from streaming.zk.znodes import config_bytes
from tests.fixtures.states import stored
from tests.property.control_actions import bounce, change_isr, die
from tests.property.control_checks import WrittenStates, settle
from tests.property.control_loop import ControlLoop
from tests.unit.sinks.support import lose, state_znode
from tests.unit.sinks.test_batch_events import body, conflict, job
from tests.unit.sinks.test_doubts import lost

NO_AUTH = "ZooKeeper answered NO_AUTH for /x"


def rejected(topic, partition, znode, offset, **more):
    return replace(conflict(topic, partition, znode, offset=offset), rejected=NO_AUTH, **more)


def test_rejected_writes_become_an_event_of_their_own_with_what_the_znodes_hold():
    events = lost_partition_events(
        [
            rejected("a", 2, None, 5, creates=True),
            conflict("a", 1, state_znode(2, 7, [2, 1], 9)),
            rejected("a", 0, state_znode(1, 1, [1, 2, 3], 4), 5),
            rejected("a", 3, None, 5),
            rejected("a", 2, None, 4, creates=True),
        ]
    )
    assert [body(one)["cause"] for one in events] == ["conflict", "rejected"]
    assert body(events[1]) == {
        "topic": "a",
        "cause": "rejected",
        "partitions": [0, 2, 3],
        "states": [
            stored(1, [1, 2, 3], leader_epoch=1, controller_epoch=1, zk_version=4),
            None,
            None,
        ],
        "uncreated": [2],
        "since": [5, 4, 5],
    }


def test_a_leader_whose_isr_is_rejected_goes_on_from_what_is_stored():
    """No higher leader epoch comes, so it must not wait for one."""
    found = job()
    found.story.alter("t", 0, [1, 2])
    batch = found.decide()
    offset = lose(batch, "t", 0)
    batch.lost_writes.append(rejected("t", 0, state_znode(1, 0, [1, 2, 3], 0), offset))
    doubts = Doubts()
    doubts.lose_what_follows(batch)
    (event,) = batch_events(batch)
    late = found.story.alter("t", 0, [1], partition_epoch=1)
    doubts.end(event, late + 1)
    (answer,) = replies(batch, doubts, {})
    assert answer["partitions"] == [
        {"partition": 0, "error": ProtocolError.OPERATION_NOT_ATTEMPTED}
    ]
    (answer,) = replies(found.decide(), doubts, {})
    assert answer["partitions"] == [
        {"partition": 0, "error": ProtocolError.OPERATION_NOT_ATTEMPTED}
    ], "it rests on the rejected one"
    found.story.take([(event.kind, event.key, event.payload)])
    again = found.decide()
    doubts.forget_before(again.end_offset)
    assert not doubts.by_rejection("t", 0)
    found.story.alter("t", 0, [1, 2])
    (answer,) = replies(found.persist(found.decide()), doubts, {})
    assert answer["partitions"][0]["error"] == 0


def test_after_a_restart_an_isr_that_was_written_before_a_rejected_one_is_answered():
    """OPERATION_NOT_ATTEMPTED would have the leader go back to the one before."""
    found = job()
    written = found.story.alter("t", 0, [1, 2])
    offset = found.story.alter("t", 0, [1], partition_epoch=1)
    batch = found.decide()
    (event,) = lost_partition_events([rejected("t", 0, state_znode(1, 0, [1, 2], 1), offset)])
    said = LogRecord(offset + 3, 1, event.kind, event.key, event.payload)
    doubts = Doubts([said])
    doubts.lose_rows(batch.decisions)
    first, second = replies(batch, doubts, {})
    assert (first["partitions"][0]["error"], first["partitions"][0]["isr"]) == (0, [1, 2])
    assert second["partitions"] == [
        {"partition": 0, "error": ProtocolError.OPERATION_NOT_ATTEMPTED}
    ]
    assert {one[0] for one in lost(batch)} == {offset} != {written}


def test_who_asked_for_what_zookeeper_rejects_hears_why_and_need_not_ask_again():
    found = job()
    found.story.create("new", [[1]])
    found.story.write(
        "elect_leaders_requested",
        "t",
        request_id="e",
        topic="t",
        election_type="preferred",
        partitions=[0, 1],
    )
    batch = found.decide()
    (created,) = batch.of_kind(DecisionKind.CREATE_TOPIC)
    created.failed = True
    batch.lost_writes.append(rejected("new", None, None, created.offset, kind=created.kind))
    answers = {one["api"]: one for one in replies(batch, Doubts(), {})}
    assert answers["create_topic"]["error"] == ProtocolError.UNKNOWN_SERVER_ERROR
    assert answers["create_topic"]["message"] == f"ZooKeeper rejects it: {NO_AUTH}"
    assert [(one.kind, one.key) for one in batch_events(batch)] == [("topic_removed", "new")]


def test_a_deletion_that_cannot_be_marked_is_taken_back():
    found = job()
    found.story.write("delete_topic_requested", "t", request_id="d", topic="t")
    batch = found.decide()
    (mark,) = batch.of_kind(DecisionKind.MARK_TOPIC_DELETION)
    mark.failed = True
    batch.lost_writes.append(rejected("t", None, None, mark.offset, kind=mark.kind))
    doubts = Doubts()
    doubts.lose_what_follows(batch)
    stops = batch.of_kind(DecisionKind.STOP_REPLICAS)
    assert stops
    assert all(one.lost.all() for one in stops), "nobody deletes anything"
    (answer,) = replies(batch, doubts, {})
    assert answer["error"] == ProtocolError.UNKNOWN_SERVER_ERROR
    (event,) = batch_events(batch)
    said = {"topic": "t", "observed_again": True, "since": mark.offset}
    assert body(event) == said | {"unmarked": True}


def test_a_rejected_producer_id_block_that_may_not_be_read_says_nothing_about_it():
    found = job()
    found.story.ask_producer_ids(1)
    batch = found.decide()
    (write,) = batch.of_kind(DecisionKind.WRITE_PRODUCER_ID_BLOCK)
    write.failed = True
    batch.lost_writes.append(rejected(None, None, None, write.offset, kind=write.kind))
    doubts = Doubts()
    doubts.lose_what_follows(batch)
    assert batch_events(batch) == []
    assert doubts.subjects() == [], "no event would end it"
    assert [one["error"] for one in replies(batch, doubts, {})] == [
        ProtocolError.UNKNOWN_SERVER_ERROR
    ]


def test_an_end_is_held_back_by_a_rejected_partition_and_not_tried_again_at_once():
    """Else the topic would be observed, the reassignment resumed and rejected, without end."""
    found = job()
    found.story.write(
        "alter_reassignments_requested",
        "t",
        request_id="r",
        topic="t",
        partitions=[0],
        targets=[[3, 2, 1]],
    )
    batch = found.decide()
    offset = lose(batch, "t", 0)
    batch.lost_writes.append(rejected("t", 0, state_znode(1, 0, [1, 2, 3], 0), offset))
    hold_back_completions(batch, batch.decisions)
    (completed,) = batch.of_kind(DecisionKind.COMPLETE_REASSIGNMENT)
    assert completed.failed
    assert [(one.topic, one.partition, one.rejected) for one in batch.rejected] == [
        ("t", 0, NO_AUTH),
        ("t", None, NO_AUTH),
    ]


@pytest.mark.parametrize("stays", [False, True])
def test_who_starts_while_a_write_is_rejected_is_told_what_is_stored(stays):
    """It is not in sync, so that its start needs no write; it must not bring about another one."""
    loop = ControlLoop([])
    states = WrittenStates(loop)
    change_isr(loop, loop.brokers[1], ("t", 0), [1, 2])
    settle(loop, states)
    loop.store.failing = {"update": "NO_AUTH"}
    die(loop, 1, 0)
    bounce(loop, 1, 0)
    loop.run_batch()
    if not stays:
        loop.store.failing = {}
    settle(loop, states)
    known = loop.brokers[3].replicas["t", 0]
    assert (loop.brokers[3].starts, known.leader, known.epoch) == (1, 1, 0)


class Answering(ControlLoop):
    """A loop that keeps what requests are answered: id, error, whether something is said."""

    def __init__(self) -> None:
        self.answered: list[tuple[str, int, bool]] = []
        super().__init__([])
        self.log.create("x", [[1, 2]])
        settle(self, WrittenStates(self))
        self.answered.clear()

    def send(self, head, body=b""):
        self.answered += [
            (one["request_id"], one["error"], bool(one.get("message")))
            for one in head.get("replies", ())
        ]
        super().send(head, body)

    def ask(self, kind: str, *ids: str, **asked) -> None:
        for one in ids:
            self.log.write(kind, asked["topic"], request_id=one, **asked)

    def create(self, *ids: str, **configs: str) -> None:
        self.ask(
            "create_topic_requested",
            *ids,
            topic="new",
            topic_id=None,
            partitions=1,
            replication_factor=1,
            assignment={"0": [1]},
            configs=configs,
            validate_only=False,
            start_index=0,
            shift=0,
        )


@pytest.mark.parametrize("existing", [{}, {"retention.ms": "5"}])
def test_a_topic_whose_configuration_is_rejected_is_not_created(existing):
    """AdminZkClient.createTopicWithAssignment."""
    loop = Answering()
    config = "/config/topics/new"
    if existing:
        loop.store.put(config, config_bytes(existing))
    loop.store.denied = "/config/topics"
    loop.create("a", **{"cleanup.policy": "compact"})
    settle(loop, WrittenStates(loop))
    assert loop.answered == [("a", ProtocolError.UNKNOWN_SERVER_ERROR, True)]
    assert "/brokers/topics/new" not in loop.store.nodes
    assert "new" not in loop.image.topic_names()
    loop.store.denied = ""
    loop.create("b", **{"cleanup.policy": "compact"})
    settle(loop, WrittenStates(loop))
    assert loop.answered[1:] == [("b", ProtocolError.NONE, False)]
    assert loop.store.nodes[config].data == config_bytes({"cleanup.policy": "compact"})
    assert "new" in loop.image.topic_names()


MOVE = {"topic": "x", "partitions": [0], "targets": [[2, 3]]}
GROW = {"topic": "x", "partitions": 3, "assignment": None, "validate_only": False}
ASK_AGAIN = ("b", ProtocolError.NOT_CONTROLLER, False)


@pytest.mark.parametrize("in_one_batch", [True, False])
@pytest.mark.parametrize(
    ("kind", "asked", "first"),
    [
        ("alter_reassignments_requested", MOVE, ProtocolError.NOT_CONTROLLER),
        ("create_partitions_requested", GROW, ProtocolError.REASSIGNMENT_IN_PROGRESS),
    ],
)
def test_who_asks_for_what_another_request_has_not_written_is_to_ask_again(
    kind, asked, first, in_one_batch
):
    """The machine takes the second one for done already."""
    loop = Answering()
    path = "/brokers/topics/x"
    loop.store.change(path, loop.store.nodes[path].data)
    loop.ask(kind, "a", **asked)
    end = len(loop.log.events)
    loop.ask(kind, "b", **asked)
    loop.run_batch(None if in_one_batch else end)
    settle(loop, WrittenStates(loop))
    assert loop.answered[0][:2] == ("a", first)
    assert loop.answered[1:] == [ASK_AGAIN]


@pytest.mark.parametrize(
    ("denied", "ask"),
    [
        (
            "/admin/delete_topics",
            lambda loop: loop.ask("delete_topic_requested", "a", "b", topic="x"),
        ),
        ("/brokers/topics", lambda loop: loop.create("a", "b")),
    ],
    ids=["deletion", "creation"],
)
def test_so_is_who_asks_for_what_was_rejected(denied, ask):
    loop = Answering()
    loop.store.denied = denied
    ask(loop)
    settle(loop, WrittenStates(loop))
    assert loop.answered == [("a", ProtocolError.UNKNOWN_SERVER_ERROR, True), ASK_AGAIN]
