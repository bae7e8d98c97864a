"""A log in a Kafka topic of a real broker: order, times, refusals, retention, a cluster away."""

from __future__ import annotations

import threading
import uuid
from contextlib import closing
from typing import Any

import pytest
from kafka import KafkaProducer
from kafka.admin import KafkaAdminClient

from streaming.log.api import (
    LogClosed,
    LogError,
    LogUnavailable,
    NewRecord,
    OffsetOutOfRange,
    RecordRefused,
)
from streaming.log.kafka_reader import KafkaLogReader
from streaming.log.kafka_tail import KafkaTail
from streaming.log.kafka_topic import UnusableTopic, create_topic
from streaming.log.kafka_writer import KafkaLogWriter
from streaming.log.location import KafkaTopic
from streaming.log.recorded import first_at
from streaming.wire.apis import ApiKey
from tests.fixtures.losing_proxy import LosingProxy
from tests.fixtures.waiting import wait_for

# kafka-python leaves the sockets of refused connections to the garbage collector.
AWAY_MS = 180_000
"""A log cluster that comes back takes its time on a busy machine."""

pytestmark = pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning")


def new_records(count, start=0):
    return [
        NewRecord("topic_observed", f"topic-{n}", b"\x00payload-%d" % n, 1_000 + n)
        for n in range(start, start + count)
    ]


@pytest.fixture
def writer(log_topic):
    with KafkaLogWriter(log_topic) as opened:
        yield opened


@pytest.fixture
def reader(log_topic):
    with KafkaLogReader(log_topic) as opened:
        yield opened


def test_what_was_appended_is_read_the_same_again(writer, reader, log_topic):
    assert (reader.start_offset(), reader.end_offset()) == (0, 0)
    assert writer.append([]) == range(0)
    assert writer.append(new_records(3)) == range(3)
    large = NewRecord("k", "", b"x" * 3_000_000, 2_000)
    futures = [writer.append_async(new_records(5, 3)), writer.append_async([large])]
    assert [one.result(60) for one in futures] == [range(3, 8), range(8, 9)]
    wanted = [*new_records(8), large]
    for _ in range(2):
        found = list(reader.read(0, 9))
        assert [one.offset for one in found] == list(range(9))
        assert [NewRecord(r.kind, r.key, r.payload, r.time_ms) for r in found] == wanted
    assert [one.offset for one in reader.read(4, 6)] == [4, 5]
    rows = [row for chunk in reader.event_rows(2, 9) for row in chunk]
    assert [row[0] for row in rows] == list(range(2, 9))
    assert rows[0][-1] == b"\x00payload-2"
    for start, end in ((0, 10), (10, 10), (-1, 2)):
        with pytest.raises(OffsetOutOfRange):
            reader.read(start, end)


