"""What came of decisions: events for the log, replies for who asked."""

from __future__ import annotations

import uuid

import numpy as np
import orjson
import pytest

from state.decisions import DecisionKind
from state.events import Event, parse_payload
from state.protocol_errors import ProtocolError
from streaming.sinks.answer_events import answer_events
from streaming.sinks.batch import LostWrite
from streaming.sinks.batch_events import batch_events, lost_partition_events
from streaming.sinks.channel import NO_ERRORS, Answer
from streaming.sinks.doubts import Doubts
from streaming.sinks.replies import replies
from streaming.wire.apis import ApiKey
from streaming.zk.types import ZNode
from tests.fixtures.documented_events import assert_documented
from tests.fixtures.states import stored
from tests.unit.sinks.support import Job, lose, planner_of, refuse_creation, state_znode

EPOCH_ZK_VERSION = 1
TOPIC_ID = "xVg7K6qyTvmxpuD7RnqU_w"


def body(record):
    """The payload, which the machines must be able to read, and the specification names."""
    parse_payload(Event(9, 9, record.kind, record.key, record.payload))
    payload = orjson.loads(record.payload)
    assert_documented(record.kind, payload)
    return payload


def job(assignment=((1, 2, 3), (2, 3, 1)), topic_id=None):
    started = Job()
    started.story.elect({1: 11, 2: 12, 3: 13})
    started.story.create("t", assignment, topic_id=topic_id)
    started.persist(started.decide())
    return started


def conflict(topic, partition, znode, kind=DecisionKind.CHANGE_PARTITIONS, offset=5, **more):
    return LostWrite(offset, kind, topic, partition, znode, **more)


def test_conflicts_of_topics_of_one_name_that_have_ids_are_told_apart():
    events = lost_partition_events(
        [conflict("a", 1, None, topic_id=one) for one in ("y", None, TOPIC_ID, "y")]
    )
    assert [body(one).get("topic_id") for one in events] == [None, TOPIC_ID, "y"]
    assert [body(one)["partitions"] for one in events] == [[1], [1], [1]]


def test_conflicts_become_one_event_per_topic_with_what_the_znodes_hold():
    events = lost_partition_events(
        [
            conflict("b", 3, state_znode(2, 7, [2, 1], 9)),
            conflict("a", 1, None),
            conflict("b", 0, state_znode(1, 1, [1, 2, 3], 4)),
            conflict("b", 3, state_znode(2, 7, [2, 1], 9)),
            conflict("b", 5, ZNode(b"{broken", 8, 1, 1, 1, 0)),
            conflict("c", None, None, DecisionKind.REWRITE_ASSIGNMENT),
        ]
    )
    assert [(one.kind, one.key) for one in events] == [
        ("partition_states_observed", "a"),
        ("partition_states_observed", "b"),
    ]
    assert body(events[0]) == {
        "topic": "a",
        "cause": "conflict",
        "partitions": [1],
        "states": [None],
    }
    assert body(events[1]) == {
        "topic": "b",
        "cause": "conflict",
        "partitions": [0, 3, 5],
        "states": [
            stored(1, [1, 2, 3], leader_epoch=1, controller_epoch=1, zk_version=4),
            stored(2, [2, 1], leader_epoch=7, controller_epoch=1, zk_version=9),
            None,
        ],
    }


def test_the_machine_takes_a_conflict_and_decides_again():
    found = job()
    found.story.unregister(1)
    batch = found.decide()
    offset = lose(batch, "t", 0)
    written = state_znode(1, 0, [1, 3], 1)
    batch.lost_writes.append(conflict("t", 0, written, offset=offset))
    found.story.take((one.kind, one.key, one.payload) for one in batch_events(batch))
    again = found.persist(found.decide())
    (change,) = again.of_kind(DecisionKind.CHANGE_PARTITIONS)
    assert change.columns["leader"].tolist() == [3], "2 had left the ISR before"
    assert change.columns["leader_epoch"].tolist() == [1]
    assert change.columns["partition_epoch"].tolist() == [2]


def test_imbalance_is_summed_over_slots_and_told_to_all():
    found = Job(slots=4)
    found.story.elect({1: 11, 2: 12}, **{"auto.leader.rebalance.enable": True})
    armed = found.decide()
    (timer,) = armed.of_kind(DecisionKind.ARM_TIMER)
    for topic in ("t", "u", "v"):
        found.story.create(topic, [[1, 2], [2, 1]])
    found.story.unregister(2)
    found.story.register({2: 12})
    found.story.alter("t", 1, [1, 2], leader_epoch=1, partition_epoch=1)
    found.story.write(
        "timer_due", timer=timer.content["timer"], deadline_ms=timer.content["deadline_ms"]
    )
    events = [one for one in batch_events(found.decide()) if one.kind.startswith("leader_imb")]
    assert [body(one) for one in events] == [
        {
            "preferred": {"1": 3, "2": 3},
            "imbalanced": {"1": 0, "2": 3},
            "proposals": [["t", 1, 2]],
        }
    ]


