"""Members' sessions: the front keeps them, and appends heartbeats only where the log needs them.

The machines have a deadline for each member and let it fire with the first event that comes after
it. They know less than is known here, so two things are appended:

- Before any event that a bucket of groups folds, `heartbeats_received` with the last-heard times
  that the log does not have, unless no session can have ended yet, and the SyncGroups that were
  answered without an event (`direct_syncs`). `heartbeats_before` is the one place that does so.
- When a member was silent for its session, a tick of its bucket (`group_timer_due`).

While every member is heard from in time nothing is appended. docs/adr/0016 says what was measured.
"""

from __future__ import annotations

import asyncio
import heapq
import itertools
import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from state.event_kinds import EventKind
from state.groups.buckets import timer_name
from state.groups.change_bodies import Change, Dated, Timeouts
from state.routing import ALL_GROUPS, GROUP_SCOPE, scope
from streaming.front.event_loop import Handle, Loop
from streaming.front.groups.member_sessions import BucketSessions, MemberSession, Moments
from streaming.front.groups.session_table import SessionTable
from streaming.log.api import NewRecord
from streaming.log.events import event

_GRAIN_S = 0.25
"""Silent members are looked for that often at most."""
_TURNS = 3
"""Of the loop, before anybody counts as silent: what clients have sent by then is read first."""


class Sessions:
    """The sessions of the members of all groups; lives on one event loop.

    append: takes events, behind those that `heartbeats_before` gives for them. now_ms: the time of
    events. decides: whether what is appended now is decided.
    """

    def __init__(
        self,
        loop: Loop,
        append: Callable[[Sequence[NewRecord]], object],
        now_ms: Callable[[], int],
        decides: Callable[[], bool],
    ) -> None:
        """Begin without groups."""
        self._loop = loop
        self._append = append
        self._now_ms = now_ms
        self._decides = decides
        self._table = SessionTable(self._moments, self._watch)
        self._queue: list[tuple[float, int, MemberSession]] = []
        self._order = itertools.count()
        self._handle: Handle | None = None

    def heard(self, group: str, member: str) -> None:
        """Note that a member is alive now; one that is not known is passed over."""
        one = self._table.get(group, member)
        if one is not None:
            one.touch(self._loop.time())

    def asked(self, group: str, member: str, reply: asyncio.Future[Any]) -> None:
        """Note that a member has sent a request: it counts as alive until that is answered."""
        self.heard(group, member)
        self._table.asked(group, member)
        reply.add_done_callback(lambda _: self._answered(group, member))

    def joins(
        self,
        group: str,
        member: str,
        instance: str | None,
        timeouts: Timeouts,
        reply: asyncio.Future[Any],
    ) -> None:
        """Note that somebody has sent JoinGroup, maybe under an id that is not known yet: it counts
        as alive until that is answered.
        """
        self._table.joins(group, member, instance, timeouts, self._loop.time())
        self.asked(group, member, reply)

    def sync_came(self, group: str, member: str) -> bool:
        """Note that a member has sent SyncGroup, which is reported before the machine removes the
        member for sending none; return False when it is too late for that.
        """
        return self._table.sync_came(group, member, self._loop.time())

    def _answered(self, group: str, member: str) -> None:
        self._table.answered(group, member)
        self.heard(group, member)

    def decided(self, group: str, changes: Iterable[Change]) -> None:
        """Apply changes of a change_group decision once they are true: a session begins when the
        member is added, and anew when a generation begins.
        """
        self._table.decided(group, changes)

    def forget(self) -> None:
        """Forget all groups."""
        self._table.forget()
        self._queue.clear()
        self._cancel()

    def heartbeats_before(self, records: Iterable[NewRecord]) -> list[NewRecord]:
        """Return the events to append before these, so that these end no session of a member that
        was heard from in time.
        """
        if not self._table.groups:
            return []
        now_s = self._loop.time()
        found: list[NewRecord] = []
        for record in records:
            for bucket in self._folding(record):
                if bucket.is_due(now_s) and (body := self._unreported(bucket, now_s)):
                    kind = EventKind.HEARTBEATS_RECEIVED
                    found.append(event(kind, body, str(bucket.number)))
        return found

    def _unreported(self, bucket: BucketSessions, now_s: float) -> dict[str, Any]:
        """Return the payload of heartbeats_received for a bucket, {} without anything to report."""
        rows = self._table.report(bucket, now_s)
        if synced := self._table.report_syncs(bucket, now_s):
            return {"heartbeats": rows, "synced": synced}
        return {"heartbeats": rows} if rows else {}

    def _folding(self, record: NewRecord) -> Iterable[BucketSessions]:
        """Return the buckets whose groups an event may concern."""
        of, buckets = scope(record.kind, record.key), self._table.buckets
        if of == ALL_GROUPS:
            return buckets.values()
        bucket = buckets.get(of - GROUP_SCOPE)
        return () if bucket is None else (bucket,)

    def _moments(self, change: Dated) -> Moments:
        now_s = self._loop.time()
        return now_s, now_s - max(self._now_ms() - change["at_ms"], 0) / 1000

    def _watch(self, one: MemberSession) -> None:
        """Check a member when its session may be over."""
        heapq.heappush(self._queue, (one.end_s, next(self._order), one))
        if self._queue[0][2] is one:
            self._schedule()

    def _schedule(self, not_before_s: float = -math.inf) -> None:
        self._cancel()
        if self._queue:
            self._handle = self._loop.call_at(max(self._queue[0][0], not_before_s), self._check)

    def _cancel(self) -> None:
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None

    def _check(self) -> None:
        """Check members whose sessions may be over; those that were heard from meanwhile are
        checked when it may be so again.
        """
        now_s = self._loop.time()
        silent: list[MemberSession] = []
        while self._queue and self._queue[0][0] <= now_s:
            one = self._queue[0][2]
            if one.group is None:
                heapq.heappop(self._queue)
                continue
            again_s = now_s + one.session_s
            if self._table.look_at(one, now_s):
                silent.append(one)
            else:
                again_s = one.end_s
            heapq.heapreplace(self._queue, (again_s, next(self._order), one))
        if silent:
            self._loop.call_soon(self._later, _TURNS, silent)
        self._schedule(now_s + _GRAIN_S)

    def _later(self, turns: int, silent: list[MemberSession]) -> None:
        if turns:
            self._loop.call_soon(self._later, turns - 1, silent)
        elif self._decides():
            self._append_ticks(silent)

    def _append_ticks(self, silent: Iterable[MemberSession]) -> None:
        """Append a tick for each bucket with a member that is still silent."""
        now_s, now_ms = self._loop.time(), self._now_ms()
        deadlines: dict[int, int] = {}
        for one in silent:
            if one.group is not None and self._table.look_at(one, now_s):
                bucket = one.group.bucket
                bucket.report_s = -math.inf
                over_ms = int((now_s - one.heard_s - one.session_s) * 1000)
                deadlines.setdefault(bucket.number, now_ms - over_ms)
        if deadlines:
            kind = EventKind.GROUP_TIMER_DUE
            self._append(
                [
                    event(kind, {"timer": timer_name(number), "deadline_ms": at_ms}, str(number))
                    for number, at_ms in deadlines.items()
                ]
            )
