"""Event to ZooKeeper and to the last broker's answer, against an empty stateful micro-batch.

Run: python -m tests.bench.bench_latency [--cycles N] [--set key=value ...]. One JSON object per
line. Both sides have the same Spark settings and are measured in turns in one run; compare the
ratios. One cycle: the leader of a partition dies, comes back, and rejoins the ISR by a real
AlterPartition request.

time zero: `time_ms` of the event in the log. ZooKeeper written: the znode's own mtime. Persisted:
the job's word that all writes of the batch are done. Answered: the job has the last broker's
answer.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import uuid
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson

from state.topic_ids import topic_id_to_text
from streaming.log.api import LogRecord
from streaming.zk.ops import Create
from streaming.zk.znodes import TopicZNode, topic_bytes, topic_path
from tests.bench.report import emit, percentiles, show
from tests.bench.system import Log, State, System, alter_partition, read_state
from tests.bench.worker import Worker
from tests.fixtures.gateway_client import GatewayClient

TOPIC = "measured"
BROKERS = [1, 2, 3]
WARM_UP_CYCLES = 10
CYCLES_PER_TURN = 10
PAUSE_MS = 50
GOAL = 1.2


@dataclass
class Samples:
    """Milliseconds from an event, one per event, and how often each broker was asked."""

    znode: list[float] = field(default_factory=list)
    persisted: list[float] = field(default_factory=list)
    answered: list[float] = field(default_factory=list)


class Measured:
    """A cluster of three stub brokers and one partition."""

    def __init__(self, system: System) -> None:
        self.system = system
        self.topic_id = uuid.uuid4()
        ids = system.stubs.ask("start", ids=BROKERS)
        self.epochs = {int(id_): epoch for id_, epoch in ids.items()}
        system.session.ensure_path("/brokers/topics")
        znode = TopicZNode({0: BROKERS}, topic_id_to_text(self.topic_id.bytes))
        system.session.multi([Create(topic_path(TOPIC), topic_bytes(znode))])
        system.control(120)
        self.gateway = GatewayClient(system.gateway_port)
        self.events, self.outcomes = Log(system.folders.events), Log(system.folders.outcomes)
        self.samples = {"alter_partition": Samples(), "leader_death": Samples()}

    def cycle(self) -> None:
        before = self.state()
        self.step("leader_death", lambda: self.system.stubs.ask("drop", ids=[before.leader]))
        led = self.state()
        assert led.leader != before.leader, "the partition has no new leader"
        back = self.system.stubs.ask("register", ids=[before.leader])
        self.epochs[before.leader] = back[str(before.leader)]
        self.system.settle()
        isr = [*led.isr, before.leader]
        self.step(
            "alter_partition",
            lambda: alter_partition(
                self.gateway, self.topic_id, 0, led, isr=isr, epochs=self.epochs
            ),
        )
        assert self.state().isr == isr, "the ISR did not change"

    def state(self) -> State:
        return read_state(self.system.session, TOPIC, 0)

    def step(self, name: str, act: Any) -> None:
        first_event, first_outcome = self.events.end(), self.outcomes.end()
        act()
        self.system.wait_for(lambda: self.events.end() > first_event, 30, "the event")
        self.system.settle()
        (event,) = self.events.records(first_event)
        self._note(self.samples[name], event, first_outcome)

    def _note(self, samples: Samples, event: LogRecord, first_outcome: int) -> None:
        outcomes = self.outcomes.records(first_outcome)
        bodies = [(one.kind, orjson.loads(one.payload)) for one in outcomes]
        (batch,) = [body for kind, body in bodies if kind == "persisted"]
        answers = [body["at_ms"] for kind, body in bodies if kind == "confirmed"]
        mtime_ms = self.state().mtime_ms
        assert event.time_ms <= mtime_ms <= batch["written_at_ms"], "the clocks disagree"
        assert len(answers) >= len(BROKERS) - 1, "not every broker was told"
        samples.znode.append(mtime_ms - event.time_ms)
        samples.persisted.append(batch["written_at_ms"] - event.time_ms)
        samples.answered.append(max(answers) - event.time_ms)


def run(cycles: int, overrides: list[str], folder: Path) -> list[dict[str, Any]]:
    empty_one: list[float] = []
    empty_all: list[float] = []
    with (
        System(folder / "system", overrides) as system,
        Worker(
            "tests.bench.empty_batch", [str(folder / "empty"), *overrides], folder / "empty.log"
        ) as empty,
    ):
        measured = Measured(system)
        for _ in range(WARM_UP_CYCLES):
            measured.cycle()
        empty.ask("measure", events=2 * WARM_UP_CYCLES, pause_ms=PAUSE_MS)
        measured.samples = {name: Samples() for name in measured.samples}
        for _ in range(0, cycles, CYCLES_PER_TURN):
            empty_one += empty.ask("measure", events=CYCLES_PER_TURN, pause_ms=PAUSE_MS)
            empty_all += empty.ask(
                "measure", events=CYCLES_PER_TURN, pause_ms=PAUSE_MS, all_machines=True
            )
            for _ in range(CYCLES_PER_TURN):
                measured.cycle()
        measured.gateway.close()
    return _lines(empty_one, empty_all, measured.samples)


def _lines(
    empty_one: list[float], empty_all: list[float], samples: dict[str, Samples]
) -> list[dict[str, Any]]:
    base = percentiles(empty_one)

    def line(name: str, values: list[float], **more: Any) -> dict[str, Any]:
        found = percentiles(values)
        ratios = {
            "p50_ratio": found["p50_ms"] / base["p50_ms"],
            "p99_ratio": found["p99_ms"] / base["p99_ms"],
        }
        return emit(name, events=len(values), **found, **ratios, **more)

    lines = [line("empty_batch_one_machine", empty_one)]
    lines.append(line("empty_batch_all_machines", empty_all))
    for name, of_event in samples.items():
        lines.append(line(f"{name}_to_znode", of_event.znode, goal=GOAL))
        lines.append(line(f"{name}_to_persisted", of_event.persisted, goal=GOAL))
        lines.append(line(f"{name}_to_last_answer", of_event.answered, goal=GOAL))
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cycles", type=int, default=int(os.environ.get("CYCLES", "100")))
    parser.add_argument("--set", action="append", default=[], dest="overrides")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="helmstream-bench-") as folder:
        lines = run(given.cycles, given.overrides, Path(folder))
    show("Latency of small events", lines)


if __name__ == "__main__":
    main()
