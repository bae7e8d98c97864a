"""What is remembered of who was heard of: of a member, of a group, and of a bucket of groups."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from state.groups.change_bodies import Timeouts

TOLD_PART = 2
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

    __slots__ = (
        "heard_s",
        "id",
        "instance",
        "of",
        "rebalance_s",
        "rests",
        "session_s",
        "told_s",
    )

    def __init__(
        self,
        of: GroupHeard,
        id_: str,
        instance: str | None,
        terms: Timeouts,
        moments: Moments,
    ) -> None:
        """Begin with a member that counts as heard of now; terms: its timeouts, in a change."""
        self.of: GroupHeard | None = of
        self.id = id_
        self.instance = instance
        self.session_s: float = terms["session_timeout_ms"] / 1000
        self.rebalance_s: float = terms["rebalance_timeout_ms"] / 1000
        self.rests = False
        self.heard_s, self.told_s = moments

    @property
    def end_s(self) -> float:
        """When it is silent unless heard of."""
        return self.heard_s + self.session_s + _ROUNDING_S

    @property
    def tell_s(self) -> float:
        """From when on the machines are to be told what they do not know of it."""
        return self.told_s + self.session_s / TOLD_PART

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
    """A group that has, or had, members; syncs: None while no SyncGroup is waited for."""

    __slots__ = ("bucket", "generation", "members", "name", "syncs")

    def __init__(self, name: str, bucket: BucketHeard) -> None:
        """Begin without members."""
        self.name = name
        self.bucket = bucket
        self.generation = 0
        self.members: dict[str, MemberHeard] = {}
        self.syncs: SyncsHeard | None = None


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


@dataclass(slots=True)
class SyncsHeard:
    """Whose SyncGroup has come, of those that the machines wait for.

    deadline_s: until when they wait (the loop's time). tell_s: from when on they are to be told:
    the rest of the time may pass until the log gives an event its time.
    """

    deadline_s: float
    tell_s: float
    untold: dict[str, None] = field(default_factory=dict)

    def take(self, member: str, now_s: float) -> bool:
        """Note that a member's has come; return False when it is too late for that."""
        in_time = now_s < self.deadline_s
        if in_time:
            self.untold[member] = None
        return in_time

    def rename(self, old: str, new: str) -> None:
        """Take a member's for that of the id under which it goes on."""
        if old in self.untold:
            del self.untold[old]
            self.untold[new] = None

    def tell(self, now_s: float) -> list[str]:
        """Return whom the machines are to be told of now."""
        if not self.untold or now_s < self.tell_s:
            return []
        told = list(self.untold)
        self.untold.clear()
        return told
