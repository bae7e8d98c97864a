"""Appends events that let offsets expire: for all groups once an interval, some at a time."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Sequence

from state.event_kinds import EventKind
from state.groups.buckets import group_bucket
from streaming.front.groups.direct_commit_pause import DirectCommitPause
from streaming.front.groups.view import CoordinatorView
from streaming.gateway.ports import NotReplicated
from streaming.log.events import AppendEvents, event
from streaming.offsets.term_over import TermOver

BUCKETS_AT_ONCE = 256
"""Their groups are paused together: few enough that their commits can be decided meanwhile."""


class OffsetsExpiry:
    """Appends an event for each bucket that has groups; lives on the front's event loop."""

    def __init__(
        self,
        pause: DirectCommitPause,
        append: AppendEvents,
        view: CoordinatorView,
        interval_s: float,
    ) -> None:
        """interval_s: offsets.retention.check.interval.ms."""
        self._pause = pause
        self._append = append
        self._view = view
        self._interval_s = interval_s

    async def run(self) -> None:
        """Let offsets expire until cancelled. What cannot be done now is done the next time."""
        while True:
            parts = self.parts() or [range(0)]
            for buckets in parts:
                await asyncio.sleep(self._interval_s / len(parts))
                with contextlib.suppress(NotReplicated, TermOver):
                    await self.expire(buckets)

    def parts(self) -> list[Sequence[int]]:
        """Return the buckets that have groups, in parts that are looked through together."""
        buckets = sorted(set(map(group_bucket, self._view.image.groups)))
        starts = range(0, len(buckets), BUCKETS_AT_ONCE)
        return [buckets[start : start + BUCKETS_AT_ONCE] for start in starts]

    async def expire(self, buckets: Sequence[int]) -> None:
        """Have the groups of these buckets looked through, and wait until that is decided.

        Raises NotReplicated, TermOver.
        """
        if not buckets:
            return
        concerned, known = set(buckets), (*self._view.image.groups, *self._pause.groups)
        groups = {one for one in known if group_bucket(one) in concerned}
        kind = EventKind.OFFSETS_EXPIRATION_DUE
        records = [event(kind, {}, str(bucket)) for bucket in buckets]
        await self._pause.until_decided(groups, lambda: self._append(records))
