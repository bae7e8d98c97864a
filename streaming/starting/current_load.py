"""A load of the cluster as it is folded: it goes on until its end was seen, or for too long."""

from __future__ import annotations

import time

_LONGEST_LOAD_S = 120.0
"""After which a load that does not end, whatever else comes, is one no more."""


class CurrentLoad:
    """Whether what is folded is of a load of which more is to come."""

    def __init__(self, *, goes_on: bool) -> None:
        """Say whether the events before were of one."""
        self._is_open = goes_on
        self._until_s = time.monotonic() + _LONGEST_LOAD_S

    @property
    def is_open(self) -> bool:
        """Whether one has begun, and not ended, by the events alone."""
        return self._is_open

    @property
    def goes_on(self) -> bool:
        """Whether more of it is to be waited for."""
        return self._is_open and time.monotonic() < self._until_s

    def note(self, *, goes_on: bool) -> None:
        """Take what the events that were folded say of it; one that begins has its whole time."""
        if goes_on and not self._is_open:
            self._until_s = time.monotonic() + _LONGEST_LOAD_S
        self._is_open = goes_on
