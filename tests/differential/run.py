"""One run: a seed's steps, done to Kafka's controller and to ours, and compared after each."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from random import Random
from typing import Any

from streaming.zk.znodes import CONTROLLER_EPOCH_PATH
from tests.differential.chooser import BROKERS, Chooser
from tests.differential.cluster import Cluster, Tree
from tests.differential.compare import Difference, Look, differences, nodes
from tests.differential.controllers import OurController, StockController
from tests.differential.explain import explained, log_end, set_aside
from tests.differential.known import sorted_out
from tests.differential.model import Model
from tests.differential.outcome import Outcome
from tests.differential.steps import Step

_PATIENCE_S = 30.0

Say = Callable[[str], None]
Settled = Callable[[list[Difference], float], bool]
"""Whether what differs after so many seconds is not only late."""


def _nothing_differs(found: list[Difference], waited_s: float) -> bool:
    return not found


class Run:
    """Both sides of one seed; `close` ends everything it started."""

    def __init__(
        self,
        seed: int,
        folder: Path,
        stock_connect: str,
        our_connect: str,
        *,
        spark: bool = False,
    ) -> None:
        """Start brokers and controllers side by side, each on an empty tree."""
        self.outcome = Outcome(seed)
        self._chooser = Chooser(Random(seed))
        self._given_ids: set[str | None] = set()
        self._pool = ThreadPoolExecutor(2)
        self._open = ExitStack()
        self._open.callback(self._pool.shutdown)
        with ExitStack() as started:
            started.callback(self._open.close)
            self.stock = Cluster(stock_connect, BROKERS)
            self._open.callback(self.stock.close)
            self.ours = Cluster(our_connect, BROKERS)
            self._open.callback(self.ours.close)
            self._control(folder, spark=spark)
            started.pop_all()

    def _control(self, folder: Path, *, spark: bool) -> None:
        stock = StockController(self.stock.connect, folder / "kafka")
        self.stock.controlled_by(stock)
        self._log = folder / "helmstream"
        ours = OurController(self.ours.connect, self._log, spark=spark)
        self.ours.controlled_by(ours)
        for cluster, controller in ((self.stock, stock), (self.ours, ours)):
            controller.wait(cluster.session)
            cluster.change_brokers(started=BROKERS)
        self._first_epochs = [_epoch(cluster) for cluster in (self.stock, self.ours)]
        self._before = self._look(*self._settled())

    def take(self, steps: int, say: Say = lambda _: None) -> Outcome:
        """Take steps until there are enough or something differs."""
        while len(self.outcome.steps) < steps and not self.outcome.differences:
            step = self._chooser.next(self._model)
            say(f"{len(self.outcome.steps) + 1:3} {step}")
            start = log_end(self._log)
            self.outcome.differences = self.do(step)
            if self.outcome.differences:
                self.outcome.explanation = explained(self._log, start)
        return self.outcome

    def do(self, step: Step, settled: Settled = _nothing_differs) -> list[Difference]:
        """Do a step to both sides and return what differs then, and nobody knows."""
        self.outcome.steps.append(step)
        self._given_ids.add(step.of.get("topic_id"))
        answers = self._both(step.apply)
        found = self._compared(settled)
        if answers[0] != answers[1]:
            found.append(Difference("answer", *answers))
        found += [Difference("an event was set aside", None, one) for one in set_aside(self._log)]
        return found

    def close(self) -> None:
        """End controllers and brokers."""
        self._open.close()

    def _compared(self, settled: Settled) -> list[Difference]:
        """Settle and compare; what still differs may only be late on a busy machine."""
        begun_s = time.monotonic()
        while True:
            now = self._look(*self._settled())
            unknown, known = sorted_out(differences(self._before, now), now)
            waited_s = time.monotonic() - begun_s
            if settled(unknown, waited_s) or waited_s > _PATIENCE_S:
                break
            time.sleep(0.5)
        self.outcome.known.update(known)
        self._before = now
        return unknown

    def _settled(self) -> list[Tree]:
        trees = self._both(Cluster.settle)
        self._model = Model.of(trees[0])
        return trees

    def _look(self, stock: Tree, ours: Tree) -> Look:
        trees = zip((stock, ours), self._first_epochs, strict=True)
        of_stock, of_ours = (nodes(tree, epoch, self._given_ids) for tree, epoch in trees)
        return Look(of_stock, of_ours, self.stock.told(), self.ours.told())

    def _both(self, call: Callable[[Cluster], Any]) -> list[Any]:
        """Call for both sides at once."""
        return list(self._pool.map(call, (self.stock, self.ours)))


def _epoch(cluster: Cluster) -> int:
    znode = cluster.session.get(CONTROLLER_EPOCH_PATH)
    assert znode is not None
    return int(znode.data)
