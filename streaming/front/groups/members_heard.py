"""The members of all groups as decided so far, and when they were heard of."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from state.groups import change_bodies as bodies
from state.groups.buckets import group_bucket
from state.groups.change_kinds import ChangeKind
from streaming.front.groups.heard import (
    TOLD_PART,
    BucketHeard,
    GroupHeard,
    MemberHeard,
    Moments,
    SyncsHeard,
)


class MembersHeard:
    """Groups and their members by name; buckets by number; asking: who waits for how many replies,
    by (group, member).

    moments: gives the times of a change; on_added: takes each member once.
    """

    def __init__(
        self,
        moments: Callable[[bodies.Dated], Moments],
        on_added: Callable[[MemberHeard], None],
    ) -> None:
        """Begin without groups."""
        self.groups: dict[str, GroupHeard] = {}
        self.buckets: dict[int, BucketHeard] = {}
        self.asking: Counter[tuple[str, str]] = Counter()
        self._moments = moments
        self._on_added = on_added
        self._takers: Mapping[str, Callable[[str, Any], None]] = {
            ChangeKind.GROUP_LOADED: self._loaded,
            ChangeKind.GROUP_REMOVED: self._group_removed,
            ChangeKind.MEMBER_ADDED: self._added,
            ChangeKind.MEMBER_UPDATED: self._updated,
            ChangeKind.MEMBER_REPLACED: self._replaced,
            ChangeKind.MEMBER_REMOVED: self._removed,
            ChangeKind.GENERATION_STARTED: self._generation_started,
            ChangeKind.REBALANCE_STARTED: self._rebalance_started,
        }

    def get(self, group: str, member: str) -> MemberHeard | None:
        """Return a member, None when there is none of that name."""
        known = self.groups.get(group)
        return None if known is None else known.members.get(member)

    def is_silent(self, one: MemberHeard, now_s: float) -> bool:
        """Return whether a member is there and its session is over; who waits is heard of now."""
        if one.of is None:
            return False
        if (one.of.name, one.id) in self.asking:
            one.heard_s = now_s
        return one.end_s <= now_s

    def decided(self, group: str, changes: Iterable[bodies.Change]) -> None:
        """Take changes of a change_group decision once they are true."""
        for change in changes:
            taker = self._takers.get(change["change"])
            if taker is not None:
                taker(group, change)

    def sync_came(self, name: str, member: str, now_s: float) -> bool:
        """Note that a member's SyncGroup has come; False when it is too late for that."""
        group = self.groups.get(name)
        if group is None or group.syncs is None:
            return group is not None
        bucket = group.bucket
        bucket.tell_s = min(bucket.tell_s, group.syncs.tell_s)
        return group.syncs.take(member, now_s)

    def tell_syncs(self, bucket: BucketHeard, now_s: float) -> list[list[object]]:
        """Return rows of whose SyncGroups the machines do not know."""
        rows: list[list[object]] = []
        for group in bucket.groups.values():
            if group.syncs is None or not group.syncs.untold:
                continue
            if told := group.syncs.tell(now_s):
                rows.append([group.name, group.generation, told])
            else:
                bucket.tell_s = min(bucket.tell_s, group.syncs.tell_s)
        return rows

    def tell(self, bucket: BucketHeard, now_s: float) -> list[list[object]]:
        """Return rows of what the machines do not know of a bucket's members, and of those who are
        silent once more: their sessions are to be over. Who waits for a reply is there.
        """
        rows: list[list[object]] = []
        for one in bucket.take_due(now_s):
            group = one.of
            if group is None:
                continue
            silent = self.is_silent(one, now_s)
            if silent or one.may_be_told(now_s):
                one.told_s = one.heard_s
                silent_ms = round((now_s - one.heard_s) * 1000)
                rows.append([group.name, one.id, one.instance, group.generation, silent_ms])
            one.rests = silent or one.tell_s <= now_s
            if not one.rests:
                bucket.tell_s = min(bucket.tell_s, one.tell_s)
        return rows

    def look_again(self, one: MemberHeard) -> None:
        """Take a member into account again of whose times something changed."""
        if one.of is not None:
            one.rests = False
            bucket = one.of.bucket
            bucket.tell_s = min(bucket.tell_s, one.tell_s)

    def forget(self) -> None:
        """Forget all groups."""
        self.groups.clear()
        self.buckets.clear()

    def _group(self, name: str) -> GroupHeard:
        known = self.groups.get(name)
        if known is None:
            number = group_bucket(name)
            bucket = self.buckets.get(number)
            if bucket is None:
                bucket = self.buckets[number] = BucketHeard(number)
            known = self.groups[name] = bucket.groups[name] = GroupHeard(name, bucket)
        return known

    def _add(
        self,
        group: GroupHeard,
        id_: str,
        instance: str | None,
        terms: bodies.Timeouts,
        moments: Moments,
    ) -> None:
        one = group.members[id_] = MemberHeard(group, id_, instance, terms, moments)
        self.look_again(one)
        self._on_added(one)

    def _drop(self, group: str, member: str) -> MemberHeard | None:
        known = self.groups.get(group)
        one = None if known is None else known.members.pop(member, None)
        if one is not None:
            one.of = None
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
        group = self.groups.pop(name, None)
        if group is None:
            return
        for one in group.members.values():
            one.of = None
        del group.bucket.groups[name]
        if not group.bucket.groups:
            del self.buckets[group.bucket.number]

    def _added(self, name: str, change: bodies.MemberAdded) -> None:
        group, moments = self._group(name), self._moments(change)
        self._add(group, change["member"], change["instance"], change, moments)

    def _updated(self, name: str, change: bodies.MemberUpdated) -> None:
        one = self.get(name, change["member"])
        if one is not None and one.session_s == change["session_timeout_ms"] / 1000:
            one.rebalance_s = change["rebalance_timeout_ms"] / 1000
            self._count_as_heard(one, self._moments(change))
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
        one = self._drop(name, old)
        if one is not None:
            self._add(self._group(name), new, one.instance, change, self._moments(change))

    def _removed(self, name: str, change: bodies.MemberRemoved) -> None:
        self._drop(name, change["member"])

    def _generation_started(self, name: str, change: bodies.GenerationStarted) -> None:
        group = self.groups.get(name)
        if group is not None:
            group.generation = change["generation"]
            moments = self._moments(change)
            for one in group.members.values():
                self._count_as_heard(one, moments)
            waits_s = max((0.0, *(one.rebalance_s for one in group.members.values())))
            _, began_s = moments
            group.syncs = SyncsHeard(began_s + waits_s, began_s + waits_s / TOLD_PART)

    def _rebalance_started(self, name: str, change: bodies.RebalanceStarted) -> None:
        if (group := self.groups.get(name)) is not None:
            group.syncs = None

    def _count_as_heard(self, one: MemberHeard, moments: Moments) -> None:
        one.heard_s, one.told_s = moments
        self.look_again(one)
