"""The table at the end, and the words that it shares with the progress."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rich import box
from rich.table import Table
from rich.text import Text

from streaming.demo.journal import Timing
from streaming.demo.story import Told

_NOTHING = "-"


def table_of(story: Sequence[Told]) -> Table:
    """Return a row for each step that was told."""
    table = Table(box=box.SIMPLE_HEAD, header_style="bold", leading=1, pad_edge=False)
    table.add_column("step, and what was seen")
    table.add_column("seen\nafter", justify="right")
    table.add_column("decisions, and one of them in words", overflow="fold")
    table.add_column("event to\nZooKeeper", justify="right")
    table.add_column("to last\nbroker", justify="right")
    table.add_column("longest\nack gap", justify="right")
    for told in story:
        timing = told.report.timing
        table.add_row(
            _step(told),
            seconds(told.took_s) if told.missing is None else Text("not seen", "bold red"),
            _decisions(told),
            _NOTHING if timing is None else milliseconds(timing.written_ms),
            _NOTHING if timing is None else milliseconds(timing.answered_ms),
            _NOTHING if told.longest_ack_gap_s is None else seconds(told.longest_ack_gap_s),
        )
    return table


def counts(decisions: Mapping[str, int]) -> str:
    """Return how many decisions of each kind, in words."""
    return ", ".join(f"{count} {kind}" for kind, count in decisions.items()) or "none"


def timing_words(timing: Timing | None) -> str:
    """Return how long an event took to ZooKeeper and to the last broker, in words."""
    if timing is None:
        return ""
    written = f"{milliseconds(timing.written_ms)} to ZooKeeper"
    if timing.answered_ms is None:
        return written
    return f"{written}, {milliseconds(timing.answered_ms)} to the last broker"


def seconds(value: float) -> str:
    """Return a duration in s for people."""
    return f"{value:.1f} s"


def milliseconds(value: int | None) -> str:
    """Return a duration in ms or s for people."""
    if value is None:
        return _NOTHING
    return f"{value} ms" if value < 1_000 else seconds(value / 1_000)


def _step(told: Told) -> Text:
    said = told.missing if told.missing is not None else told.step.must_show
    style = "dim" if told.missing is None else "red"
    return Text.assemble((told.step.name, "bold"), "\n", (said, style))


def _decisions(told: Told) -> Text:
    text = Text(counts(told.report.decisions))
    if told.report.example is not None:
        text.append(f"\n{told.report.example}", style="cyan")
    return text
