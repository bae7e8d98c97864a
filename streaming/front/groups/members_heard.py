"""The members of all groups as decided so far, and when they were heard of."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from state.groups.buckets import group_bucket
from state.groups.change_kinds import ChangeKind

_TOLD_PART = 2
"""Machines are told again when that part of a session is over since a member was heard of as far as
they know: the rest of it may pass until the log gives an event its time.
"""
_TOLD_TOGETHER_PART = 4
"""When they are told of one member, then of all of whom that part of a session is over: nobody is
told of more often, and not each of many at a time of its own.
"""
_ROUNDING_S = 0.002
"""A session is over when it is over in whole milliseconds too."""

Moments = tuple[float, float]
"""The loop's times of now and of when something was decided."""


class MemberHeard:
    """A member, when it was heard of last, and when as far as the machines know (loop times).

    of: its group, None when it is gone. rests: there is nothing to tell of it until it is heard of.
    """

    __slots__ = ("heard_s", "id", "instance", "of", "rests", "session_s", "told_s")

    def __init__(
        self, of: GroupHeard, id_: str, instance: str | None, session_ms: int, moments: Moments
    ) -> None:
        """Begin with a member that counts as heard of now."""
        self.of: GroupHeard | None = of
        self.id = id_
        self.instance = instance
        self.session_s = session_ms / 1000
        self.rests = False
        self.heard_s, self.told_s = moments

    @property
    def end_s(self) -> float:
        """When it is silent unless heard of."""
        return self.heard_s + self.session_s + _ROUNDING_S

    @property
    def tell_s(self) -> float:
        """From when on the machines are to be told what they do not know of it."""
        return self.told_s + self.session_s / _TOLD_PART

    def may_be_told(self, now_s: float) -> bool:
        """Return whether more is known of it here, and it was not told of just now."""
        since_s = self.told_s + self.session_s / _TOLD_TOGETHER_PART
        return self.heard_s > self.told_s and since_s <= now_s

    def hear(self, now_s: float) -> None:
        """Note that it was heard of."""
        self.heard_s = now_s
        if self.rests and self.of is not None:
            self.rests = False
            self.of.bucket.woken.append(self)


class GroupHeard:
    """A group that has, or had, members."""

    __slots__ = ("bucket", "generation", "members", "name")

    def __init__(self, name: str, bucket: BucketHeard) -> None:
        """Begin without members."""
        self.name = name
        self.bucket = bucket
        self.generation = 0
        self.members: dict[str, MemberHeard] = {}


class BucketHeard:
    """Groups by name; tell_s: until then the machines need not be told of any member but those that
    were woken, which rested.
    """

    __slots__ = ("groups", "number", "tell_s", "woken")

    def __init__(self, number: int) -> None:
        """Begin without groups."""
        self.number = number
        self.groups: dict[str, GroupHeard] = {}
        self.tell_s = math.inf
        self.woken: list[MemberHeard] = []

    def is_due(self, now_s: float) -> bool:
        """Return whether the machines may have to be told of a member."""
        return bool(self.woken) or self.tell_s <= now_s

    def take_due(self, now_s: float) -> list[MemberHeard]:
        """Return the members to look at; tell_s is then that of the others."""
        woken, self.woken = self.woken, []
        if self.tell_s > now_s:
            return woken
        self.tell_s = math.inf
        return [one for group in self.groups.values() for one in group.members.values()]


class MembersHeard:
    """Groups and their members by name; buckets by number; asking: who waits for how many replies,
    by (group, member).

    moments: gives the times of a change; on_added: takes each member once.
    """

    def __init__(
        self,
        moments: Callable[[Mapping[str, Any]], Moments],
        on_added: Callable[[MemberHeard], None],
    ) -> None:
        """Begin without groups."""
        self.groups: dict[str, GroupHeard] = {}
        self.buckets: dict[int, BucketHeard] = {}
        self.asking: Counter[tuple[str, str]] = Counter()
        self._moments = moments
        self._on_added = on_added
        self._takers: Mapping[str, Callable[[str, Mapping[str, Any]], None]] = {
            ChangeKind.GROUP_LOADED: self._loaded,
            ChangeKind.GROUP_REMOVED: self._group_removed,
            ChangeKind.MEMBER_ADDED: self._added,
            ChangeKind.MEMBER_UPDATED: self._updated,
            ChangeKind.MEMBER_REPLACED: self._replaced,
            ChangeKind.MEMBER_REMOVED: self._removed,
            ChangeKind.GENERATION_STARTED: self._generation_started,
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

    def decided(self, group: str, changes: Iterable[Mapping[str, Any]]) -> None:
        """Take changes of a change_group decision once they are true."""
        for change in changes:
            taker = self._takers.get(change["change"])
            if taker is not None:
                taker(group, change)

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
        self, group: GroupHeard, id_: str, instance: str | None, session_ms: int, moments: Moments
    ) -> None:
        one = group.members[id_] = MemberHeard(group, id_, instance, session_ms, moments)
        self.look_again(one)
        self._on_added(one)

    def _drop(self, group: str, member: str) -> MemberHeard | None:
        known = self.groups.get(group)
        one = None if known is None else known.members.pop(member, None)
        if one is not None:
            one.of = None
        return one

    def _loaded(self, name: str, change: Mapping[str, Any]) -> None:
        self._group_removed(name, change)
        metadata, moments = change["metadata"], self._moments(change)
        if metadata["members"]:
            group = self._group(name)
            group.generation = metadata["generation"]
            for one in metadata["members"]:
                session_ms = one["session_timeout_ms"]
                self._add(group, one["member"], one["instance"], session_ms, moments)

    def _group_removed(self, name: str, change: Mapping[str, Any]) -> None:
        group = self.groups.pop(name, None)
        if group is None:
            return
        for one in group.members.values():
            one.of = None
        del group.bucket.groups[name]
        if not group.bucket.groups:
            del self.buckets[group.bucket.number]

    def _added(self, name: str, change: Mapping[str, Any]) -> None:
        session_ms = change["session_timeout_ms"]
        group, moments = self._group(name), self._moments(change)
        self._add(group, change["member"], change["instance"], session_ms, moments)

    def _updated(self, name: str, change: Mapping[str, Any]) -> None:
        one = self.get(name, change["member"])
        if one is not None and one.session_s == change["session_timeout_ms"] / 1000:
            self._count_as_heard(one, self._moments(change))
        else:
            self._renew(name, change["member"], change["member"], change)

    def _replaced(self, name: str, change: Mapping[str, Any]) -> None:
        self._renew(name, change["member"], change["new_member"], change)

    def _renew(self, name: str, old: str, new: str, change: Mapping[str, Any]) -> None:
        one = self._drop(name, old)
        if one is not None:
            session_ms = change["session_timeout_ms"]
            self._add(self._group(name), new, one.instance, session_ms, self._moments(change))

    def _removed(self, name: str, change: Mapping[str, Any]) -> None:
        self._drop(name, change["member"])

    def _generation_started(self, name: str, change: Mapping[str, Any]) -> None:
        group = self.groups.get(name)
        if group is not None:
            group.generation = change["generation"]
            moments = self._moments(change)
            for one in group.members.values():
                self._count_as_heard(one, moments)

    def _count_as_heard(self, one: MemberHeard, moments: Moments) -> None:
        one.heard_s, one.told_s = moments
        self.look_again(one)
