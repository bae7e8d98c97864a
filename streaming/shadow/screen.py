"""The shadow for the eye: counts that move, and the last divergences."""

from __future__ import annotations

from datetime import UTC, datetime

import orjson
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from streaming.shadow.report import Report
from streaming.shadow.shadow import Shadow
from streaming.shadow.verdicts import DIVERGENCES, Status, Verdict

_STYLES = {Status.AGREED: "green", Status.EXPLAINED: "yellow", Status.PASSED_OVER: "dim"}
_VALUE_CHARACTERS = 160


def panel(shadow: Shadow, report: Report) -> RenderableType:
    """Return the present state."""
    counts = Table(box=None, show_header=False, pad_edge=False)
    comparison = shadow.comparison
    counts.add_row("controller epoch", str(shadow.epoch))
    counts.add_row("partitions", str(comparison.partitions))
    counts.add_row("events folded", str(shadow.events))
    counts.add_row("waiting for a match", str(comparison.unsettled))
    for status in Status:
        style = _STYLES.get(status, "bold red" if report.tally.of(status) else "")
        counts.add_row(Text(status, style=style), str(report.tally.of(status)))
    return Group(counts, *(sentence(one) for one in report.recent[-5:]))


def watching(shadow: Shadow, since_ms: int) -> str:
    """Say since when the cluster is watched, and what it had then."""
    since = datetime.fromtimestamp(since_ms / 1000, UTC).isoformat(timespec="milliseconds")
    compared = shadow.comparison
    return (
        f"watching since {since.replace('+00:00', 'Z')}: controller epoch {shadow.epoch},"
        f" {compared.partitions} partitions of {compared.topics} topics"
    )


def sentence(verdict: Verdict) -> Text:
    """Say what a verdict is about, and both values."""
    where = verdict.topic if verdict.partition is None else f"{verdict.topic}-{verdict.partition}"
    style = "red" if verdict.status in DIVERGENCES else _STYLES[verdict.status]
    return Text.assemble(
        (f"{verdict.status} ", style),
        f"{where} {verdict.kind}: decided {_short(verdict.decided)}, live {_short(verdict.live)}",
        f" ({verdict.why})" if verdict.why else "",
    )


def _short(value: object) -> str:
    text = value if isinstance(value, str) else orjson.dumps(value).decode()
    return text if len(text) <= _VALUE_CHARACTERS else f"{text[:_VALUE_CHARACTERS]}..."
