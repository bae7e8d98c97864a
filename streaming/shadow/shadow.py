"""The shadow's main loop: looks come in, our machine folds them, and both are compared."""

from __future__ import annotations

import logging
import queue
import threading
from collections.abc import Callable, Sequence
from typing import Protocol

from state.decisions import DecisionKind
from streaming.front.metric_families import COUNTERS
from streaming.log.api import NewRecord
from streaming.process.wall_clock import steady_clock_ms
from streaming.shadow.comparison import Comparison
from streaming.shadow.engine import Engine
from streaming.shadow.looks import Look
from streaming.shadow.reader import ClusterReader
from streaming.shadow.verdicts import Verdict
from streaming.zk.errors import ZooKeeperError
from streaming.zk.reader import ZkReader
from streaming.zk.types import SessionState

logger = logging.getLogger(__name__)

_TICK_S = 0.25
_RETRY_S = 1.0
_QUIET_S = 1.0
"""A look comes after that much quiet: a connection that is silent is not known to be lost yet."""
_NO_CONTROLLER = (
    "no controller was seen: there is no /controller below the chroot of zookeeper.connect"
)
_NOTHING_YET = "nothing was compared yet: the first read of the cluster is not over"
_STEPS = 12
"""How many guesses may follow from one another before the next look is taken."""


class Verdicts(Protocol):
    """Takes what comparing has shown."""

    def add(self, verdict: Verdict, now_ms: int) -> None:
        """Take a verdict; now_ms: the present."""


class Shadow:
    """Compares what an engine decides with what a live controller does; used by one thread."""

    def __init__(self, engine: Engine, comparison: Comparison, verdicts: Verdicts) -> None:
        """Start with nothing known.

        watching_since_ms: steady clock when the first read of the cluster was over; None before our
        machine has it. What happens from then on is compared.
        """
        self._engine = engine
        self._comparison = comparison
        self._verdicts = verdicts
        self.events = 0
        self.set_aside = 0
        self.epoch = -1
        self.watching_since_ms: int | None = None

    @property
    def loaded(self) -> bool:
        """Whether a controller was seen, and what it has."""
        return self.epoch >= 0

    @property
    def comparison(self) -> Comparison:
        """What is compared."""
        return self._comparison

    def observe(self, look: Look) -> None:
        """Take a look at the cluster: its inputs first, then its results."""
        first = False
        if look.load is not None:
            first, self.epoch = look.load.first, look.load.epoch
            self._say(self._comparison.begin(look.load), look.over_ms)
        self._fold(look.inputs, look.over_ms, void=first)
        self._comparison.saw(look)
        self.settle(look.time_ms, look.over_ms)
        if first:
            self.watching_since_ms = look.over_ms

    def settle(self, seen_ms: int, now_ms: int) -> None:
        """Compare what is open; may be called at any time.

        seen_ms: what was written until then was observed. It, and not the present, ends a window:
        the match may be in a look that waits while our machine folds. now_ms: the present.
        """
        for _ in range(_STEPS):
            settled = self._comparison.settle(seen_ms)
            self._say(settled.verdicts, now_ms)
            if not settled.records:
                return
            self._fold(settled.records, now_ms)

    def _fold(self, records: Sequence[NewRecord], now_ms: int, *, void: bool = False) -> None:
        if not records:
            return
        folded = self._comparison.fed(records, now_ms)
        until = self._engine.append(folded).stop
        self.events += len(folded)
        for batch in self._engine.decided(until):
            self.set_aside += sum(one.kind == DecisionKind.SET_ASIDE for one in batch.decisions)
            self._say(self._comparison.decided(batch.decisions, now_ms, void=void), now_ms)

    def _say(self, verdicts: Sequence[Verdict], now_ms: int) -> None:
        for verdict in verdicts:
            self._verdicts.add(verdict, now_ms)


