"""What rests on a lost write is lost too, until the machine has heard what the znode holds."""

from __future__ import annotations

import orjson
import pytest

from state.decisions import DecisionKind
from state.protocol_errors import ProtocolError
from streaming.log.api import LogRecord, NewRecord
from streaming.sinks.batch import LostWrite
from streaming.sinks.batch_events import batch_events
from streaming.sinks.doubts import Doubts, forget_doubted
from streaming.sinks.replies import replies
from tests.fixtures.states import stored
from tests.unit.sinks.support import Job, changes, lose, refuse_creation, state_znode

EARLIER, LATER = "xVg7K6qyTvmxpuD7RnqU_w", "yVg7K6qyTvmxpuD7RnqU_w"
REMOVED = orjson.dumps({"topic": "u", "topic_id": EARLIER})


def job():
    started = Job()
    started.story.elect({1: 11, 2: 12, 3: 13})
    started.story.create("t", [[1, 2, 3], [2, 3, 1]])
    started.persist(started.decide())
    return started


def lost(batch):
    """(offset, kind, topic, partition) of lost rows of changes and stops."""
    return {
        (one.offset, str(one.kind), one.topics[topic], partition)
        for one in batch.decisions
        if one.columns
        for topic, partition, gone in zip(
            one.columns["topic"].tolist(),
            one.columns["partition"].tolist(),
            one.lost.tolist(),
            strict=True,
        )
        if gone
    }


def conflicting(found, batch, topic, partition):
    offset = lose(batch, topic, partition)
    znode = state_znode(2, 5, [2], 9)
    batch.lost_writes.append(
        LostWrite(offset, DecisionKind.CHANGE_PARTITIONS, topic, partition, znode)
    )
    return offset


def test_later_rows_of_the_partition_are_lost_even_those_without_a_write():
    found = job()
    found.story.unregister(1)
    found.story.register({1: 11}, add=200)
    found.story.shut_down(3)
    batch = found.decide()
    first = conflicting(found, batch, "t", 0)
    Doubts().lose_what_follows(batch)
    assert lost(batch) == {
        (first, "change_partitions", "t", 0),
        (first + 1, "change_partitions", "t", 0),
        (first + 2, "change_partitions", "t", 0),
        (first, "stop_replicas", "t", 0),
        (first + 2, "stop_replicas", "t", 0),
    }
    assert sum(one.offset == first + 1 for one in changes(batch)) == 1


def test_earlier_rows_and_other_partitions_stand():
    found = job()
    found.story.alter("t", 0, [1, 2])
    found.story.unregister(3)
    batch = found.decide()
    offset = conflicting(found, batch, "t", 1)
    Doubts().lose_what_follows(batch)
    assert {one for one in lost(batch) if one[1] == "change_partitions"} == {
        (offset, "change_partitions", "t", 1)
    }


def test_batches_before_the_correction_are_in_doubt_and_the_correction_is_not():
    found = job()
    doubts = Doubts()
    found.story.unregister(1)
    batch = found.decide()
    conflicting(found, batch, "t", 0)
    doubts.lose_what_follows(batch)
    (event,) = batch_events(batch)

    late = found.story.register({1: 11}, add=200)  # was in the log before the correction
    correction = late + 1
    doubts.end(event, correction)
    found.story.take([(event.kind, event.key, event.payload)])
    found.story.unregister(3)
    batch = found.decide()
    doubts.lose_rows(batch.decisions)
    assert {(offset, topic, number) for offset, _, topic, number in lost(batch)} == {(late, "t", 0)}
    doubts.lose_what_follows(batch)
    assert len(lost(batch)) == 1
    doubts.forget_before(batch.end_offset)
    assert doubts.subjects() == []


def taken_back():
    """A job whose topic t is to let go of broker 4 again: its batch, and the doubtful offset."""
    found = job()
    found.story.register({4: 14})
    found.story.move("t", {0: [1, 2, 4]})
    found.persist(found.decide())
    offset = found.story.move("t", {0: None})
    return found, offset


@pytest.mark.parametrize(
    ("isr", "stands"), [([1], True), ([1, 4], True), ([4, 1], False), ([4], False), (None, False)]
)
def test_a_stop_of_what_a_topic_no_longer_lists_stands_unless_it_may_be_needed(isr, stands):
    """The first in the ISR leads."""
    found, offset = taken_back()
    batch = found.decide()
    lose(batch, "t", 0)
    znode = None if isr is None else state_znode(isr[0], 1, isr, 9)
    met = LostWrite(offset, DecisionKind.CHANGE_PARTITIONS, "t", 0, znode)
    batch.lost_writes.append(met)
    Doubts().lose_what_follows(batch)
    assert ((offset, "stop_replicas", "t", 0) not in lost(batch)) is stands
    assert (offset, "change_partitions", "t", 0) in lost(batch)


