"""The decision stream: each decision once in the topic, whatever dies meanwhile."""

from __future__ import annotations

from contextlib import contextmanager

import pytest

from streaming.log.api import NewRecord
from streaming.log.decision_reader import each_once, read_decisions
from streaming.log.decision_writer import RecordId
from streaming.log.embedded import EmbeddedLogWriter
from streaming.log.kafka_reader import KafkaLogReader
from streaming.log.kafka_writer import KafkaLogWriter
from streaming.log.publisher import DecisionPublisher, published
from tests.fixtures.waiting import wait_for

pytestmark = pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning")
WAIT_S = 120
FOREVER_MS = 2**63 - 1


def decisions(first, last):
    """Two decisions for each event."""
    return [
        NewRecord("reply", f"{event}:{ordinal}", b'{"event":%d}' % event, 1_000 + event)
        for event in range(first, last)
        for ordinal in range(2)
    ]


@pytest.fixture
def writer(tmp_path):
    with EmbeddedLogWriter(tmp_path / "decisions", segment_bytes=2_000) as opened:
        yield opened


@pytest.fixture
def reader(log_topic):
    with KafkaLogReader(log_topic) as opened:
        yield opened


@contextmanager
def publishing(tmp_path, topic, timeout_ms=30_000):
    """Publish; what is not acknowledged within timeout_ms may be published twice."""
    publisher = DecisionPublisher(tmp_path / "decisions", topic, FOREVER_MS, timeout_ms=timeout_ms)
    try:
        yield
    finally:
        publisher.close()


def wait_for_end(reader, end):
    wait_for("all records", lambda: reader.end_offset() >= end, WAIT_S)
    assert reader.end_offset() == end


def wait_for_all(reader, last):
    """Wait until the decisions about the first events are there, some of them perhaps twice."""
    wanted = [one.key for one in decisions(0, last)]

    def found():
        return [one.key for one in each_once(reader.read(0, reader.end_offset()))]

    wait_for("all decisions", lambda: found() == wanted, WAIT_S, poll_s=0.1)


def published_records(reader):
    return [
        NewRecord(one.kind, one.key, one.payload, one.time_ms)
        for one in reader.read(reader.start_offset(), reader.end_offset())
    ]


def test_each_publisher_goes_on_where_the_one_before_ended(tmp_path, writer, reader, log_topic):
    writer.append(decisions(0, 5))
    with published(tmp_path / "decisions", str(log_topic), FOREVER_MS):
        wait_for_end(reader, 10)
        writer.append(decisions(5, 8))
        wait_for_end(reader, 16)
    writer.append(decisions(8, 12))
    with publishing(tmp_path, log_topic):
        wait_for_end(reader, 24)
    assert published_records(reader) == decisions(0, 12)


def test_a_log_cluster_that_is_away_holds_nobody_up(
    tmp_path, writer, reader, log_cluster, log_topic
):
    with publishing(tmp_path, log_topic, timeout_ms=2_000):
        writer.append(decisions(0, 5))
        wait_for_all(reader, 5)
        log_cluster.kill()
        try:
            writer.append(decisions(5, 8))
        finally:
            log_cluster.start()
        writer.append(decisions(8, 10))
        wait_for_all(reader, 10)


def test_a_second_copy_is_dropped_by_the_reader(log_topic, reader):
    """What a killed publisher had under way arrives after its successor looked."""
    with KafkaLogWriter(log_topic) as log:
        log.append([*decisions(0, 3), *decisions(1, 3), *decisions(3, 5)])
    ids = [one.id for one in read_decisions(reader.read(0, reader.end_offset()))]
    assert ids == [RecordId(event, ordinal) for event in range(5) for ordinal in range(2)]


def test_what_retention_took_and_what_is_of_another_log_is_said(
    tmp_path, writer, reader, log_topic, caplog
):
    for event in range(40):
        writer.append(decisions(event, event + 1))
    start = writer.truncate_before(40)
    assert start > 0
    with publishing(tmp_path, log_topic):
        wait_for_end(reader, 80 - start)
    assert "may lack decisions between the first and the oldest" in caplog.text
    with KafkaLogWriter(log_topic) as log:
        log.append(decisions(99, 100))
    caplog.clear()
    with publishing(tmp_path, log_topic):
        wait_for("the complaint", lambda: "later than any here" in caplog.text, WAIT_S)
    assert "has decisions up to 99:1, later than any here" in caplog.text
