"""The real query folds consumer groups as a local fold does, alone or beside the controller."""

from __future__ import annotations

from dataclasses import replace

import pytest

from checkpoints.replay import fold_log
from state.events import Event
from state.groups.kinds import READERS
from state.routing import is_group_key
from tests.property.group_logs import authored, random_intents
from tests.property.state_logs import long_log
from tests.spark.query_run import Recorder, Run

SLOTS = 4


@pytest.fixture(scope="module")
def log() -> list[Event]:
    """A history of groups, and one of the cluster after it."""
    groups = authored(random_intents(3, 120)).events
    end = groups[-1]
    cluster = [
        replace(event, offset=end.offset + 1 + number, time_ms=end.time_ms + event.time_ms)
        for number, event in enumerate(long_log(11, plausible=True)[:60])
    ]
    return [*groups, *cluster]


@pytest.mark.parametrize("shape", [(60, 3, 1), (90, 16, 2)], ids=str)
def test_the_query_decides_about_groups_what_a_local_fold_decides(spark, tmp_path, log, shape):
    """For several caps, group slot counts and shuffle partitions."""
    cap, group_slots, partitions = shape
    chosen = {"shuffle.partitions": partitions, "group.slots": group_slots, "cap": cap}
    run = Run(spark, tmp_path, log, **chosen)
    recorder = run.until_done(Recorder())
    states, wanted = fold_log(log, SLOTS, (), group_slots)
    assert sum(one.kind == "change_group" for one in wanted) > 100
    assert recorder.decisions() == wanted
    assert run.states() == states


@pytest.mark.parametrize("machines", ["groups", "controller"])
def test_a_query_runs_one_half_and_counts_the_other_as_folded(spark, tmp_path, log, machines):
    run = Run(spark, tmp_path, log, machines=machines, cap=100)
    recorder = run.until_done(Recorder())
    of_groups = {event.offset for event in log if event.kind in READERS}
    states, wanted = fold_log(log, SLOTS)
    groups = machines == "groups"
    assert recorder.decisions() == [one for one in wanted if (one.offset in of_groups) == groups]
    assert run.states() == {key: one for key, one in states.items() if is_group_key(key) == groups}
    ends = [batch.end_offset for _, batch in sorted(recorder.batches.items())]
    assert ends[-1] == len(log)
    assert None not in ends