class Watcher:
    """Looks at the cluster on a thread of its own whenever something may have changed."""

    def __init__(
        self,
        session: ZkReader,
        open_reader: Callable[[Callable[[], None]], ClusterReader],
        stopped: threading.Event,
    ) -> None:
        """open_reader: makes the reader, given what it calls to wake the thread.

        found_something: whether a look has; None: no look is over.
        """
        self.looks: queue.SimpleQueue[Look] = queue.SimpleQueue()
        self.failure: Exception | None = None
        self.found_something: bool | None = None
        self._repeated: ZooKeeperError | None = None
        self._looking = False
        self._seen_ms = 0
        self._session = session
        self._wake = threading.Event()
        self._reader = open_reader(self._wake.set)
        self._stopped = stopped
        self._thread = threading.Thread(target=self._run, name="cluster-reader", daemon=True)

    @property
    def passed_over(self) -> dict[str, int]:
        """How often something in the cluster could not be read, by the counter's name."""
        return dict(self._reader.counters)

    @property
    def trouble(self) -> str:
        """Why the cluster cannot be seen at the moment; empty when it can."""
        if self._repeated is not None:
            return str(self._repeated)
        return "" if self._session.state is SessionState.HELD else "the connection is lost"

    def seen_ms(self, now_ms: int) -> int:
        """Return until when all that was written is in `looks` or was, now_ms being the present:
        until the last look began when another one is due or ZooKeeper cannot be read.
        """
        due = self._wake.is_set() or self._looking or self._session.state is not SessionState.HELD
        return self._seen_ms if due else now_ms

    def start(self) -> None:
        """Start to look."""
        self._wake.set()
        self._thread.start()

    def stop(self) -> None:
        """End the thread; `stopped` must be set."""
        self._wake.set()
        self._thread.join(timeout=self._session.session_timeout_ms / 1000)

    def _run(self) -> None:
        try:
            while not self._stopped.is_set():
                self._wake.wait(_QUIET_S)
                self._looking = True  # before it is clear: one of both always says what is due
                self._wake.clear()
                self._look()
                self._looking = False
        except Exception as error:
            logger.exception("the cluster cannot be followed any more")
            self.failure = error
            self._stopped.set()

    def _look(self) -> None:
        try:
            look = self._reader.look()
        except ZooKeeperError as error:
            if self._repeated is None:
                logger.warning("looks at ZooKeeper are repeated until one succeeds: %s", error)
            self._repeated = error
            self._stopped.wait(_RETRY_S)
            self._wake.set()
            return
        if look:
            self.looks.put(look)
        self._seen_ms = look.time_ms
        self.found_something = bool(look) or bool(self.found_something)
        self._repeated = None


def follow(
    shadow: Shadow, watcher: Watcher, over: Callable[[], bool], on_tick: Callable[[], None]
) -> None:
    """Take looks as they come, until it is over."""
    while not over():
        try:
            look = watcher.looks.get(timeout=_TICK_S)
        except queue.Empty:
            now_ms = steady_clock_ms()
            seen_ms = watcher.seen_ms(now_ms)
            if watcher.looks.empty():  # asked last: one that came meanwhile is taken first
                shadow.settle(seen_ms, now_ms)
        else:
            shadow.observe(look)
        on_tick()


def gaps(shadow: Shadow, watcher: Watcher, left: Sequence[str] | None = None) -> list[str]:
    """Say what is not compared, and what was not since the start.

    left: what was awaited at the end; None: what is as of now.
    """
    found = awaited(shadow, watcher) if left is None else [*left]
    for name, count in sorted(watcher.passed_over.items()):
        found.append(f"{COUNTERS.get(name, name)}: {count} passed over, log/shadow.log names them")
    if shadow.set_aside:
        found.append(
            f"{COUNTERS['set_aside_events']}: {shadow.set_aside}; helmstream tap shows each"
        )
    return found


def awaited(shadow: Shadow, watcher: Watcher, until_ms: int = 0) -> list[str]:
    """Say what is not compared yet of what was written until then."""
    found = []
    if watcher.trouble:
        found.append(f"ZooKeeper cannot be read: {watcher.trouble}")
    elif not shadow.loaded:
        found.append(_NO_CONTROLLER if watcher.found_something is False else _NOTHING_YET)
    # Asked first: a look that is over by now is among those untaken.
    all_seen = watcher.seen_ms(steady_clock_ms()) >= until_ms
    untaken = watcher.looks.qsize()
    if untaken and shadow.loaded:
        found.append(f"{untaken} looks at the cluster were not compared")
    elif not (all_seen or found):
        found.append("a look at the cluster was under way")
    waiting = shadow.comparison.unsettled
    if waiting:
        found.append(f"{waiting} partitions and topics wait for a match")
    return found
