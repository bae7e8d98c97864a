"""A pause as front and job know it: they tell each other why it was ordered, and since when."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Pause:
    """A pause that an operator ordered.

    reason: of the newest order that gave one, "": none did. since_ms: wall clock. None: not known,
    as the machines keep neither.
    """

    reason: str | None = None
    since_ms: int | None = None

    def filled(self, other: Pause | None) -> Pause:
        """Return it with what is not known taken from what another process knows."""
        if other is None:
            return self
        return Pause(
            other.reason if self.reason is None else self.reason,
            other.since_ms if self.since_ms is None else self.since_ms,
        )


def pause_after(before: Pause | None, order: Mapping[str, Any], at_ms: int | None) -> Pause | None:
    """Return the pause there is after a set_pause, None without one.

    at_ms: when it was ordered; a pause that is ordered again has lasted since the first order.
    """
    if not order["paused"]:
        return None
    if before is None:
        return Pause(order["reason"], at_ms)
    return Pause(order["reason"] or before.reason, before.since_ms)
