"""Pauses before something that failed is tried again."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(slots=True)
class BackOff:
    """Pauses that double from first_s to longest_s; next_s: the next one."""

    first_s: float
    longest_s: float
    next_s: float = field(init=False)

    def __post_init__(self) -> None:
        """Begin with the shortest."""
        self.reset()

    def pause_s(self) -> float:
        """Return how long to wait now."""
        pause_s, self.next_s = self.next_s, min(self.next_s * 2, self.longest_s)
        return pause_s

    def reset(self) -> None:
        """Begin with the shortest again."""
        self.next_s = self.first_s
