"""What observers need from whoever runs them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from streaming.observers.tree import Dirty


class Topics(Protocol):
    """The topics as they were read last."""

    def __contains__(self, name: str) -> bool:
        """Return whether a topic of that name was read."""

    def topic_id(self, name: str) -> str | None:
        """Return the id that a topic was read with; None when it has none or is not known."""

    @property
    def observed_again(self) -> frozenset[str]:
        """The topics that were appended again because somebody waits for it, until it is said
        (`followed_up`) that what has to come behind them was appended too.
        """

    def followed_up(self, topics: frozenset[str]) -> None:
        """Forget that these were observed again."""

    def look(self, dirty: Dirty) -> None:
        """Read what may differ, and append it."""

    def configs_changed(self, topics: Iterable[str]) -> None:
        """Read the configuration of topics again, and append what differs."""
