"""Counts what becomes of groups, for who looks after them: rebalances, how long they took, and
members and offsets that went.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from itertools import accumulate
from typing import Any

from state.groups.change_bodies import Change
from state.groups.change_kinds import ChangeKind

REBALANCE_SECONDS = (0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0)
"""Upper bounds by which rebalances are counted; those that took longer come last."""
_EXPIRED = "expired"
_REMOVED_FOR = ("left", "session_expired", "rebalance_timeout", "sync_timeout", "group_full")


class GroupFigures:
    """Counts since the front's start; lives on its event loop.

    A rebalance lasts until the leader's assignment is stored, however often it has begun again; one
    that ends with an empty group, or with the term, is not completed. An assignment that went
    without a decision is told twice, and counted once.
    """

    def __init__(self) -> None:
        """Nothing has happened yet."""
        self._since_ms: dict[str, int] = {}
        self._started = self._expired_offsets = 0
        self._removed = Counter(dict.fromkeys(_REMOVED_FOR, 0))
        self._took = [0] * (len(REBALANCE_SECONDS) + 1)
        self._took_ms = 0

    def decided(self, group: str, changes: Sequence[Change]) -> None:
        """Take changes of a group, once they are true."""
        for change in changes:
            count = _COUNTS.get(change["change"])
            if count is not None:
                count(self, group, change)

    def forget(self) -> None:
        """Groups are coordinated elsewhere: what is under way there is not ours to count."""
        self._since_ms.clear()

    def status(self) -> dict[str, Any]:
        """Return the figures; docs/status.md says what each field means."""
        bounds = [*REBALANCE_SECONDS, None]
        return {
            "rebalances": self._started,
            "completed_rebalances": sum(self._took),
            "rebalance_seconds": [*zip(bounds, accumulate(self._took), strict=True)],
            "rebalance_seconds_sum": self._took_ms / 1000,
            "members_removed": dict(self._removed),
            "expired_offsets": self._expired_offsets,
        }

    def _rebalance_started(self, group: str, change: Mapping[str, Any]) -> None:
        self._started += 1
        self._since_ms.setdefault(group, change["at_ms"])

    def _assigned(self, group: str, change: Mapping[str, Any]) -> None:
        since_ms = self._since_ms.pop(group, None)
        if since_ms is not None:
            took_ms = max(change["at_ms"] - since_ms, 0)
            self._took[bisect_left(REBALANCE_SECONDS, took_ms / 1000)] += 1
            self._took_ms += took_ms

    def _not_completed(self, group: str, change: Mapping[str, Any]) -> None:
        self._since_ms.pop(group, None)

    def _member_removed(self, group: str, change: Mapping[str, Any]) -> None:
        self._removed[change["reason"]] += 1

    def _offsets_removed(self, group: str, change: Mapping[str, Any]) -> None:
        if change["reason"] == _EXPIRED:
            self._expired_offsets += len(change["partitions"])


_COUNTS: Mapping[ChangeKind, Callable[[GroupFigures, str, Any], None]] = {
    ChangeKind.REBALANCE_STARTED: GroupFigures._rebalance_started,
    ChangeKind.ASSIGNMENT_DISTRIBUTED: GroupFigures._assigned,
    ChangeKind.GROUP_EMPTIED: GroupFigures._not_completed,
    ChangeKind.GROUP_REMOVED: GroupFigures._not_completed,
    ChangeKind.MEMBER_REMOVED: GroupFigures._member_removed,
    ChangeKind.OFFSETS_REMOVED: GroupFigures._offsets_removed,
}
