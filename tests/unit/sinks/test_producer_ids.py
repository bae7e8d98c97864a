"""Writes of producer id blocks that met another one, as events for the log."""

from __future__ import annotations

from state.decisions import DecisionKind
from state.protocol_errors import ProtocolError
from streaming.sinks.batch_events import batch_events
from streaming.sinks.doubts import Doubts
from streaming.sinks.replies import replies
from streaming.zk.types import ZNode
from streaming.zk.znodes.controller import ProducerIdBlock, producer_id_block_bytes
from tests.unit.sinks.test_batch_events import body, conflict, job


def test_producer_id_conflicts_become_one_event():
    found = job()
    for broker in (1, 2):
        found.story.ask_producer_ids(broker)
    batch = found.decide()
    current = ZNode(producer_id_block_bytes(ProducerIdBlock(9, 5000, 5999)), 4, 1, 1, 1, 0)
    for one in batch.of_kind(DecisionKind.WRITE_PRODUCER_ID_BLOCK):
        one.failed = True
        batch.lost_writes.append(conflict(None, None, current, one.kind, one.offset))
    (event,) = batch_events(batch)
    assert body(event) == {"block_end": 5999, "zk_version": 4}
    assert [reply["error"] for reply in replies(batch, Doubts(), {})] == [
        ProtocolError.UNKNOWN_SERVER_ERROR,
        ProtocolError.UNKNOWN_SERVER_ERROR,
    ]
    found.story.take([(event.kind, event.key, event.payload)])
    found.story.ask_producer_ids(1)
    (write,) = found.decide().of_kind(DecisionKind.WRITE_PRODUCER_ID_BLOCK)
    assert (write.content["block_start"], write.content["expected_version"]) == (6000, 4)


def test_a_block_that_was_promised_is_never_promised_again():
    """Word of an older block may come twice, and after newer ones were handed out."""
    found = job()
    starts = []
    for _ in range(3):
        found.story.write("producer_id_block_observed", block_end=999, zk_version=1)
        found.story.ask_producer_ids(1)
        (write,) = found.decide().of_kind(DecisionKind.WRITE_PRODUCER_ID_BLOCK)
        starts.append(write.content["block_start"])
    assert starts == [1000, 2000, 3000]


def test_a_missing_producer_id_block_is_told_as_such():
    found = job()
    found.story.ask_producer_ids(1)
    batch = found.decide()
    batch.lost_writes.append(conflict(None, None, None, DecisionKind.WRITE_PRODUCER_ID_BLOCK))
    assert body(batch_events(batch)[0]) == {"block_end": -1, "zk_version": -1}


def test_an_empty_producer_id_block_is_filled():
    """As brokers create it: they are not there yet when the cluster is loaded."""
    found = job()
    assert meets_block(found, ZNode(b"", 0, 1, 1, 1, 0)) == {"block_end": -1, "zk_version": 0}
    found.story.ask_producer_ids(1)
    (write,) = found.decide().of_kind(DecisionKind.WRITE_PRODUCER_ID_BLOCK)
    assert (write.content["block_start"], write.content["expected_version"]) == (1000, 0)


def test_a_broken_producer_id_block_is_never_written_over():
    """Which ids were handed out nobody knows; it is told until it is mended."""
    found = job()
    for _ in range(3):
        told = meets_block(found, ZNode(b"x", 1, 1, 1, 1, 0))
        assert told == {"block_end": -1, "zk_version": -1}
    found.story.ask_producer_ids(1)
    (write,) = found.decide().of_kind(DecisionKind.WRITE_PRODUCER_ID_BLOCK)
    assert write.content["expected_version"] == -1, "which creates it, or fails"


def meets_block(found, znode):
    """What is told when a request for ids meets this znode; the machine hears it."""
    found.story.ask_producer_ids(1)
    batch = found.decide()
    (write,) = batch.of_kind(DecisionKind.WRITE_PRODUCER_ID_BLOCK)
    write.failed = True
    batch.lost_writes.append(conflict(None, None, znode, write.kind, write.offset))
    (event,) = batch_events(batch)
    assert [reply["error"] for reply in replies(batch, Doubts(), {})] == [
        ProtocolError.UNKNOWN_SERVER_ERROR
    ]
    found.story.take([(event.kind, event.key, event.payload)])
    return body(event)
