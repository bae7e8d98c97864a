"""A log replayed through the query gives the digest of a local fold; its checkpoints can be moved
to other slots and shuffle partitions, and read as tables.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from checkpoints.read import committed_batches, folded_until, read_states, snapshot_of
from checkpoints.replay import Digest
from checkpoints.reslot import reslot
from checkpoints.what_if import rewritten
from state.events import Event
from state.routing import GROUP_SLOTS, Layout
from streaming.cli import main
from streaming.commands.spark import LazySpark
from streaming.log.api import LogRecord, NewRecord
from streaming.log.embedded import EmbeddedLogWriter
from streaming.log.json_lines import write_json_lines
from streaming.log.recorded import open_recorded
from streaming.paths import DataDir
from streaming.replay.decisions import digest_of
from streaming.replay.plan import ReplayPlan
from streaming.replay.spark import replay_through_spark
from streaming.settings_loader import load_settings
from tests.fixtures.folding import fold_log
from tests.fixtures.unavailable import unavailable_partition
from tests.logs.state_logs import long_log

UNCLEAN = "unclean.leader.election.enable"


@pytest.fixture(scope="module")
def spark() -> Iterator[Any]:
    from streaming.spark.session import open_spark

    session = open_spark(load_settings((), ["mode=replay"], {}))
    yield session
    session.stop()


@pytest.fixture(scope="module")
def log() -> list[Event]:
    return long_log(11, plausible=True)


@pytest.fixture
def events(tmp_path: Path, log: list[Event]) -> Path:
    with EmbeddedLogWriter(tmp_path / "data" / "events") as writer:
        writer.append([NewRecord(e.kind, e.key, e.payload, e.time_ms) for e in log])
    return tmp_path / "data"


@pytest.fixture
def replay(spark, tmp_path):
    """Replays through Spark and returns the digest of all that is in the folder."""

    def replay(path: Path, *, out: str = "out", **chosen: Any) -> str:
        partitions = chosen.pop("partitions", 1)
        stop_after = chosen.pop("stop_after", None)
        slots = chosen.pop("slots", 8)
        given = ["mode=replay", f"slots={slots}", f"shuffle.partitions={partitions}"]
        settings = load_settings((), given, {})
        reader = open_recorded(path)
        plan = ReplayPlan(
            log=path,
            end=chosen.pop("end", None) or reader.end_offset(),
            batch=chosen.pop("batch", 1_000),
            layout=settings.layout,
            local=False,
            what_if=chosen.pop("what_if", {}),
            start=chosen.pop("start", None),
            out=DataDir(tmp_path / out),
        )
        plan.claim()

        def progress(folded: int) -> None:
            if stop_after is not None and folded > stop_after:
                raise RuntimeError("killed in the middle of a batch")

        try:
            replay_through_spark(spark, settings, plan, reader, progress)
        finally:
            reader.close()
        return digest_of(plan.out.decisions).hexdigest()

    return replay


def wanted(log: list[Event], start: int = 0) -> str:
    digest = Digest()
    digest.update(one for one in fold_log(log, 1)[1] if one.offset >= start)
    return digest.hexdigest()


@pytest.mark.parametrize("shape", [(7, 16, 1), (1_000, 64, 1), (10**6, 1, 1), (30, 16, 2)], ids=str)
def test_batches_slots_and_tasks_do_not_change_the_digest(replay, events, log, shape):
    batch, slots, partitions = shape
    assert replay(events, batch=batch, slots=slots, partitions=partitions) == wanted(log)


def test_one_event_a_batch_gives_the_same_digest(replay, events, log):
    assert replay(events, batch=1, slots=1, end=25) == wanted(log[:25])


def test_an_interrupted_replay_of_json_lines_goes_on(replay, log, tmp_path):
    """Killed after the decisions of a batch were written and before it was committed."""
    from pyspark.errors import StreamingQueryException

    file = tmp_path / "events.jsonl"
    with file.open("w", encoding="utf-8") as out:
        write_json_lines(
            (LogRecord(e.offset, e.time_ms, e.kind, e.key, e.payload) for e in log), out
        )
    with pytest.raises(StreamingQueryException, match="killed in the middle of a batch"):
        replay(file, batch=20, stop_after=20)
    assert replay(file, batch=20) == wanted(log)


def test_a_what_if_changes_the_events_that_carry_settings(replay, tmp_path):
    log, what_if = unavailable_partition(), {UNCLEAN: True}
    other = [
        Event(e.offset, e.time_ms, e.kind, e.key, rewritten(e.kind, e.payload, what_if))
        for e in log
    ]
    with EmbeddedLogWriter(tmp_path / "events") as writer:
        writer.append([NewRecord(e.kind, e.key, e.payload, e.time_ms) for e in log])
    assert wanted(other) != wanted(log)
    assert replay(tmp_path / "events", what_if=what_if) == wanted(other)


def test_a_replay_goes_on_from_a_checkpoint_with_other_slots_and_tasks(
    replay, events, log, spark, tmp_path
):
    replay(events, out="head", batch=20, end=40, slots=4)
    checkpoint = tmp_path / "head" / "checkpoint"
    start = snapshot_of(spark, checkpoint)
    assert (start.offset, start.layout.slots) == (40, 4)
    assert start.states == fold_log(log[:40], 4)[0]
    moved = reslot(start, Layout(16, GROUP_SLOTS))
    found = replay(events, out="tail", start=moved, slots=16, partitions=2)
    assert found == wanted(log, 40)
    tail = tmp_path / "tail" / "checkpoint"
    assert folded_until(tail) == len(log)
    first = committed_batches(tail)[0]
    assert (folded_until(tail, first), read_states(spark, tail, first)) == (40, moved.states)


@pytest.fixture
def shared_session(spark, monkeypatch):
    """Commands use the tests' session and leave it open."""
    monkeypatch.setattr(LazySpark, "__call__", lambda _: spark)


@pytest.mark.usefixtures("shared_session")
def test_the_command_prints_the_digest_last(events, log, tmp_path, capsys):
    with pytest.raises(SystemExit) as left:
        main(["replay", str(events), "--slots", "4", "--out", str(tmp_path / "out")])
    assert not left.value.code
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith(f"folded {len(log)} events up to offset {len(log)}")
    assert lines[-1] == f"digest {wanted(log)}"


def test_the_decisions_are_a_stream_for_others(spark, replay, events, log, tmp_path):
    """docs/decision-log.md: the source of the event log reads the decision log too."""
    replay(events)
    stream = spark.readStream.format("helmstream_log")
    stream = stream.option("path", str(tmp_path / "out" / "decisions")).load()
    found: list[Any] = []
    query = (
        stream.writeStream.option("checkpointLocation", str(tmp_path / "others"))
        .foreachBatch(lambda rows, _: found.extend(rows.select("key", "payload").collect()))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    assert [(row["key"], bytes(row["payload"])) for row in found] == [
        (f"{one.offset}:{one.ordinal}", one.body) for one in fold_log(log, 1)[1]
    ]