def test_replies_without_losses_are_as_they_were_decided():
    found = job()
    found.story.alter("t", 0, [1, 2])
    found.story.ask_producer_ids(2)
    found.story.create("new", [[1]])
    batch = found.decide()
    answers = {one["api"]: one for one in replies(batch, Doubts(), {})}
    assert answers["alter_partition"]["partitions"] == [
        {
            "partition": 0,
            "error": 0,
            "leader": 1,
            "leader_epoch": 0,
            "isr": [1, 2],
            "recovery": 0,
            "partition_epoch": 1,
        }
    ]
    assert (answers["producer_ids"]["error"], answers["producer_ids"]["producer_id_len"]) == (
        0,
        1000,
    )
    assert (answers["create_topic"]["error"], answers["create_topic"]["partitions"]) == (0, 1)


def test_an_isr_that_was_not_written_is_refused_alone():
    found = job()
    found.story.alter("t", 0, [1, 2])
    found.story.alter("t", 1, [2, 3])
    batch = found.decide()
    lose(batch, "t", 0)
    first, second = replies(batch, Doubts(), {})
    assert first["partitions"] == [
        {"partition": 0, "error": int(ProtocolError.INVALID_UPDATE_VERSION)}
    ]
    assert second["partitions"][0]["error"] == 0


def test_an_isr_that_rests_on_a_lost_write_is_refused_though_nothing_was_to_write():
    found = job()
    found.story.alter("t", 0, [1, 2])
    asked_again = found.story.alter("t", 0, [1, 2], partition_epoch=1)
    doubts = Doubts()
    doubts.begin(("t", 0), asked_again - 1)
    answers = replies(found.decide(), doubts, {})
    assert [one["partitions"][0]["error"] for one in answers] == [
        ProtocolError.INVALID_UPDATE_VERSION,
        ProtocolError.INVALID_UPDATE_VERSION,
    ]


def test_a_request_about_no_known_topic_is_answered_as_decided():
    found = job()
    found.story.write(
        "alter_partition_requested",
        request_id="x",
        broker_id=1,
        broker_epoch=101,
        version=3,
        topic="",
        topic_id=TOPIC_ID,
        partitions=[
            {"partition": 4, "leader_epoch": 0, "partition_epoch": 0, "recovery": 0, "isr": [1]}
        ],
    )
    (answer,) = replies(found.decide(), Doubts(), {})
    assert answer["partitions"] == [{"partition": 4, "error": ProtocolError.UNKNOWN_TOPIC_ID}]


def test_leaders_that_did_not_move_remain_with_the_broker():
    found = job([[1, 2], [2, 1]])
    found.story.shut_down(1)
    batch = found.decide()
    (answer,) = replies(batch, Doubts(), {})
    assert (answer["error"], answer["remaining"]) == (0, [])
    lose(batch, "t", 0)
    lose(batch, "t", 1)
    (answer,) = replies(batch, Doubts(), {})
    assert answer["remaining"] == [["t", 0]], "it only followed t-1"


def test_leaders_that_nobody_can_take_over_remain():
    found = job([[1, 2]])
    found.story.alter("t", 0, [1])
    found.story.shut_down(1)
    answer = replies(found.decide(), Doubts(), {})[-1]
    assert answer["remaining"] == [["t", 0]]


def test_a_topic_that_exists_is_refused_and_forgotten():
    found = job()
    created = found.story.create("new", [[1]])
    batch = found.decide()
    refuse_creation(batch)
    (answer,) = replies(batch, Doubts(), {})
    assert (answer["error"], answer["message"]) == (
        ProtocolError.TOPIC_ALREADY_EXISTS,
        "Topic 'new' already exists.",
    )
    (event,) = batch_events(batch)
    assert (event.kind, event.key, body(event)) == (
        "topic_removed",
        "new",
        {"topic": "new", "observed_again": True, "since": created},
    )


def test_who_asked_a_controller_that_was_replaced_hears_that_it_was():
    found = job()
    found.story.create("new", [[1]])
    found.story.alter("t", 0, [1, 2])
    found.story.shut_down(2)
    found.story.ask_producer_ids(1)
    batch = found.decide()
    batch.fenced.add(EPOCH_ZK_VERSION)
    for one in batch.decisions:
        one.lost[:] = True
        one.failed = one.kind in (DecisionKind.CREATE_TOPIC, DecisionKind.WRITE_PRODUCER_ID_BLOCK)
    assert {one["api"]: one["error"] for one in replies(batch, Doubts(), {})} == {
        "create_topic": ProtocolError.NOT_CONTROLLER,
        "alter_partition": ProtocolError.NOT_CONTROLLER,
        "controlled_shutdown": ProtocolError.NOT_CONTROLLER,
        "producer_ids": ProtocolError.NOT_CONTROLLER,
    }
    assert batch_events(batch) == [], "a topic that was not created does not exist elsewhere"
    assert batch.refused_topics() == []


