"""Whether a query that folds behind a head start has caught up with it."""

from __future__ import annotations

_FEW = 100
"""Events that a query leaves to be folded in its next batch without being behind."""
_MOST_BATCHES = 20
"""Of a query that comes no nearer: then it decides all the same."""


class CatchUp:
    """How far a query is, batch by batch, beside how far a head start is."""

    def __init__(self, query_at: int) -> None:
        """query_at: the offset up to which the query has folded."""
        self._query_at = query_at
        self._gap, self._no_nearer = 0, 0

    def behind(self, done: int) -> int:
        """Return how many of the events before an offset the query has not folded."""
        return done - self._query_at

    def query_folded(self, end: int, done: int, *, load_goes_on: bool) -> bool:
        """Note a batch of the query, and return whether it may decide what comes from now on.

        end: up to where it has folded; done: up to where the head start has.
        """
        size, self._query_at = end - self._query_at, end
        before, self._gap = self._gap, done - end
        self._no_nearer = self._no_nearer + 1 if self._gap >= before else 0
        # What came meanwhile is no more than what it has just folded: it keeps up. Within a load,
        # of which more is to come, it does so only once it is ahead.
        most = -1 if load_goes_on else max(size, _FEW)
        return self._gap <= most or self._no_nearer >= _MOST_BATCHES
