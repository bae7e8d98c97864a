"""A checkpoint whose states a loss of power cut: the job begins behind the log, without them."""

from __future__ import annotations

import shutil

import pytest
from pyspark.errors import StreamingQueryException

from checkpoints.layout import check_layout
from state.events import Event
from streaming.job import start_query
from streaming.log.api import NewRecord
from streaming.log.embedded import EmbeddedLogWriter
from streaming.paths import DataDir
from streaming.starting.beginning import first_event, give_up_if_lost, restored
from tests.fixtures.folding import fold_log
from tests.logs.state_logs import long_log
from tests.spark.query_run import Recorder, Run, settings_of

pytestmark = pytest.mark.spark


def test_a_job_without_its_states_decides_what_comes_and_nothing_again(spark, tmp_path):
    log = long_log(11, plausible=True)
    first = Run(spark, tmp_path / "first", log)
    first.until_done(Recorder())
    # In another folder: this session's stores have the states of the first one in memory.
    shutil.copytree(tmp_path / "first", tmp_path / "second")
    folders, settings = DataDir(tmp_path / "second"), settings_of(tmp_path / "second")
    newest = max(
        folders.checkpoint.glob("state/0/0/*.delta"), key=lambda path: int(path.name.split(".")[0])
    )
    newest.write_bytes(b"")
    newest.with_name(f".{newest.name}.crc").write_bytes(b"")

    check_layout(folders.checkpoint, settings.layout, settings.shuffle_partitions)
    assert first_event(settings, folders) == len(log)
    assert restored(lambda: spark, folders) is None
    begins = first_event(settings, folders)
    assert begins == len(log)
    assert (folders.root / "checkpoint.broken" / "commits").is_dir()

    with EmbeddedLogWriter(folders.events) as writer:
        writer.append([NewRecord(e.kind, e.key, e.payload, e.time_ms) for e in log])
    recorder = Recorder()
    query = start_query(spark, settings, folders, recorder.process, begins)
    try:
        query.processAllAvailable()
    finally:
        query.stop()
    again = [Event(begins + e.offset, e.time_ms, e.kind, e.key, e.payload) for e in log]
    states, wanted = fold_log(again, settings.slots)
    assert recorder.decisions() == wanted
    assert len(restored(lambda: spark, folders) or {}) == len(states)


@pytest.mark.parametrize("lost", [True, False], ids=["missing", "not-opened"])
def test_a_query_that_cannot_read_its_states_gives_up_those_that_are_lost(spark, tmp_path, lost):
    """They were whole when the job began."""
    first = Run(spark, tmp_path / "first", long_log(11, plausible=True))
    first.until_done(Recorder())
    shutil.copytree(tmp_path / "first", tmp_path / "second")
    folders, settings = DataDir(tmp_path / "second"), settings_of(tmp_path / "second")
    for path in folders.checkpoint.glob("state/0/0/*.delta"):
        path.unlink()
        if not lost:
            path.mkdir()  # Java says of it what it says of a file without permission
    with EmbeddedLogWriter(folders.events) as writer:
        writer.append([NewRecord("topic_removed", "t", b"{}")])
    query = start_query(spark, settings, folders, Recorder().process)
    with pytest.raises(StreamingQueryException) as failed:
        query.processAllAvailable()
    assert give_up_if_lost(folders, failed.value) == lost
    assert folders.checkpoint.exists() != lost
    assert not give_up_if_lost(folders, ValueError("another error"))
