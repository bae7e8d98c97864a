"""Whether this node may coordinate groups: by its role, and by whether somebody decides for it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class NodeRole:
    """What this node is now.

    is_controller: whether it holds the role; has_job: whether a job is connected, which decides;
    is_paused: whether an operator has it decide nothing about partitions.
    """

    is_controller: Callable[[], bool]
    has_job: Callable[[], bool]
    is_paused: Callable[[], bool]

    def decides(self) -> bool:
        """Return whether requests that are taken now are decided."""
        return self.is_controller() and self.has_job()
