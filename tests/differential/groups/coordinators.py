"""Kafka's own coordinator and ours, which all comparisons share, with topics of which to commit."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from functools import partial
from pathlib import Path

from tests.bench.groups.systems import FOLDING, Ours, Stock, create_topic
from tests.differential.compare import Difference
from tests.differential.groups.chooser import PARTITIONS, TOPICS
from tests.differential.groups.run import Run
from tests.differential.groups.side import Side
from tests.differential.groups.transactions import begin

LIMITS = {"group.min.session.timeout.ms": "100", "group.max.size": "3"}
_OF_BROKERS = {
    **LIMITS,
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
}


class Coordinators:
    """Both, until the end of the block."""

    def __init__(self, folder: Path, *, system: str = FOLDING) -> None:
        """Take a folder with a short path, and whether our job runs in Spark (HELMSTREAM)."""
        self._folder = folder
        self._system = system
        self._running = ExitStack()

    def __enter__(self) -> Coordinators:
        with ExitStack() as started:
            self._stock = Stock(self._folder / "k", _OF_BROKERS)
            started.callback(self._stock.stop)
            limits = [f"{key}={value}" for key, value in LIMITS.items()]
            self._ours = Ours(self._folder / "o", self._system, limits, broker_config=_OF_BROKERS)
            started.callback(self._ours.stop)
            for name in TOPICS:
                for system in (self._stock, self._ours):
                    create_topic(system.address[1], name, PARTITIONS)
            self._running = started.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._running.close()

    def interrupt(self, run: Run) -> list[Difference]:
        """Restart Kafka's coordinator, let ours give its groups to a broker and take them back, and
        return what differs meanwhile.
        """
        self._stock.restart()
        self._ours.leave()
        broker = self._ours.address[0], self._ours.broker_port
        found = run.go_on_at(self._stock.address, broker)
        self._ours.come_back()
        return found or run.go_on_at(self._stock.address, self._ours.address)

    @contextmanager
    def sides(self) -> Iterator[tuple[Side, Side]]:
        """Yield connections to both."""
        with ExitStack() as open_sides:
            stock, ours = (
                open_sides.enter_context(
                    closing(Side(system.address, partial(begin, system.broker_port)))
                )
                for system in (self._stock, self._ours)
            )
            yield stock, ours
