"""The real query folds consumer groups as a local fold does, alone or beside the controller."""

from __future__ import annotations

from dataclasses import replace

import pytest

from state.events import Event
from tests.fixtures.folding import fold_log
from tests.logs.group_intents import authored, random_intents
from tests.logs.state_logs import long_log
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
    ends = [batch.end_offset for _, batch in sorted(recorder.batches.items())]
    assert ends[-1] == len(log)
    assert None not in ends
