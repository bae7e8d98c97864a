"""The sessions of all members, as change_group decisions begin and end them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from state.groups import change_bodies as bodies
from state.groups.buckets import group_bucket
from state.groups.change_kinds import ChangeKind
from streaming.front.groups.member_sessions import (
    REPORT_PART,
    BucketSessions,
    GroupSessions,
    MemberSession,
    Moments,
    PendingSyncs,
)


class SessionTable:
    """Groups and their members by name, and buckets by number.

    moments: gives the times of a change. on_added: takes each member once.
    """

    def __init__(
        self,
        moments: Callable[[bodies.Dated], Moments],
        on_added: Callable[[MemberSession], None],
    ) -> None:
        """Begin without groups."""
        self.groups: dict[str, GroupSessions] = {}
        self.buckets: dict[int, BucketSessions] = {}
        self._unanswered: Counter[tuple[str, str]] = Counter()
        self._moments = moments
        self._on_added = on_added
        self._handlers: Mapping[str, Callable[[str, Any], None]] = {
            ChangeKind.GROUP_LOADED: self._loaded,
            ChangeKind.GROUP_REMOVED: self._group_removed,
            ChangeKind.MEMBER_ADDED: self._added,
            ChangeKind.MEMBER_UPDATED: self._updated,
            ChangeKind.MEMBER_REPLACED: self._replaced,
            ChangeKind.MEMBER_REMOVED: self._removed,
            ChangeKind.GENERATION_STARTED: self._generation_started,
            ChangeKind.REBALANCE_STARTED: self._rebalance_started,
        }

    def get(self, group: str, member: str) -> MemberSession | None:
        """Return a member, None when there is none of that name."""
        known = self.groups.get(group)
        return None if known is None else known.members.get(member)

    def look_at(self, one: MemberSession, now_s: float) -> bool:
        """Take a member with an unanswered request for alive now; return whether it is there and
        its session is over.
        """
        if one.group is None:
            return False
        if (one.group.name, one.id) in self._unanswered:
            one.heard_s = now_s
        return one.end_s <= now_s

    def decided(self, group: str, changes: Iterable[bodies.Change]) -> None:
        """Apply changes of a change_group decision once they are true."""
        for change in changes:
            handler = self._handlers.get(change["change"])
            if handler is not None:
                handler(group, change)

    def joins(
        self, name: str, member: str, instance: str | None, timeouts: bodies.Timeouts, now_s: float
    ) -> None:
        """Note that somebody has sent JoinGroup, under an id that may not be known yet.

        The machine knows it with the event and may begin a session then, which is over before its
        decision is here if that is late. A static member's new id goes on with the session timeout
        of the old one at first (GroupCoordinator.updateStaticMemberAndRebalance).
        """
        group = self._group(name)
        if member in group.members or member in group.joining:
            return
        one = MemberSession(group, member, instance, timeouts, (now_s, now_s))
        if instance is not None:
            same = (old.session_s for old in group.members.values() if old.instance == instance)
            one.session_s = min((one.session_s, *same))
        group.joining[member] = one
        self.look_again(one)

    def asked(self, name: str, member: str) -> None:
        """Note that a member waits for an answer, maybe under an id that is not known yet."""
        self._unanswered[name, member] += 1

    def answered(self, name: str, member: str) -> None:
        """Note that a member has been answered, or is gone."""
        self._unanswered[name, member] -= 1
        if not self._unanswered[name, member]:
            del self._unanswered[name, member]
            self._end_joining(name, member)

    def _end_joining(self, name: str, member: str) -> None:
        group = self.groups.get(name)
        if group is None or not _ended_joining(group, member):
            return
        if not (group.members or group.joining or group.generation):
            self._forget(group)

    def sync_came(self, name: str, member: str, now_s: float) -> bool:
        """Note that a member has sent SyncGroup; return False when it is too late for that."""
        group = self.groups.get(name)
        if group is None or group.syncs is None:
            return group is not None
        bucket = group.bucket
        bucket.report_s = min(bucket.report_s, group.syncs.report_s)
        return group.syncs.add(member, now_s)

    def report_syncs(self, bucket: BucketSessions, now_s: float) -> list[list[object]]:
        """Return rows of SyncGroups that were answered and that the log does not have."""
        rows: list[list[object]] = []
        for group in bucket.groups.values():
            if group.syncs is None or not group.syncs.unreported:
                continue
            if reported := group.syncs.report(now_s):
                rows.append([group.name, group.generation, reported])
            else:
                bucket.report_s = min(bucket.report_s, group.syncs.report_s)
        return rows

    def report(self, bucket: BucketSessions, now_s: float) -> list[list[object]]:
        """Return rows of last-heard times of a bucket's members: of those that the log has an
        earlier one of, and of those whose sessions are over, so that the machine ends them.
        """
        rows: list[list[object]] = []
        for one in bucket.take_due(now_s):
            group = one.group
            if group is None:
                continue
            silent = self.look_at(one, now_s)
            if silent or one.may_be_reported(now_s):
                one.reported_s = one.heard_s
                silent_ms = round((now_s - one.heard_s) * 1000)
                rows.append([group.name, one.id, one.instance, group.generation, silent_ms])
            one.idle = silent or one.report_s <= now_s
            if not one.idle:
                bucket.report_s = min(bucket.report_s, one.report_s)
        return rows

    def look_again(self, one: MemberSession) -> None:
        """Look at a member again whose times have changed."""
        if one.group is not None:
            one.idle = False
            bucket = one.group.bucket
            bucket.report_s = min(bucket.report_s, one.report_s)

    def forget(self) -> None:
        """Forget all groups."""
        self.groups.clear()
        self.buckets.clear()

    def _group(self, name: str) -> GroupSessions:
        known = self.groups.get(name)
        if known is None:
            number = group_bucket(name)
            bucket = self.buckets.get(number)
            if bucket is None:
                bucket = self.buckets[number] = BucketSessions(number)
            known = self.groups[name] = bucket.groups[name] = GroupSessions(name, bucket)
        return known

    def _add(
        self,
        group: GroupSessions,
        id_: str,
        instance: str | None,
        timeouts: bodies.Timeouts,
        moments: Moments,
    ) -> None:
        _ended_joining(group, id_)
        one = group.members[id_] = MemberSession(group, id_, instance, timeouts, moments)
        self.look_again(one)
        self._on_added(one)

    def _drop(self, group: str, member: str) -> MemberSession | None:
        known = self.groups.get(group)
        one = None if known is None else known.members.pop(member, None)
        if one is not None:
            one.group = None
        return one

    def _loaded(self, name: str, change: bodies.GroupLoaded) -> None:
        self._group_removed(name, change)
        metadata, moments = change["metadata"], self._moments(change)
        if metadata["members"]:
            group = self._group(name)
            group.generation = metadata["generation"]
            for one in metadata["members"]:
                self._add(group, one["member"], one["instance"], one, moments)

    def _group_removed(self, name: str, change: bodies.GroupRemoved | bodies.GroupLoaded) -> None:
        group = self.groups.get(name)
        if group is None:
            return
        for one in group.members.values():
            one.group = None
        if not group.joining:
            self._forget(group)
            return
        # Who joins now is to be a member of the next group of that name.
        group.members.clear()
        group.generation, group.syncs = 0, None

    def _forget(self, group: GroupSessions) -> None:
        del self.groups[group.name]
        del group.bucket.groups[group.name]
        if not group.bucket.groups:
            del self.buckets[group.bucket.number]

    def _added(self, name: str, change: bodies.MemberAdded) -> None:
        group, moments = self._group(name), self._moments(change)
        self._add(group, change["member"], change["instance"], change, moments)

    def _updated(self, name: str, change: bodies.MemberUpdated) -> None:
        one = self.get(name, change["member"])
        if one is not None and one.session_s == change["session_timeout_ms"] / 1000:
            one.rebalance_s = change["rebalance_timeout_ms"] / 1000
            self._restart(one, self._moments(change))
        else:
            self._renew(name, change["member"], change["member"], change)

    def _replaced(self, name: str, change: bodies.MemberReplaced) -> None:
        old, new = change["member"], change["new_member"]
        self._renew(name, old, new, change)
        group = self.groups.get(name)
        if group is not None and group.syncs is not None:
            group.syncs.rename(old, new)

    def _renew(
        self, name: str, old: str, new: str, change: bodies.MemberUpdated | bodies.MemberReplaced
    ) -> None:
        """Begin a session of another length. The machine's lasts as long as the old one until the
        member is heard from (GroupCoordinator.updateStaticMemberAndRebalance), so of a longer one
        the log is to hear as early as of the old one.
        """
        one = self._drop(name, old)
        if one is None:
            return
        group, moments = self._group(name), self._moments(change)
        longer_s = change["session_timeout_ms"] / 1000 - one.session_s
        heard_s, reported_s = moments
        reported_s -= max(longer_s, 0.0) / REPORT_PART
        self._add(group, new, one.instance, change, (heard_s, reported_s))

    def _removed(self, name: str, change: bodies.MemberRemoved) -> None:
        self._drop(name, change["member"])

    def _generation_started(self, name: str, change: bodies.GenerationStarted) -> None:
        group = self.groups.get(name)
        if group is not None:
            group.generation = change["generation"]
            moments = self._moments(change)
            for one in group.members.values():
                self._restart(one, moments)
            waits_s = max((0.0, *(one.rebalance_s for one in group.members.values())))
            _, began_s = moments
            group.syncs = PendingSyncs(began_s + waits_s, began_s + waits_s / REPORT_PART)

    def _rebalance_started(self, name: str, change: bodies.RebalanceStarted) -> None:
        if (group := self.groups.get(name)) is not None:
            group.syncs = None

    def _restart(self, one: MemberSession, moments: Moments) -> None:
        one.heard_s, one.reported_s = moments
        self.look_again(one)


def _ended_joining(group: GroupSessions, member: str) -> bool:
    """Return whether somebody was joining under that id, who is not any more."""
    one = group.joining.pop(member, None)
    if one is None:
        return False
    one.group = None
    return True