def test_no_stop_stands_whose_topic_was_not_written():
    found, offset = taken_back()
    batch = found.decide()
    (rewritten,) = batch.of_kind(DecisionKind.REWRITE_ASSIGNMENT)
    rewritten.failed = True
    batch.lost_writes.append(
        LostWrite(offset, rewritten.kind, "t", None, state_znode(1, 1, [1], 9))
    )
    Doubts().lose_what_follows(batch)
    assert (offset, "stop_replicas", "t", 0) in lost(batch)


@pytest.mark.parametrize(("isr", "stands"), [([1], True), ([4, 1], False)])
def test_a_stop_decided_while_an_earlier_write_is_in_doubt_stands_as_well(isr, stands):
    found, offset = taken_back()
    state = stored(isr[0], isr, leader_epoch=1, controller_epoch=1, zk_version=9)
    body = {"topic": "t", "cause": "conflict", "partitions": [0], "states": [state]}
    correction = NewRecord("partition_states_observed", "t", orjson.dumps(body))
    doubts = Doubts()
    doubts.begin(("t", 0), offset - 1)
    doubts.end(correction, offset + 1)
    batch = found.decide()
    doubts.lose_rows(batch.decisions)
    assert ((offset, "stop_replicas", "t", 0) not in lost(batch)) is stands


def test_a_doubt_is_kept_until_the_correction_is_folded():
    doubts = Doubts()
    doubts.begin(("t", 0), 5)
    doubts.begin(("t", 0), 7)
    assert [doubts.cover("t", 0, at) for at in (4, 5, 1 << 60)] == [False, True, True]
    assert not doubts.cover("t", 1, 6)
    payload = orjson.dumps({"topic": "t", "cause": "conflict", "partitions": [0], "states": [None]})
    doubts.end(NewRecord("partition_states_observed", "t", payload), 12)
    doubts.forget_before(12)
    assert doubts.subjects() == []
    doubts.end(NewRecord("partition_states_observed", "t", payload), 12)
    doubts.forget_before(11)
    assert [doubts.cover("t", 0, at) for at in (0, 11, 12)] == [True, True, False]


def test_a_topic_with_an_id_is_in_doubt_apart_from_the_next_one_of_its_name():
    """EARLIER was not written; what is decided about a topic whose id is not known may be about
    it.
    """
    doubts = Doubts()
    doubts.begin(("t", 0), 5, topic_id=EARLIER)
    assert [doubts.cover("t", 0, 6, one) for one in (EARLIER, LATER, None)] == [True, False, True]
    doubts.begin(("t", 0), 7, topic_id=LATER)
    ended = {"topic": "t", "cause": "conflict", "partitions": [0], "states": [None]}
    for offset, topic_id in ((9, EARLIER), (12, LATER)):
        payload = orjson.dumps({**ended, "topic_id": topic_id})
        doubts.end(NewRecord("partition_states_observed", "t", payload), offset)
        doubts.forget_before(offset - 1)
        assert doubts.cover("t", 0, offset - 1, topic_id)
        assert not doubts.cover("t", 0, offset, topic_id)
    doubts.begin(("t", 0), 13, topic_id=EARLIER)
    assert doubts.cover("t", 0, 13, EARLIER)


def test_what_is_decided_between_two_doubts_counts():
    doubts = Doubts()
    removed = NewRecord("topic_removed", "t", b'{"topic":"t","observed_again":true}')
    doubts.begin(("t", None), 5)
    doubts.end(removed, 8)
    doubts.begin(("t", None), 10)
    covered = [doubts.cover("t", 0, at) for at in (4, 5, 7, 8, 9, 10, 1 << 60)]
    assert covered == [False, True, True, False, False, True, True]
    doubts.end(removed, 12)
    doubts.forget_before(8)
    assert [doubts.cover("t", 0, at) for at in (7, 9, 10, 11, 12)] == [
        False,
        False,
        True,
        True,
        False,
    ]


def test_a_refused_topic_is_in_doubt_as_a_whole():
    found = job()
    created = found.story.create("new", [[1, 2], [2, 1]])
    found.story.unregister(1)
    batch = found.decide()
    refuse_creation(batch)
    doubts = Doubts()
    doubts.lose_what_follows(batch)
    gone = {(offset, topic, number) for offset, _, topic, number in lost(batch)}
    assert gone == {(at, "new", number) for at in (created, created + 1) for number in (0, 1)}
    (event,) = batch_events(batch)
    doubts.end(event, 20)
    assert doubts.cover("new", 1, 19)
    assert not doubts.cover("new", 1, 20)


def test_a_replaced_controllers_decisions_are_lost_until_the_last_one():
    found = job()
    found.story.shut_down(1)
    found.story.elected(2, 7)
    found.story.register({2: 12, 3: 13})
    found.story.observe(
        "t", [[2, 3]], states=[stored(2, [2, 3], leader_epoch=4, controller_epoch=1, zk_version=8)]
    )
    loaded = found.story.write("resync_completed", topics=1)
    batch = found.decide()
    batch.fenced.add(1)
    doubts = Doubts()
    doubts.lose_what_follows(batch)
    assert {offset for offset, *_ in lost(batch)} == {4}
    assert batch.fenced_until == loaded
    assert batch.loaded_at == loaded
    assert all(not one.lost.any() for one in changes(batch) if one.offset == loaded)


