"""Who watches the demo: a live panel for a terminal, one line after the other for anything else."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from types import TracebackType

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.panel import Panel
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text

from streaming.demo.cluster import DemoCluster
from streaming.demo.sighting import Sighting
from streaming.demo.story import Step, Told
from streaming.demo.summary import counts, seconds, timing_words
from streaming.zk.errors import ZooKeeperError

_REFRESH_PER_S = 4
_LOOK_EVERY_S = 0.5
_LAST_DECISIONS = 5
_LOOKING_ENDS_S = 5.0


class Lines:
    """Prints what begins and what was seen."""

    def __init__(self, console: Console) -> None:
        """Print on a console."""
        self._console = console

    def begins(self, step: Step) -> None:
        """Say what is done."""
        self._say(f"{step.name} ...")

    def told(self, told: Told) -> None:
        """Say what was seen, or what is missing."""
        if told.missing is not None:
            self._say(f"  NOT SEEN: {told.missing}")
            return
        self._say(f"  seen after {seconds(told.took_s)}: {told.step.must_show}")
        self._say(f"  decisions: {counts(told.report.decisions)}")
        for more in (told.report.example, timing_words(told.report.timing)):
            if more:
                self._say(f"  {more}")

    def _say(self, line: str) -> None:
        self._console.print(line, markup=False, highlight=False, soft_wrap=True)


class LivePanel:
    """Shows the steps, the clients' counters, the cluster and the last decisions, always anew.

    A context manager: the panel stays on the screen as it was last.
    """

    def __init__(self, console: Console, steps: Sequence[Step], demo: DemoCluster) -> None:
        """Prepare the panel; nothing is shown before `with`."""
        self._steps = steps
        self._demo = demo
        self._over: dict[str, Told] = {}
        self._running: Step | None = None
        self._began_s = 0.0
        self._sighting: Sighting | None = None
        self._spinner = Spinner("dots")
        self._closed = threading.Event()
        self._looking = threading.Thread(target=self._look_on, name="demo-panel", daemon=True)
        self._live = Live(console=console, get_renderable=self._render, transient=False)
        self._live.refresh_per_second = _REFRESH_PER_S

    def __enter__(self) -> LivePanel:
        """Show the panel."""
        self._looking.start()
        self._live.start(refresh=True)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Leave the panel as it is."""
        self._closed.set()
        self._looking.join(_LOOKING_ENDS_S)
        self._running = None
        self._live.stop()

    def begins(self, step: Step) -> None:
        """Show a step as running."""
        self._running, self._began_s = step, time.monotonic()

    def told(self, told: Told) -> None:
        """Show a step as seen, or as not."""
        self._over[told.step.name] = told
        self._running = None

    def _look_on(self) -> None:
        while not self._closed.wait(_LOOK_EVERY_S):
            try:
                self._sighting = self._demo.look()
            except ZooKeeperError:
                self._sighting = None

    def _render(self) -> RenderableType:
        blank = Text()
        parts = Group(self._steps_table(), blank, self._cluster_table(), blank, self._decisions())
        return Panel(parts, title="helmstream demo", title_align="left")

    def _steps_table(self) -> Table:
        table = Table.grid(padding=(0, 1))
        for step in self._steps:
            told = self._over.get(step.name)
            if told is not None:
                seen = told.missing is None
                mark: RenderableType = Text("✓" if seen else "✗", "green" if seen else "bold red")
                said = step.must_show if seen else str(told.missing)
                table.add_row(mark, step.name, seconds(told.took_s), Text(said, "dim"))
            elif step is self._running:
                so_far = seconds(time.monotonic() - self._began_s)
                table.add_row(self._spinner, Text(step.name, "bold"), so_far, step.must_show)
            else:
                table.add_row(Text("·", "dim"), Text(step.name, "dim"), "", "")
        return table

    def _cluster_table(self) -> Table:
        table = Table.grid(padding=(0, 2))
        producer, consumer, sighting = self._demo.producer, self._demo.consumer, self._sighting
        if producer is not None:
            gap = seconds(producer.longest_gap_s())
            table.add_row("producer", f"acked {producer.acked_count}, longest ack gap {gap}")
        if consumer is not None:
            table.add_row("consumer", f"read {len(consumer.values)}")
        if sighting is not None:
            table.add_row("controller", _controller(sighting))
            table.add_row("leaders", _leaders(sighting, sorted(self._demo.embedded.brokers)))
        return table

    def _decisions(self) -> Group:
        last = self._demo.journal.last_sentences(_LAST_DECISIONS)
        rows = [Text(one, "cyan", no_wrap=True, overflow="ellipsis") for one in last]
        return Group(Text("last decisions", "bold"), *rows)


def _controller(sighting: Sighting) -> str:
    if sighting.controller_id is None:
        return "nobody"
    return f"{sighting.controller_id}, epoch {sighting.controller_epoch}"


def _leaders(sighting: Sighting, broker_ids: Sequence[int]) -> Text:
    text = Text()
    for broker_id in broker_ids:
        there = broker_id in sighting.brokers
        led = sighting.led_by(broker_id)
        words = f"broker {broker_id}: {led:2} {'█' * led}" if there else f"broker {broker_id}: gone"
        text.append(f"{words:<26}", style="" if there else "red")
    return text
