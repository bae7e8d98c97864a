"""A checkpoint whose states a loss of power cut: the job begins behind the log, without them."""

from __future__ import annotations

import shutil

import pytest

from state.events import Event
from streaming.beginning import begin, restored
from streaming.job import start_query
from streaming.log.api import NewRecord
from streaming.log.embedded import EmbeddedLogWriter
from streaming.paths import DataDir
from tests.fixtures.folding import fold_log
from tests.property.state_logs import long_log
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

    assert begin(settings, folders) == len(log)
    assert restored(spark, folders) is None
    begins = begin(settings, folders)
    assert begins == len(log)
    assert (folders.root / "checkpoint.broken" / "commits").is_dir()

    with EmbeddedLogWriter(folders.events) as writer:
        writer.append([NewRecord(e.kind, e.key, e.payload, e.time_ms) for e in log])
    recorder = Recorder()
    query = start_query(spark, settings, folders, recorder, begins)
    try:
        query.processAllAvailable()
    finally:
        query.stop()
    again = [Event(begins + e.offset, e.time_ms, e.kind, e.key, e.payload) for e in log]
    states, wanted = fold_log(again, settings.slots)
    assert recorder.decisions() == wanted
    assert len(restored(spark, folders) or {}) == len(states)
