"""Replay without Spark: the same machines, folded in this process."""

from __future__ import annotations

import time

from checkpoints.replay import States
from checkpoints.snapshot import Snapshot, read_snapshot, write_snapshot
from streaming.errors import ConfigurationError
from streaming.folding import fold_range
from streaming.log.api import LogReader
from streaming.replay.decisions import DecisionLog, Progress
from streaming.replay.plan import ReplayPlan

_SAVE_EVERY_S = 10.0


def replay_locally(plan: ReplayPlan, reader: LogReader, progress: Progress) -> None:
    """Fold what is not folded yet, a batch at a time.

    The machines are saved now and then and at the end; one that is interrupted goes on from there.
    Raises ConfigurationError when the folder's replay is past the plan's end.
    """
    at = _start(plan, reader)
    if at.offset > plan.end:
        raise ConfigurationError(f"{plan.out.root} has folded up to {at.offset}, not {plan.end}")
    folded, saved = at.offset, time.monotonic()
    states = dict(at.states)
    progress(folded)
    with DecisionLog(plan.out.decisions) as log:
        events = range(at.offset, plan.end)
        for batch in fold_range(
            states,
            reader,
            events,
            plan.layout,
            batch=plan.batch,
            what_if=plan.what_if,
        ):
            log.append(batch)
            folded = batch.end_offset
            progress(folded)
            if time.monotonic() - saved > _SAVE_EVERY_S:
                _save(plan, folded, states)
                saved = time.monotonic()
        _save(plan, folded, states)


def _save(plan: ReplayPlan, folded: int, states: States) -> None:
    write_snapshot(plan.machines, Snapshot(folded, plan.layout, states))


def _start(plan: ReplayPlan, reader: LogReader) -> Snapshot:
    if plan.machines.exists():
        return read_snapshot(plan.machines)
    return plan.beginning() or Snapshot(reader.start_offset(), plan.layout, {})
