"""What commands end with that compare two of a kind: decisions, or what is known of a cluster."""

from __future__ import annotations

from collections.abc import Sequence

DIVERGED = 5
"""Exit code when something differed that no meant difference explains."""

INCOMPLETE = 6
"""Exit code when nothing differed, but not everything was compared."""


def exit_code(divergences: int, missing: Sequence[str]) -> int:
    """Return what the command ends with; missing: what was not compared."""
    if divergences:
        return DIVERGED
    return INCOMPLETE if missing else 0
