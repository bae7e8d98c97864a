"""Results as JSON lines on stdout, and as a table for people on stderr."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

_LEFT = ("bench", "case", "controller", "until")


def emit(bench: str, **values: Any) -> dict[str, Any]:
    """Write one result line and return it."""
    line = {"bench": bench, **{key: _rounded(value) for key, value in values.items()}}
    sys.stdout.write(json.dumps(line) + "\n")
    sys.stdout.flush()
    return line


def percentiles(values: Sequence[float]) -> dict[str, float]:
    """Return p50 and p99 with their unit."""
    p50, p99 = np.percentile(values, [50, 99]).tolist()
    return {"p50_ms": p50, "p99_ms": p99}


def markdown(title: str, lines: Sequence[dict[str, Any]]) -> str:
    """Return lines as a Markdown table below its title."""
    names = _names(lines)
    rows = [names, ["---"] * len(names)]
    rows += [[str(line.get(name, "")) for name in names] for line in lines]
    return "\n".join([f"{title}:\n", *(f"| {' | '.join(row)} |" for row in rows), ""])


def show(title: str, lines: Sequence[dict[str, Any]]) -> None:
    """Print lines as a table: one column for each name that any line has."""
    names = _names(lines)
    table = Table(title=title, title_justify="left")
    for name in names:
        table.add_column(name, justify="left" if name in _LEFT else "right")
    for line in lines:
        table.add_row(*(str(line.get(name, "")) for name in names))
    Console(stderr=True, width=160).print(table)


def _names(lines: Sequence[dict[str, Any]]) -> list[str]:
    return list(dict.fromkeys(name for line in lines for name in line))


def _rounded(value: Any) -> Any:
    return round(value, 3) if isinstance(value, float) else value