def test_a_fresh_load_in_the_same_batch_ends_doubts():
    found = job()
    found.story.unregister(1)
    second = found.story.unregister(3)
    found.story.elected(2, 7)
    found.story.register({2: 12, 3: 13})
    found.story.observe(
        "t", [[2, 3]], states=[stored(2, [2, 3], leader_epoch=4, controller_epoch=1, zk_version=8)]
    )
    loaded = found.story.write("resync_completed", topics=1)
    batch = found.decide()
    first = conflicting(found, batch, "t", 0)
    doubts = Doubts()
    doubts.lose_what_follows(batch)
    assert {one[0] for one in lost(batch)} == {first, second}
    assert any(one.offset == loaded for one in changes(batch))
    doubts.forget_before(batch.end_offset)
    assert doubts.subjects() == []


def test_after_a_restart_the_events_that_are_still_to_fold_say_what_is_in_doubt():
    conflict = {"topic": "t", "cause": "conflict", "partitions": [0], "states": [None]}
    read = {**conflict, "cause": "read", "partitions": [1]}
    records = [
        LogRecord(9, 1, "partition_states_observed", "t", orjson.dumps(conflict)),
        LogRecord(10, 1, "partition_states_observed", "t", orjson.dumps(read)),
        LogRecord(11, 1, "topic_removed", "u", b'{"topic":"u","observed_again":true}'),
    ]
    doubts = Doubts(records)
    assert sorted(doubts.subjects()) == [("t", 0), ("u", None)]
    assert [doubts.cover("t", 0, at) for at in (0, 8, 9)] == [True, True, False]
    assert [doubts.cover("u", 3, at) for at in (10, 11)] == [True, False]
    found = job()
    found.story.create("u", [[1]])
    found.persist(found.decide())
    forget_doubted(found.image, doubts, folded=9)
    assert found.image.topic_names() == ["t"]
    assert found.image.columns["partition"].tolist() == [1]


def test_after_a_restart_a_topic_is_in_doubt_from_its_refused_write_on():
    """What was decided about it before was written: the stop, which nobody got, is to be sent."""
    found, folded = taken_back()
    found.story.move("t", {1: [2, 3, 4]})
    batch = found.decide()
    first, second = batch.of_kind(DecisionKind.REWRITE_ASSIGNMENT)
    said = {"topic": "t", "observed_again": True, "since": second.offset}
    doubts = Doubts([LogRecord(batch.end_offset + 3, 1, "topic_removed", "t", orjson.dumps(said))])
    doubts.lose_rows(batch.decisions)
    assert not first.failed
    assert {offset for offset, *_ in lost(batch)} == {second.offset}
    assert any(one.offset == first.offset for one in batch.of_kind(DecisionKind.STOP_REPLICAS))
    forget_doubted(found.image, doubts, folded)
    assert found.image.topic_names() == ["t"], "its machine has folded nothing that is in doubt"
    forget_doubted(found.image, doubts, second.offset + 1)
    assert found.image.topic_names() == []


def test_after_a_restart_a_topic_of_a_used_name_is_in_no_doubt_by_the_end_of_the_earlier_one():
    """The observers see it late: the name is in use again."""
    found = job()
    found.story.create("u", [[1]], topic_id=EARLIER)
    found.persist(found.decide())
    asked = {"request_id": "delete", "topic": "u", "topic_id": EARLIER}
    found.story.write("delete_topic_requested", "u", **asked)
    found.persist(found.decide())
    found.story.replicas_deleted(1, "u", [0])
    found.story.create("u", [[2]], topic_id=LATER)
    doubts = Doubts([LogRecord(20, 1, "topic_removed", "u", REMOVED)])
    forget_doubted(found.image, doubts, folded=19)
    batch = found.decide()
    doubts.lose_rows(batch.decisions)
    found.persist(batch)
    assert found.image.topic_ids["u"] == LATER
    assert found.image.topic_names() == ["t", "u"]


def test_producer_ids_are_in_doubt_between_a_conflict_and_its_correction():
    """The version that the next write expects may be that of somebody else's block by now."""
    found = job()
    doubts = Doubts()
    first = found.story.ask_producer_ids(1)
    batch = found.decide()
    (write,) = batch.of_kind(DecisionKind.WRITE_PRODUCER_ID_BLOCK)
    write.failed = True
    batch.lost_writes.append(LostWrite(first, write.kind, None, None, None))
    doubts.lose_what_follows(batch)
    (event,) = batch_events(batch)
    found.story.ask_producer_ids(2)
    doubts.end(event, first + 2)
    found.story.take([(event.kind, event.key, event.payload)])
    found.story.ask_producer_ids(3)
    batch = found.decide()
    doubts.lose_rows(batch.decisions)
    writes = batch.of_kind(DecisionKind.WRITE_PRODUCER_ID_BLOCK)
    assert [one.failed for one in writes] == [True, False]
    assert [one["error"] for one in replies(batch, doubts, {})] == [
        ProtocolError.UNKNOWN_SERVER_ERROR,
        ProtocolError.NONE,
    ]
