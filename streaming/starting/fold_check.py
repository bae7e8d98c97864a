"""Compares what a head start decided with what the query decides on the same events."""

from __future__ import annotations

from collections.abc import Iterable

from checkpoints.replay import Digest
from state.merge import MergedDecision


class FoldCheck:
    """Digests of what was decided ahead of the query, and by the query."""

    def __init__(self) -> None:
        """Begin before the first decision."""
        self._ahead, self._query = Digest(), Digest()

    @property
    def decided_ahead(self) -> int:
        """How many decisions were made ahead of the query."""
        return self._ahead.decisions

    @property
    def decided_by_query(self) -> int:
        """How many decisions the query made on the events that were folded ahead of it."""
        return self._query.decisions

    def ahead(self, decisions: Iterable[MergedDecision]) -> None:
        """Add what was decided ahead of the query."""
        self._ahead.update(decisions)

    def query(self, decisions: Iterable[MergedDecision], began: int, done: int) -> None:
        """Add what the query decided, as far as it is about the events from `began` to `done`."""
        self._query.update(one for one in decisions if began <= one.offset < done)

    def differs(self) -> bool:
        """Return whether the two differ, once the query has folded all those events."""
        return self._ahead.hexdigest() != self._query.hexdigest()