def test_appends_of_many_threads_keep_together(writer, reader):
    done = []

    def append(number):
        done.append((number, writer.append([NewRecord(f"k{number}", "", b"{}", 1)] * 7)))

    threads = [threading.Thread(target=append, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    kinds = [one.kind for one in reader.read(0, 56)]
    for number, offsets in done:
        assert {kinds[offset] for offset in offsets} == {f"k{number}"}
        assert len(offsets) == 7


def test_times_do_not_go_back_when_the_clock_does(log_topic):
    clock = iter([500, 400, 300])
    for _ in range(3):
        with KafkaLogWriter(log_topic, clock=lambda: next(clock)) as writer:
            writer.append([NewRecord("k", "", b"{}")])
    with KafkaLogReader(log_topic) as reader:
        assert [one.time_ms for one in reader.read(0, 3)] == [500, 500, 500]


def test_records_before_an_offset_are_let_go_of_but_never_the_last(writer, reader, log_topic):
    writer.append(new_records(10))
    assert first_at(reader, 1_004) == 4
    assert first_at(reader, 9_999) == 10
    assert writer.truncate_before(4) == 4 == reader.start_offset()
    with pytest.raises(OffsetOutOfRange, match=r"\[4, 10\)"):
        reader.read(3, 5)
    assert next(reader.read(4, 10)).offset == 4
    assert writer.truncate_before(99) == 9
    with KafkaLogWriter(log_topic) as later:
        assert (later.start_offset(), later.end_offset()) == (9, 10)
        assert later.append(new_records(1)) == range(10, 11)


def test_a_writer_gives_up_when_somebody_else_appends(writer, log_topic):
    writer.append(new_records(1))
    with KafkaLogWriter(log_topic) as other:
        other.append(new_records(1, 1))
    with pytest.raises(LogClosed, match="offset 2 is not 1: somebody else appends"):
        writer.append(new_records(1, 2))
    with pytest.raises(LogClosed, match="gave up, open the log again"):
        writer.append(new_records(1, 3))


def test_what_the_topic_must_be(log_cluster):
    missing = log_cluster.topic("missing")
    for opened in (KafkaLogReader, KafkaLogWriter):
        with pytest.raises(UnusableTopic, match=r"no such topic; make it with: helmstream log"):
            opened(missing, timeout_ms=1_000)
    admin = KafkaAdminClient(bootstrap_servers=log_cluster.bootstrap_server)
    unusable: dict[str, dict[str, Any]] = {
        "two": {"num_partitions": 2},
        "compacted": {"configs": {"cleanup.policy": "compact"}},
        "stamped": {"configs": {"message.timestamp.type": "LogAppendTime"}},
        "small": {"configs": {"max.message.bytes": "1048588"}},
    }
    created = {
        name: {"num_partitions": 1, "replication_factor": 1} | options
        for name, options in unusable.items()
    }
    admin.create_topics(created, wait_for_metadata=True)
    admin.close()
    for name, reason in (
        ("two", "has 2 partitions, allowed is 1"),
        ("compacted", "cleanup.policy = compact, allowed is delete"),
        ("stamped", "message.timestamp.type = LogAppendTime, allowed is CreateTime"),
        ("small", "max.message.bytes = 1048588, allowed for a log are 16777216 or more"),
    ):
        with pytest.raises(UnusableTopic, match=reason):
            KafkaLogWriter(log_cluster.topic(name))
    with pytest.raises(UnusableTopic, match="is there already"):
        create_topic(log_cluster.topic("two"), 1)


def test_records_of_others_and_records_too_large_are_refused(writer, reader, log_topic):
    with pytest.raises(RecordRefused, match="larger than the limit of 67108864"):
        writer.append([NewRecord("k", "", b"x" * 2**26)])
    writer.append(new_records(1))
    producer = KafkaProducer(bootstrap_servers=log_topic.bootstrap_servers)
    producer.send(log_topic.name, b"hello").get(60)
    producer.close()
    with pytest.raises(LogError, match="offset 1: not a record of format version 1"):
        list(reader.read(0, 2))


def test_an_append_waits_for_a_log_cluster_that_comes_back(log_cluster, log_topic):
    with (
        KafkaLogWriter(log_topic, timeout_ms=AWAY_MS) as writer,
        KafkaLogReader(log_topic) as reader,
    ):
        writer.append(new_records(5))
        log_cluster.kill()
        try:
            waiting = writer.append_async(new_records(5, 5))
            with pytest.raises(LogUnavailable, match="does not answer"):
                KafkaLogReader(log_topic, timeout_ms=1_000)
            assert not waiting.done()
        finally:
            log_cluster.start()
        assert waiting.result(AWAY_MS / 1000) == range(5, 10)
        assert [one.time_ms for one in reader.read(0, 10)] == list(range(1_000, 1_010))


def test_a_writer_gives_up_on_a_log_cluster_that_stays_away_and_a_new_one_goes_on(
    log_cluster, log_topic
):
    with KafkaLogWriter(log_topic, timeout_ms=8_000) as writer:
        writer.append(new_records(2))
        log_cluster.kill()
        try:
            with pytest.raises(LogClosed, match="gave up"):
                writer.append(new_records(1, 2))
            assert writer.truncate_before(1) == 0
        finally:
            log_cluster.start()
    with KafkaLogWriter(log_topic) as writer, KafkaLogReader(log_topic) as reader:
        end = writer.end_offset()
        assert end == 2
        writer.append(new_records(1, 2))
        assert [one.time_ms for one in reader.read(0, end + 1)] == [1_000, 1_001, 1_002]


def test_a_topic_that_its_cluster_does_not_know_yet_is_waited_for(log_cluster):
    late = log_cluster.topic("late")
    made = threading.Timer(1, create_topic, [late, 1])
    made.start()
    try:
        with KafkaLogReader(late, timeout_ms=AWAY_MS) as reader:
            assert reader.end_offset() == 0
    finally:
        made.join()


def test_records_whose_answer_was_lost_are_stored_once(log_cluster, log_topic):
    """The producer sends them again under the same sequence numbers, which the broker knows."""
    with closing(LosingProxy(log_cluster.port, ApiKey.PRODUCE)) as proxy:
        there = KafkaTopic(f"127.0.0.1:{proxy.port}", log_topic.name)
        with KafkaLogWriter(there) as writer:
            assert writer.append(new_records(2)) == range(2)
            asked = proxy.asked
            proxy.lose = 1
            assert writer.append(new_records(3, 2)) == range(2, 5)
            assert (proxy.lose, proxy.asked) == (0, asked + 2), "they were not sent again"
            assert writer.append(new_records(1, 5)) == range(5, 6)
    with KafkaLogReader(log_topic) as reader:
        found = [one.key for one in reader.read(0, reader.end_offset())]
    assert found == [one.key for one in new_records(6)]


def test_the_address_of_nobody_is_told():
    nobody = KafkaTopic("127.0.0.1:9", uuid.uuid4().hex)
    with pytest.raises(LogUnavailable, match=r"kafka://127\.0\.0\.1:9/"):
        KafkaLogReader(nobody, timeout_ms=1_000)


def test_a_tail_is_told_of_new_records(writer, log_topic):
    writer.append(new_records(2))
    with closing(KafkaTail(log_topic, 10_000)) as tail:
        assert tail.end_offset() == 2
        for end in (3, 10):
            writer.append(new_records(end - tail.end_offset(), tail.end_offset()))
            wait_for("all records", lambda end=end: tail.end_offset() >= end)
            assert tail.end_offset() == end
        rows = [row for chunk in tail.event_rows(1, 10) for row in chunk]
        assert [row[0] for row in rows] == list(range(1, 10))
        writer.truncate_before(5)
        with pytest.raises(OffsetOutOfRange, match=r"\[5, 10\)"):
            list(tail.event_rows(3, 10))
