"""What is said of a micro-batch that took long."""

from __future__ import annotations

import time

import numpy as np
import pytest

from state.decisions import DecisionKind
from state.merge import MergedDecision
from streaming.process.wall_clock import wall_clock_ms
from streaming.sinks.batch import DecidedBatch, SinkDecision
from streaming.sinks.slow_batches import SlowBatches, Steps


def decided(kind: DecisionKind, rows: int = 0) -> SinkDecision:
    return SinkDecision(MergedDecision(7, 0, kind, b"{}"), {}, {}, np.zeros(rows, bool))


def batch(waited_ms: int) -> DecidedBatch:
    changed = decided(DecisionKind.CHANGE_PARTITIONS, 10_000)
    replies = [decided(DecisionKind.REPLY) for _ in range(3)]
    began_ms = wall_clock_ms() - waited_ms
    return DecidedBatch(4, [changed, *replies], {7: began_ms, 9: began_ms + 5}, end_offset=10)


def test_a_slow_batch_is_told_with_what_it_was_about_and_what_took_how_long(
    caplog: pytest.LogCaptureFixture,
) -> None:
    steps = Steps(started_s=time.monotonic() - 2.0)
    steps.done("ZooKeeper")
    steps.done("outcomes")
    SlowBatches(threshold_ms=2_500).look(batch(waited_ms=3_000), steps)
    (said,) = (one.getMessage() for one in caplog.records)
    assert said.startswith("the batch of events 7 to 9 took 3.0")
    assert "with 10000 change_partitions, 3 reply: waiting and folding 1.0" in said
    assert said.endswith(", ZooKeeper 2.00, outcomes 0.00")


def test_one_that_was_quick_is_not_told_of(caplog: pytest.LogCaptureFixture) -> None:
    SlowBatches(threshold_ms=2_500).look(batch(waited_ms=1_000), Steps())
    assert not caplog.records


def test_only_its_steps_count_while_events_have_a_later_time(
    caplog: pytest.LogCaptureFixture,
) -> None:
    slow = SlowBatches(threshold_ms=1_000)
    slow.look(batch(waited_ms=-3_600_000), Steps())
    assert not caplog.records
    steps = Steps(started_s=time.monotonic() - 2.0)
    steps.done("ZooKeeper")
    slow.look(batch(waited_ms=-3_600_000), steps)
    (said,) = (one.getMessage() for one in caplog.records)
    assert "waiting and folding 0.00, ZooKeeper 2.00" in said


def test_a_batch_in_which_nothing_was_decided_is_told_of_too(
    caplog: pytest.LogCaptureFixture,
) -> None:
    SlowBatches(threshold_ms=0).look(DecidedBatch(4, [], {}, end_offset=10), Steps())
    (said,) = (one.getMessage() for one in caplog.records)
    assert "took 0.00 s, with nothing decided" in said
