"""Who is killed comes back: with a standby that waits, and without one, by the supervisor.

Run: python -m tests.bench.bench_standby [--partitions N] [--runs N] [--kinds KIND ...]
[--set key=value ...]. One JSON object per line. Job, or front and job, get SIGKILL in the moment in
which a broker that leads partitions goes; measured is the time until the last request that follows
reached its stub broker. The empty micro-batch is measured in the same run.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from streaming.supervisor.processes import FRONT, JOB, Supervisor
from tests.bench.load import create_topics
from tests.bench.report import emit, show
from tests.bench.system import Log, System
from tests.bench.worker import Worker
from tests.fixtures.waiting import wait_for

BROKERS = 6
VICTIM = 1
WAIT_S = 180.0
EMPTY_EVENTS = 20
PAUSE_MS = 50
POLL_S = 0.02
KILLED = {"job": (JOB,), "both": (FRONT, JOB)}
READY = {FRONT: "waiting until the other front is gone", JOB: "machines, as of event"}


class Pair:
    """Two supervisors of one data folder; `owners` says which of them has each role."""

    def __init__(self, system: System, config: Sequence[str]) -> None:
        self.system = system
        self.active = system.supervisor
        self.other = Supervisor(system.data_dir, config, standby=True)
        self.owners = {FRONT: self.active, JOB: self.active}
        self.kept = [self.active]

    def wait(self, true: Callable[[], Any], what: str) -> None:
        def come() -> Any:
            for one in self.kept:
                one.keep_running()
            return true()

        wait_for(f"{what} (see {self.system.folder})", come, WAIT_S, poll_s=POLL_S)

    def settle(self) -> None:
        """Wait until everything that happened is decided and answered."""
        self.wait(self.system.controls, "control")
        self.system.settle(WAIT_S)

    def stand_by(self, roles: Sequence[str]) -> None:
        """Start what is not the owner of these roles, and wait until it is ready."""
        for role in roles:
            waiting = self.others(role).roles[role]
            before = waiting.log_path.stat().st_size if waiting.log_path.exists() else 0
            waiting.start()
            self.wait(
                lambda log=waiting.log_path, at=before, role=role: (
                    READY[role] in log.read_text()[at:]
                ),
                f"a standby for the {role}",
            )

    def alone(self) -> None:
        """Let the first supervisor run both roles, without a standby."""
        self.other.stop()
        self.owners = dict.fromkeys(self.owners, self.active)
        self.kept = [self.active]
        for role in self.active.roles.values():
            role.back_off.reset()  # it has killed its processes more often than faults do
        self.settle()

    def others(self, role: str) -> Supervisor:
        return self.other if self.owners[role] is self.active else self.active


def came_back(pair: Pair, roles: Sequence[str], standby: bool) -> dict[str, Any]:
    """Kill the owners of roles and drop a broker; return when the last request of it came."""
    system = pair.system
    if standby:
        pair.kept = []
        pair.stand_by(roles)
    else:
        pair.alone()
    events = Log(system.folders.events)
    seen, first = len(system.stubs.ask("records", since=0)), events.end()
    killed_ms = time.time_ns() / 1e6
    for role in roles:
        pair.owners[role].kill(role)
        if standby:
            pair.owners[role] = pair.others(role)
    system.stubs.ask("drop", ids=[VICTIM])
    system.supervisor = _Anybody()
    pair.wait(lambda: len(system.stubs.ask("records", since=0)) > seen, "a first request")
    pair.settle()
    received = system.stubs.ask("records", since=seen)
    kinds = {one.kind: one.time_ms for one in events.records(first)}
    found = {
        "to_first_byte_ms": min(one["at_ns"] for one in received) / 1e6 - killed_ms,
        "to_last_byte_ms": max(one["at_ns"] for one in received) / 1e6 - killed_ms,
        "to_claim_ms": kinds.get("controller_elected", killed_ms) - killed_ms,
        "requests": len(received),
    }
    system.stubs.ask("register", ids=[VICTIM])
    pair.settle()
    return found


class _Anybody:
    """Stands for the supervisor where the system would ask whether its children run."""

    roles: dict[str, Any] = {}  # noqa: RUF012


def run(
    partitions: int, runs: int, kinds: Sequence[str], overrides: list[str], folder: Path
) -> list[dict[str, Any]]:
    lines = []
    with (
        System(folder / "system", overrides) as system,
        Worker(
            "tests.bench.empty_batch", [str(folder / "empty"), *overrides], folder / "empty.log"
        ) as empty,
    ):
        system.stubs.ask("start", ids=list(range(1, BROKERS + 1)))
        create_topics(system.session, partitions, BROKERS)
        system.control(WAIT_S)
        pair = Pair(system, system.supervisor.config)
        try:
            base = median(empty.ask("measure", events=EMPTY_EVENTS, pause_ms=PAUSE_MS))
            lines.append(emit("empty_batch_one_machine", p50_ms=base))
            for what in kinds:
                roles = KILLED[what]
                for standby in (False, True):
                    found = [came_back(pair, roles, standby) for _ in range(runs)]
                    middle = {name: float(median(one[name] for one in found)) for name in found[0]}
                    name = f"{what}_{'standby' if standby else 'restarted'}"
                    ratio = middle["to_last_byte_ms"] / base
                    lines.append(emit(name, **middle, ratio=ratio, runs=runs))
        finally:
            system.supervisor = pair.active
            pair.other.stop()
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--partitions", type=int, default=10_000)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--kinds", nargs="*", choices=list(KILLED), default=list(KILLED))
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        show(
            f"killed, {given.partitions} partitions",
            run(given.partitions, given.runs, given.kinds, given.set, Path(folder)),
        )


if __name__ == "__main__":
    main()
