"""The query over an event log in a topic of a real broker decides what a local fold decides."""

from __future__ import annotations

from contextlib import closing

import pytest

from checkpoints.read import folded_until
from checkpoints.replay import Digest
from state.routing import Layout
from streaming.job import start_query
from streaming.log.api import NewRecord
from streaming.log.kafka_writer import KafkaLogWriter
from streaming.log.recorded import open_recorded
from streaming.paths import DataDir
from streaming.replay.decisions import digest_of
from streaming.replay.plan import ReplayPlan
from streaming.replay.spark import replay_through_spark
from tests.fixtures.folding import fold_log
from tests.fixtures.waiting import wait_for
from tests.logs.state_logs import long_log
from tests.spark.query_run import Recorder, settings_of

pytestmark = [
    pytest.mark.timeout(900),
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),
]
CAP = 40
WAIT_S = 240


@pytest.fixture(scope="module")
def log():
    return long_log(11, plausible=True)


def as_records(events):
    return [NewRecord(e.kind, e.key, e.payload, e.time_ms) for e in events]


def test_a_batch_that_was_not_committed_is_read_again_exactly(spark, tmp_path, log, log_topic):
    from pyspark.errors import StreamingQueryException

    with KafkaLogWriter(log_topic) as writer:
        writer.append(as_records(log))
    settings = settings_of(tmp_path, cap=CAP, **{"event.log.url": log_topic})
    folders = DataDir(tmp_path, str(log_topic))
    decisions = []
    for fail_in in (1, None):
        recorder = Recorder(fail_in)
        query = start_query(spark, settings, folders, recorder.process)
        try:
            if fail_in is None:
                query.processAllAvailable()
            else:
                with pytest.raises(StreamingQueryException, match="killed in the middle"):
                    query.awaitTermination(WAIT_S)
        finally:
            query.stop()
        decisions.append(recorder.decisions())
    wanted = fold_log(log, 4)[1]
    assert decisions[0] == wanted[: len(decisions[0])]
    # Batch 0 was committed, batch 1 was run again with the same range.
    assert decisions[1] == [one for one in wanted if one.offset >= CAP]
    assert folded_until(folders.checkpoint) == len(log)


def test_a_running_query_waits_for_a_log_cluster_that_comes_back(
    spark, tmp_path, log, log_cluster, log_topic
):
    """Events that were appended while it was away, too."""
    half = len(log) // 2
    settings = settings_of(tmp_path, cap=CAP, **{"event.log.url": log_topic})
    recorder = Recorder()
    with KafkaLogWriter(log_topic, timeout_ms=WAIT_S * 1_000) as writer:
        writer.append(as_records(log[:half]))
        query = start_query(spark, settings, DataDir(tmp_path, str(log_topic)), recorder.process)
        try:
            query.processAllAvailable()
            log_cluster.kill()
            try:
                waiting = writer.append_async(as_records(log[half:]))
            finally:
                log_cluster.start()
            assert waiting.result(WAIT_S) == range(half, len(log))
            wanted = fold_log(log, 4)[1]

            def all_there() -> bool:
                assert query.isActive, query.exception()
                return len(recorder.decisions()) >= len(wanted)

            wait_for("all decisions", all_there, WAIT_S)
            assert recorder.decisions() == wanted
        finally:
            query.stop()


def test_a_topic_replayed_through_the_query_gives_the_same_digest(spark, tmp_path, log, log_topic):
    with KafkaLogWriter(log_topic) as writer:
        writer.append(as_records(log))
    settings = settings_of(tmp_path)
    with closing(open_recorded(log_topic)) as reader:
        plan = ReplayPlan(
            log=log_topic,
            end=reader.end_offset(),
            batch=30,
            layout=Layout(4, settings.group_slots),
            local=False,
            what_if={},
            start=None,
            out=DataDir(tmp_path / "out"),
        )
        plan.claim()
        replay_through_spark(spark, settings, plan, reader, lambda _: None)
    wanted = Digest()
    wanted.update(fold_log(log, 4)[1])
    assert digest_of(plan.out.decisions).hexdigest() == wanted.hexdigest()
