"""What folding costs without Spark, by kind of event: processor time, bytes of state, decisions.

Run: python -m tests.bench.bench_fold [--partitions N ...]. States are read from bytes and written
to bytes in every batch, as the streaming operator does; 8 slots, 30 brokers, three replicas.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterable
from itertools import islice
from statistics import median
from typing import Any

from checkpoints.replay import States, fold_batch
from state.events import Event
from state.routing import GROUP_SLOTS, Layout
from streaming.log.api import NewRecord
from tests.bench.recorded_logs import (
    BROKERS,
    PARTITIONS_PER_TOPIC,
    controller_log,
    group_log,
    record,
)
from tests.bench.report import emit, show

ALTERED = "alter_partition_requested"
SLOTS = 8
MANY = 1_000
SINGLE = 50
LOST = (3, 9, 15, 21, 27)


class Folded:
    """Machines that are folded batch by batch; each batch says what it cost."""

    def __init__(self) -> None:
        self.states: States = {}
        self._offset = 0

    def fold(self, records: Iterable[NewRecord]) -> dict[str, float]:
        events = [
            Event(offset, one.time_ms, one.kind, one.key, one.payload)
            for offset, one in enumerate(records, self._offset)
        ]
        self._offset += len(events)
        began = time.process_time()
        decisions = fold_batch(self.states, events, Layout(SLOTS, GROUP_SLOTS))
        cpu_ms = (time.process_time() - began) * 1000
        out_bytes = sum(len(one.body) for one in decisions)
        in_bytes = sum(len(one.payload) for one in events)
        return {
            "events": len(events),
            "cpu_ms": cpu_ms,
            "in_bytes": in_bytes,
            "out_bytes": out_bytes,
        }

    def state_bytes(self) -> int:
        return sum(map(len, self.states.values()))


def costs(kind: str, batches: list[dict[str, float]], per: int, **more: Any) -> dict[str, Any]:
    """Report the median batch; per: what one batch is divided by."""
    middle = {name: median(one[name] for one in batches) for name in batches[0]}
    return emit(
        kind,
        events_a_batch=middle["events"],
        cpu_ms_a_batch=middle["cpu_ms"],
        cpu_us_each=middle["cpu_ms"] * 1000 / per,
        in_bytes_each=middle["in_bytes"] / per,
        out_bytes_each=middle["out_bytes"] / per,
        **more,
    )


def controller(partitions: int) -> list[dict[str, Any]]:
    topics = partitions // PARTITIONS_PER_TOPIC
    # No spare broker comes among these requests: it does so after each thousand.
    requests = [one for one in controller_log(topics, 4 * MANY) if one.kind == ALTERED]
    load = list(islice(controller_log(topics, 0), topics + 3))
    folded = Folded()
    cost = folded.fold(load)
    lines = [costs(f"load of {partitions}, each", [cost], partitions)]
    singles = [folded.fold([one]) for one in requests[:SINGLE]]
    lines.append(costs(f"{ALTERED}, one a batch", singles, 1))
    batches = [folded.fold(requests[at : at + MANY]) for at in range(SINGLE, 3 * MANY, MANY)]
    lines.append(costs(f"{ALTERED}, {MANY} a batch", batches, MANY))
    failures = [
        folded.fold([record(10 * MANY, "broker_registrations_changed", "", unregistered=[one])])
        for one in LOST
    ]
    changed = partitions * 3 // BROKERS
    lines.append(costs("a broker of 30 fails, each changed", failures, changed, changed=changed))
    lines.append(emit("state", bytes_a_partition=folded.state_bytes() / partitions))
    return lines


def groups() -> list[dict[str, Any]]:
    folded = Folded()
    log = list(group_log(MANY, 5 * MANY))
    folded.fold(log[: 3 + MANY])
    batches = [folded.fold(log[at : at + MANY]) for at in range(3 + MANY, 5 * MANY, MANY)]
    return [costs(f"offset_commit_requested of 5 partitions, {MANY} a batch", batches, MANY)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--partitions", type=int, nargs="*", default=[10_000, 100_000])
    given = parser.parse_args()
    lines = [line for count in given.partitions for line in controller(count)]
    show("", [*lines, *groups()])


if __name__ == "__main__":
    main()
