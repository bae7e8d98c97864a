"""The real query over a recorded log decides what a local fold decides."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import orjson
import pytest

from checkpoints.layout import CheckpointMismatch
from checkpoints.machine_format import encode_machine
from checkpoints.packing import packed, unpacked
from checkpoints.read import folded_until, has_state, read_machines, state_frame
from state.decisions import DecisionKind
from state.events import Event
from state.routing import (
    ALL_GROUPS,
    CLUSTER,
    CLUSTER_AND_SLOTS,
    GROUP_SCOPE,
    GROUP_SLOTS,
    Layout,
    machine_keys,
    narrowed,
)
from streaming.job import run_job, start_query
from streaming.log.api import NewRecord
from streaming.operator import decide
from streaming.paths import DataDir
from streaming.query import for_each_batch, read_events
from streaming.router import machine_keys_column, route
from streaming.shadow.engine import LocalEngine, SparkEngine
from streaming.starting.beginning import unfolded_outcomes
from streaming.starting.standby import CheckpointFollower
from tests.fixtures.folding import fold_log
from tests.fixtures.waiting import wait_for
from tests.logs.state_logs import long_log
from tests.spark.query_run import BATCH_EVENTS, Recorder, Run, recorded, settings_of


@pytest.fixture(scope="module")
def log() -> list[Event]:
    """A long history with everything in it, unreadable events too."""
    events = long_log(28, plausible=True)
    assert len(events) > 3 * BATCH_EVENTS / 2
    return events


@pytest.mark.parametrize(
    "shape", [(BATCH_EVENTS, 4, 1), (10_000, 16, 1), (30, 4, 2)], ids="cap={0[0]}".format
)
def test_the_query_decides_what_a_local_fold_decides(spark, tmp_path, log, shape):
    """For several caps, slot counts and shuffle partitions."""
    cap, slots, partitions = shape
    run = Run(spark, tmp_path, log, cap=cap, slots=slots, **{"shuffle.partitions": partitions})
    recorder = run.until_done(Recorder())
    states, wanted = fold_log(log, slots)
    assert recorder.decisions() == wanted
    assert len(recorder.batches) == -(-len(log) // cap)
    ends = [batch.end_offset for _, batch in sorted(recorder.batches.items())]
    assert ends == [min(end, len(log)) for end in range(cap, len(log) + cap, cap)]
    last = recorder.batches[max(recorder.batches)]
    assert last.time_ms[len(log) - 1] == log[-1].time_ms
    assert run.states() == states
    assert folded_until(run.folders.checkpoint) == len(log)


def test_a_batch_takes_one_action(spark, tmp_path, log):
    """Each further one would fold its events again, and each costs what a Spark job costs."""
    run = Run(spark, tmp_path, log)
    recorder = Recorder()
    query = start_query(spark, run.settings, run.folders, recorder.process)
    try:
        query.processAllAvailable()
    finally:
        query.stop()
    tracker = spark.sparkContext.statusTracker()
    batches = len(recorder.batches)
    assert batches > 1

    def jobs() -> int:
        return len(tracker.getJobIdsForGroup(str(query.runId)))

    wait_for("the jobs of all batches", lambda: jobs() >= batches)
    assert jobs() == batches


def test_a_batch_that_was_not_committed_is_run_again_and_the_query_goes_on(spark, tmp_path, log):
    from pyspark.errors import StreamingQueryException

    run = Run(spark, tmp_path, log)
    assert not has_state(run.folders.checkpoint)
    before = Recorder(fail_in=1)
    with pytest.raises(StreamingQueryException, match="killed in the middle of a batch"):
        run.until_done(before)
    assert has_state(run.folders.checkpoint)
    folded = folded_until(run.folders.checkpoint)
    assert folded == BATCH_EVENTS
    assert run.states() == fold_log(log[:folded], 4)[0]
    removed = [e.offset for e in log[folded:] if e.kind == "topic_removed"]
    unfolded = unfolded_outcomes(run.folders.events, folded)
    assert [one.offset for one in unfolded if one.kind == "topic_removed"] == removed
    after = run.until_done(Recorder())
    assert min(after.batches) == 1
    again, first = after.batches[1], before.batches[1]
    assert [one.merged for one in again.decisions] == [one.merged for one in first.decisions]
    assert before.batches[0].decisions
    kept = [one.merged for one in before.batches[0].decisions]
    assert kept + after.decisions() == fold_log(log, 4)[1]
    assert run.until_done(Recorder()).batches == {}, "there is nothing more to do"


def test_machines_can_be_read_as_of_an_earlier_batch(spark, tmp_path, log):
    run = Run(spark, tmp_path, log)
    run.until_done(Recorder())
    machines = read_machines(spark, run.folders.checkpoint, batch_id=0)
    states = {key: encode_machine(machine) for key, machine in machines.items()}
    assert states == fold_log(log[:BATCH_EVENTS], 4)[0]


def test_a_standby_follows_what_is_committed_and_reads_the_checkpoint_once(
    spark, tmp_path, log, monkeypatch
):
    from pyspark.errors import StreamingQueryException

    first = BATCH_EVENTS // 2
    run = Run(spark, tmp_path, log[:first])
    follower = CheckpointFollower(spark, run.settings, run.folders)
    follower.catch_up()
    assert follower.states() == {}
    run.until_done(Recorder())
    follower.catch_up()
    monkeypatch.setattr("streaming.starting.standby.stored_states", None)
    recorded(run.folders.root, log[first:])
    with pytest.raises(StreamingQueryException, match="killed in the middle of a batch"):
        run.until_done(Recorder(fail_in=2))
    states = follower.states()
    assert states == fold_log(log[: first + BATCH_EVENTS], 4)[0] == run.states()


def folded_with(fold: Callable[..., Any], run: Run) -> Recorder:
    """Fold everything that is in the log with another function for a machine."""
    recorder = Recorder()
    layout, max_events = run.settings.layout, run.settings.event_log_batch_max_events
    routed = route(read_events(run.spark, run.folders.events, layout, max_events), layout)
    query = for_each_batch(decide(routed, fold), run.folders.checkpoint, recorder.process)
    try:
        query.processAllAvailable()
    finally:
        query.stop()
    return recorder


def unpacking_fold() -> Callable[..., Any]:
    """A fold that stores states as they are; nested, so that Spark's workers get it by value."""

    def fold(key: Any, frames: Any, state: Any) -> Any:
        from streaming import operator as module

        operator: Any = module
        real, operator.packed = operator.packed, bytes
        try:
            yield from operator.fold_machine(key, frames, state)
        finally:
            operator.packed = real

    return fold


