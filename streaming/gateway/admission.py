"""Which connections there are, and whether one more may come in."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from typing import Protocol

logger = logging.getLogger(__name__)


class Admitted(Protocol):
    """What has a place: a connection, or its handshake."""

    async def stop(self) -> None:
        """Hang up, and give up what is under way."""
        ...


class Admission:
    """Gives at most max.connections places; lives on the gateway's event loop.

    Counts connections_open, connections_accepted and connections_refused.
    """

    def __init__(self, places_max: int, counters: Counter[str]) -> None:
        """Take how many places there are, and what to count in."""
        self._places_max = places_max
        self._counters = counters
        self._present: set[Admitted] = set()
        self._told = False
        self._stopped = False

    def admit(self, one: Admitted) -> bool:
        """Give a place, and return whether there was one."""
        if self._stopped:
            return False
        if len(self._present) >= self._places_max:
            self._counters["connections_refused"] += 1
            if not self._told:  # one line per time the quota is reached, not per refusal
                logger.warning(
                    "refusing connections: %d are open, which is max.connections", self._places_max
                )
            self._told = True
            return False
        self._counters["connections_accepted"] += 1
        self._present.add(one)
        self._count()
        return True

    def pass_on(self, before: Admitted, after: Admitted) -> bool:
        """Give one's place to another, and return whether it had one that goes on."""
        if self._stopped or before not in self._present:
            self.leave(before)
            return False
        self._present.remove(before)
        self._present.add(after)
        return True

    def leave(self, one: Admitted) -> None:
        """Take a place back."""
        self._present.discard(one)
        self._told = False
        self._count()

    async def stop(self) -> None:
        """Admit nobody any more, and end all connections."""
        self._stopped = True
        await asyncio.gather(*(one.stop() for one in self._present))

    def _count(self) -> None:
        self._counters["connections_open"] = len(self._present)