def answered(found, errors, *, flat=False, error_code=0, broker=2, topic="t"):
    """A broker's answer; flat: by name, as its version of the request wants it."""
    planned = planner_of(found.image).everything_for([broker])[broker]
    (request,) = [one for one in planned if one.api is ApiKey.LEADER_AND_ISR]
    entries = [{"partition_index": number, "error_code": code} for number, code in errors.items()]
    named = [{"topic_name": topic, **entry} for entry in entries]
    raw = bytes(request.rows.topic_ids[request.rows.topic_names.index(topic)])
    topic_id = uuid.UUID(bytes=raw) if any(raw) else None
    by_id = [{"topic_id": topic_id, "partition_errors": entries}]
    flat = flat or request.max_version < 5
    answer = {
        "error_code": error_code,
        "partition_errors": named if flat else None,
        "topics": None if flat else by_id,
    }
    return Answer(broker, 100 + broker, request, answer)


@pytest.mark.parametrize("topic_id, flat", [(None, True), (TOPIC_ID, True), (TOPIC_ID, False)])
def test_storage_errors_become_an_event_in_both_forms_of_the_answer(flat, topic_id):
    found = job(topic_id=topic_id)
    answer = answered(found, {0: ProtocolError.KAFKA_STORAGE_ERROR, 1: 0}, flat=flat)
    (event,) = answer_events(answer, found.image)
    assert (event.kind, event.key) == ("leader_and_isr_answered", "t")
    assert body(event) == {
        "broker_id": 2,
        "broker_epoch": 102,
        "topic": "t",
        "partitions": [0, 1],
        "errors": [ProtocolError.KAFKA_STORAGE_ERROR, ProtocolError.NONE],
    }


@pytest.mark.parametrize("topic", ["t", "u"])
def test_a_failed_disk_is_told_of_its_own_topic_where_none_has_an_id(topic):
    found = job()
    found.story.create("u", ((2, 1, 3),))
    found.persist(found.decide())
    (event,) = answer_events(
        answered(found, {0: ProtocolError.KAFKA_STORAGE_ERROR}, topic=topic), found.image
    )
    assert (event.key, body(event)["topic"]) == (topic, topic)


def test_healthy_answers_say_nothing_new_until_something_was_ill():
    found = job(topic_id=TOPIC_ID)
    healthy = answered(found, {0: 0, 1: 0}, flat=False)
    assert answer_events(healthy, found.image) == []
    (ill,) = answer_events(
        answered(found, {0: ProtocolError.KAFKA_STORAGE_ERROR, 1: 0}, flat=False), found.image
    )
    found.story.take([(ill.kind, ill.key, ill.payload)])
    found.persist(found.decide())
    (well,) = answer_events(healthy, found.image)
    assert body(well)["errors"] == [0, 0]
    found.story.take([(well.kind, well.key, well.payload)])
    found.decide()
    assert not any(slot.table.rows.offline_dir.any() for slot in found.fold.machines()[1:])


def test_answers_that_were_not_opened_say_what_healthy_ones_do():
    found = job(topic_id=TOPIC_ID)
    opened = answered(found, {0: 0, 1: 0}, flat=False)
    shut = Answer(2, 102, opened.request, NO_ERRORS)
    assert answer_events(shut, found.image) == []
    (ill,) = answer_events(
        answered(found, {0: ProtocolError.KAFKA_STORAGE_ERROR, 1: 0}, flat=False), found.image
    )
    found.story.take([(ill.kind, ill.key, ill.payload)])
    found.persist(found.decide())
    assert answer_events(shut, found.image) == answer_events(opened, found.image) != []


def test_stale_epochs_and_other_requests_are_no_events():
    found = job(topic_id=TOPIC_ID)
    assert (
        answer_events(
            answered(
                found,
                {0: ProtocolError.KAFKA_STORAGE_ERROR},
                flat=False,
                error_code=ProtocolError.STALE_CONTROLLER_EPOCH,
            ),
            found.image,
        )
        == []
    )
    assert (
        answer_events(
            answered(
                found,
                {0: ProtocolError.STALE_CONTROLLER_EPOCH, 1: ProtocolError.STALE_CONTROLLER_EPOCH},
                flat=False,
            ),
            found.image,
        )
        == []
    )
    metadata = planner_of(found.image).everything_for([2])[2][0]
    assert answer_events(Answer(2, 102, metadata, {"error_code": 0}), found.image) == []


def test_an_answer_about_a_topic_that_is_gone_by_now():
    found = job()
    answer = answered(found, {0: 0, 1: 0}, flat=True)
    found.story.remove("t", ((1, 2, 3), (2, 3, 1)))
    found.persist(found.decide())
    assert answer_events(answer, found.image) == []
    assert not np.any(found.image.columns["partition"])


def test_an_answer_of_a_broker_that_has_left_or_come_back_since():
    found = job()
    answer = answered(found, {0: ProtocolError.KAFKA_STORAGE_ERROR, 1: 0}, flat=False)
    assert len(answer_events(answer, found.image)) == 1
    found.story.unregister(2)
    found.persist(found.decide())
    assert answer_events(answer, found.image) == []
    found.story.register({2: 12}, add=200)
    found.persist(found.decide())
    assert answer_events(answer, found.image) == []
