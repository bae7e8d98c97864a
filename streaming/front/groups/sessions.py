"""Sessions of members: the log hears of heartbeats only where a session could end by an event.

The machines have a deadline for each member and let it fire with the first event that comes after
it. They know less than is known here, so two things are appended:

- Before any event that a bucket of groups folds, the members that were heard of since the machines
  were told (`heartbeats_received`), unless no session can have ended yet, and whose SyncGroup came
  without an event (`direct_syncs`). `heartbeats_before` is the one place that sees to it.
- When a member was silent for its session, a tick of its bucket (`group_timer_due`).

While everybody is heard of nothing is appended. docs/adr/0016 says what was measured.
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
from state.groups.change_bodies import Change, Dated
from state.routing import ALL_GROUPS, GROUP_SCOPE, scope
from streaming.front.event_loop import Handle, Loop
from streaming.front.groups.heard import BucketHeard, MemberHeard, Moments
from streaming.front.groups.members_heard import MembersHeard
from streaming.log.api import NewRecord
from streaming.log.events import event

_GRAIN_S = 0.25
"""Silent members are looked for that often at most."""
_TURNS = 3
"""Of the loop, before anybody counts as silent: what clients have sent by then is read first."""


class Sessions:
    """When the members of all groups were heard of; lives on one event loop.

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
        self._members = MembersHeard(self._moments, self._expect)
        self._queue: list[tuple[float, int, MemberHeard]] = []
        self._order = itertools.count()
        self._handle: Handle | None = None

    def heard(self, group: str, member: str) -> None:
        """Note that a member was heard of now; one that is not known is passed over."""
        one = self._members.get(group, member)
        if one is not None:
            one.hear(self._loop.time())

    def asked(self, group: str, member: str, reply: asyncio.Future[Any]) -> None:
        """Note that a member waits for a reply: it is heard of now and when that is given."""
        self.heard(group, member)
        self._members.asking[group, member] += 1
        reply.add_done_callback(lambda _: self._answered(group, member))

    def sync_came(self, group: str, member: str) -> bool:
        """Note that a member's SyncGroup has come, which the machines hear of before they give it
        up for that; return False when it is too late for that.
        """
        return self._members.sync_came(group, member, self._loop.time())

    def _answered(self, group: str, member: str) -> None:
        asking = self._members.asking
        asking[group, member] -= 1
        if not asking[group, member]:
            del asking[group, member]
        self.heard(group, member)

    def decided(self, group: str, changes: Iterable[Change]) -> None:
        """Take changes of a change_group decision once they are true: a member counts as heard of
        when it is there, and when a generation begins.
        """
        self._members.decided(group, changes)

    def forget(self) -> None:
        """Forget all groups."""
        self._members.forget()
        self._queue.clear()
        self._cancel()

    def heartbeats_before(self, records: Iterable[NewRecord]) -> list[NewRecord]:
        """Return the events to append before these, so that they end no session of somebody who was
        heard of.
        """
        if not self._members.groups:
            return []
        now_s = self._loop.time()
        found: list[NewRecord] = []
        for record in records:
            for bucket in self._folding(record):
                if bucket.is_due(now_s) and (body := self._untold(bucket, now_s)):
                    kind = EventKind.HEARTBEATS_RECEIVED
                    found.append(event(kind, body, str(bucket.number)))
        return found

    def _untold(self, bucket: BucketHeard, now_s: float) -> dict[str, Any]:
        """Return what the machines are to be told of a bucket's members, {} for nothing."""
        rows = self._members.tell(bucket, now_s)
        if synced := self._members.tell_syncs(bucket, now_s):
            return {"heartbeats": rows, "synced": synced}
        return {"heartbeats": rows} if rows else {}

    def _folding(self, record: NewRecord) -> Iterable[BucketHeard]:
        """Return the buckets whose groups an event may concern."""
        of, buckets = scope(record.kind, record.key), self._members.buckets
        if of == ALL_GROUPS:
            return buckets.values()
        bucket = buckets.get(of - GROUP_SCOPE)
        return () if bucket is None else (bucket,)

    def _moments(self, change: Dated) -> Moments:
        now_s = self._loop.time()
        return now_s, now_s - max(self._now_ms() - change["at_ms"], 0) / 1000

    def _expect(self, one: MemberHeard) -> None:
        """Look at a member when its session may be over."""
        heapq.heappush(self._queue, (one.end_s, next(self._order), one))
        if self._queue[0][2] is one:
            self._schedule()

    def _schedule(self, not_before_s: float = -math.inf) -> None:
        self._cancel()
        if self._queue:
            self._handle = self._loop.call_at(max(self._queue[0][0], not_before_s), self._look)

    def _cancel(self) -> None:
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None

    def _look(self) -> None:
        """Look at members whose sessions may be over; those that were heard of meanwhile are looked
        at when it may be so again.
        """
        now_s = self._loop.time()
        silent: list[MemberHeard] = []
        while self._queue and self._queue[0][0] <= now_s:
            one = self._queue[0][2]
            if one.of is None:
                heapq.heappop(self._queue)
                continue
            again_s = now_s + one.session_s
            if self._members.is_silent(one, now_s):
                silent.append(one)
            else:
                again_s = one.end_s
            heapq.heapreplace(self._queue, (again_s, next(self._order), one))
        if silent:
            self._loop.call_soon(self._later, _TURNS, silent)
        self._schedule(now_s + _GRAIN_S)

    def _later(self, turns: int, silent: list[MemberHeard]) -> None:
        if turns:
            self._loop.call_soon(self._later, turns - 1, silent)
        elif self._decides():
            self._tell(silent)

    def _tell(self, silent: Iterable[MemberHeard]) -> None:
        """Append a tick for each bucket with a member that is still silent."""
        now_s, now_ms = self._loop.time(), self._now_ms()
        deadlines: dict[int, int] = {}
        for one in silent:
            if one.of is not None and self._members.is_silent(one, now_s):
                bucket = one.of.bucket
                bucket.tell_s = -math.inf
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
