"""One small event at a time: Kafka's own controller, helmstream, and an empty micro-batch.

`python -m tests.bench.controller.small [--cycles N]`: in each cycle the leader of the only
partition dies, comes back, and is taken into the ISR again by an AlterPartition request. Times
begin when ZooKeeper is asked to forget the broker, or the request is sent, and end at the last byte
that a broker received of what follows. JSON lines go to stdout, a table to stderr.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

from tests.bench.controller.stage import Stage
from tests.bench.controller.systems import HELMSTREAM, System, make
from tests.bench.load import topic_id, topic_name
from tests.bench.report import emit, percentiles, show
from tests.bench.system import alter_partition, read_state
from tests.bench.worker import Worker
from tests.fixtures.gateway_client import GatewayClient

BROKERS = 3
WARM_UP_CYCLES = 10
CYCLES_PER_TURN = 10
PAUSE_MS = 50
_SILENCE_S = 0.3
_START_SILENCE_S = 5.0
_TIMEOUT_S = 120.0

Samples = dict[str, list[float]]


class Cycles:
    """A controller, three stub brokers and a partition."""

    def __init__(self, name: str, folder: Path, overrides: list[str]) -> None:
        self._stage = Stage(folder, partitions=1, brokers=BROKERS, loaded=True)
        self._system: System = make(name, folder, self._stage.connect, overrides)
        self._system.start()
        while len(self._stage.summary(0)["brokers"]) < BROKERS:
            time.sleep(_SILENCE_S)
        self._settle(_START_SILENCE_S)
        self._gateway = GatewayClient(self._system.port)

    def run(self, cycles: int) -> Samples:
        """Return the milliseconds of each event."""
        found: Samples = {"leader_death": [], "alter_partition": []}
        for _ in range(cycles):
            before = self._state()
            found["leader_death"].append(
                self._timed(lambda leader=before.leader: self._stage.drop([leader]))
            )
            led = self._state()
            assert led.leader != before.leader, "the partition has no new leader"
            self._stage.register([before.leader])
            self._settle()
            isr = [*led.isr, before.leader]
            found["alter_partition"].append(
                self._timed(
                    lambda led=led, isr=isr: alter_partition(
                        self._gateway, topic_id(0), 0, led, isr=isr, epochs=self._stage.epochs
                    )
                )
            )
            assert self._state().isr == isr, "the ISR did not change"
        return found

    def _state(self) -> Any:
        return read_state(self._stage.session, topic_name(0), 0)

    def _timed(self, act: Callable[[], None]) -> float:
        since_ns = time.time_ns()
        act()
        self._settle()
        told = self._stage.summary(since_ns)
        assert told["requests"] >= BROKERS - 1, "not every broker was told"
        return (told["last_ns"] - since_ns) / 1e6

    def _settle(self, silence_s: float = _SILENCE_S) -> None:
        self._stage.wait_for_silence(silence_s, _TIMEOUT_S)
        while not self._system.settled():
            time.sleep(_SILENCE_S)

    def close(self) -> None:
        self._gateway.close()
        self._system.stop()
        self._stage.close()


def run(given: argparse.Namespace, folder: Path) -> list[dict[str, Any]]:
    """Measure all in turns; return a line for each controller and event."""
    names = [HELMSTREAM, "stock-10"]
    controllers = {name: Cycles(name, folder / name, given.overrides) for name in names}
    samples: dict[str, Samples] = {name: {} for name in names}
    empty: list[float] = []
    arguments = [str(folder / "empty"), *given.overrides]
    with Worker("tests.bench.empty_batch", arguments, folder / "empty.log") as yardstick:
        yardstick.ask("measure", events=WARM_UP_CYCLES, pause_ms=PAUSE_MS)
        for one in controllers.values():
            one.run(WARM_UP_CYCLES)
        for _ in range(0, given.cycles, CYCLES_PER_TURN):
            empty += yardstick.ask("measure", events=CYCLES_PER_TURN, pause_ms=PAUSE_MS)
            for name, one in controllers.items():
                for event, took in one.run(CYCLES_PER_TURN).items():
                    samples[name].setdefault(event, []).extend(took)
    for one in controllers.values():
        one.close()
    lines = [emit("empty_batch", events=len(empty), **percentiles(empty))]
    for event in samples[HELMSTREAM]:
        for name in names:
            took = samples[name][event]
            ratios = {
                "empty_batches": median(took) / median(empty),
                "to_stock": median(took) / median(samples["stock-10"][event]),
            }
            more = {"events": len(took), **percentiles(took), **ratios}
            lines.append(emit(event, controller=name, **more))
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cycles", type=int, default=100)
    parser.add_argument("--set", action="append", default=[], dest="overrides")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="helmstream-bench-") as folder:
        lines = run(given, Path(folder))
    show("Small events", lines)


if __name__ == "__main__":
    main()