def test_a_checkpoint_from_before_states_were_packed_is_gone_on_from(spark, tmp_path, log):
    first = BATCH_EVENTS
    run = Run(spark, tmp_path, log[:first])
    before = folded_with(unpacking_fold(), run).decisions()
    stored = [bytes(row["state"]) for row in state_frame(spark, run.folders.checkpoint).collect()]
    assert stored == [unpacked(one) for one in stored]
    recorded(run.folders.root, log[first:])
    after = run.until_done(Recorder()).decisions()
    states, decisions = fold_log(log, run.settings.slots)[:2]
    assert (run.states(), before + after) == (states, decisions)
    stored = [bytes(row["state"]) for row in state_frame(spark, run.folders.checkpoint).collect()]
    assert all(packed(unpacked(one)) == one for one in stored)


def failing_fold() -> Callable[..., Any]:
    """A fold that fails on one topic; nested, so that Spark's workers get it by value."""

    def fold(key: Any, frames: Any, state: Any) -> Any:
        from importlib import import_module

        from streaming.operator import fold_machine

        step_module: Any = import_module("state.step")
        fold_module: Any = import_module("checkpoints.fold")
        real = step_module.__dict__.setdefault("real_step", step_module.step)

        def step(machine: Any, event: Any) -> Any:
            found = real(machine, event)
            if event.key == "fatal":
                raise ZeroDivisionError("on purpose")
            return found

        step_module.step = fold_module.step = step
        try:
            yield from fold_machine(key, frames, state)
        finally:
            step_module.step = fold_module.step = real

    return fold


