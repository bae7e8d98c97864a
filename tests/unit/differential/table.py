"""The table of docs/differences.md."""

from __future__ import annotations

from pathlib import Path


def first_column() -> set[str]:
    """Return what each line of it is about."""
    table = (Path(__file__).parents[3] / "docs" / "differences.md").read_text("utf-8")
    return {line.split("|")[1].strip() for line in table.splitlines() if line.startswith("| ")}