def test_an_event_on_which_a_machine_fails_is_set_aside_and_the_job_goes_on(spark, tmp_path, log):
    """In the middle of a batch, and all others are decided as without it."""
    middle = len(log) // 2
    body = orjson.dumps({"topic": "fatal"})
    fatal = Event(0, 0, "topic_removed", "fatal", body)
    events = [*log[:middle], fatal, *log[middle:]]
    events = [
        Event(offset, 1_000 + offset * 7, e.kind, e.key, e.payload)
        for offset, e in enumerate(events)
    ]
    found = folded_with(failing_fold(), Run(spark, tmp_path, events)).decisions()
    aside = [one for one in found if one.offset == middle]
    assert [one.kind for one in aside] == [DecisionKind.SET_ASIDE]
    assert orjson.loads(aside[0].body)["reason"] == "ZeroDivisionError: on purpose"
    assert [one for one in found if one.offset != middle] == [
        one for one in fold_log(events, 4)[1] if one.offset != middle
    ]


def test_the_routers_column_is_the_rule(spark):
    """For scopes of every kind and slot counts of every parity."""
    groups = [ALL_GROUPS, *(GROUP_SCOPE + bucket for bucket in (0, 1, 8, 16_383))]
    scopes = [
        *groups,
        CLUSTER_AND_SLOTS,
        CLUSTER,
        0,
        1,
        2**31 - 1,
        2**31,
        2**32 - 1,
        *range(7, 2**32, 123_456_789),
    ]
    rows = spark.createDataFrame([(one,) for one in scopes], "scope long")
    for slots in (1, 2, 7, 64):
        layout = Layout(slots, slots + 1)
        column = machine_keys_column(rows.scope, layout)
        keys = rows.select("scope", column.alias("keys")).collect()
        assert {row.scope: tuple(row["keys"]) for row in keys} == {
            one: machine_keys(one, layout) for one in scopes
        }
        narrow = {one: narrowed(one, layout) for one in scopes}
        assert all(machine_keys(narrow[one], layout) == machine_keys(one, layout) for one in scopes)


def test_routing_gives_each_machine_its_events_once(spark, tmp_path, log):
    run = Run(spark, tmp_path, log)
    batch = spark.createDataFrame(
        [(0, CLUSTER_AND_SLOTS), (1, CLUSTER), (2, 6)], "offset long, scope long"
    )
    rows = route(batch, run.settings.layout).collect()
    assert sorted((row.offset, row.machine) for row in rows) == [
        *((0, key) for key in (-1, 0, 1, 2, 3)),
        (1, -1),
        (2, 2),
    ]
    assert "scope" not in rows[0]


@pytest.mark.usefixtures("handlers_kept")
@pytest.mark.parametrize(
    ("key", "value", "sentence"),
    [
        ("slots", 16, r"was made with slots = 4, now it is 16; set it back"),
        ("shuffle.partitions", 2, r"was made with shuffle\.partitions = 1, now it is 2"),
    ],
)
def test_a_job_that_is_configured_otherwise_is_refused(tmp_path, key, value, sentence):
    """Before anything is started."""
    from checkpoints.layout import check_layout

    check_layout(DataDir(tmp_path).checkpoint, Layout(4, GROUP_SLOTS), 1)
    with pytest.raises(CheckpointMismatch, match=sentence):
        run_job(settings_of(tmp_path, **{key: value}))


def test_a_shadow_decides_alike_with_spark_and_without(spark, tmp_path, log):
    """In two steps, each waited for."""
    found = []
    for engine in (
        LocalEngine(settings_of(tmp_path / "local"), DataDir(tmp_path / "local")),
        SparkEngine(settings_of(tmp_path / "spark"), DataDir(tmp_path / "spark"), spark),
    ):
        decided = []
        for part in (log[:BATCH_EVENTS], log[BATCH_EVENTS : 2 * BATCH_EVENTS]):
            until = engine.append([NewRecord(e.kind, e.key, e.payload, e.time_ms) for e in part])
            batches = list(engine.decided(until.stop))
            assert batches[-1].end_offset == until.stop
            decided += [one for batch in batches for one in batch.decisions]
        engine.close()
        found.append(decided)
    assert found[0]
    assert found[0] == found[1]
