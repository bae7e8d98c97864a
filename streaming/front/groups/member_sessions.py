"""Last-heard times of members, and how far the log has them: by member, group and bucket."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from state.groups.change_bodies import Timeouts

REPORT_PART = 2
"""A last-heard time is reported to the log when that part of the session is over since the one that
the log has: the rest of it may pass until the log gives an event its time.
"""
_REPORT_TOGETHER_PART = 4
"""When one member is reported, so are all for whom that part of the session is over: nobody is
reported more often, and not each of many at a time of its own.
"""
_ROUNDING_S = 0.002
"""A session is over when it is over in whole milliseconds too."""

Moments = tuple[float, float]
"""The loop's times of now and of when something was decided."""


class MemberSession:
    """The session of a member; times are the loop's.

    group: None when the member is gone. heard_s: the last-heard time; reported_s: the one that the
    log has. idle: there is nothing to report until the member is heard from again.
    """

    __slots__ = (
        "group",
        "heard_s",
        "id",
        "idle",
        "instance",
        "rebalance_s",
        "reported_s",
        "session_s",
    )

    def __init__(
        self,
        group: GroupSessions,
        id_: str,
        instance: str | None,
        timeouts: Timeouts,
        moments: Moments,
    ) -> None:
        """Begin a session now."""
        self.group: GroupSessions | None = group
        self.id = id_
        self.instance = instance
        self.session_s: float = timeouts["session_timeout_ms"] / 1000
        self.rebalance_s: float = timeouts["rebalance_timeout_ms"] / 1000
        self.idle = False
        self.heard_s, self.reported_s = moments

    @property
    def end_s(self) -> float:
        """When the session is over unless the member is heard from."""
        return self.heard_s + self.session_s + _ROUNDING_S

    @property
    def report_s(self) -> float:
        """From when on a later last-heard time has to be reported."""
        return self.reported_s + self.session_s / REPORT_PART

    def may_be_reported(self, now_s: float) -> bool:
        """Return whether the log has an earlier last-heard time, and has had it for a while."""
        since_s = self.reported_s + self.session_s / _REPORT_TOGETHER_PART
        return self.heard_s > self.reported_s and since_s <= now_s

    def touch(self, now_s: float) -> None:
        """Note that the member is alive now."""
        self.heard_s = now_s
        if self.idle and self.group is not None:
            self.idle = False
            self.group.bucket.woken.append(self)


class GroupSessions:
    """The members of a group; syncs: None while no SyncGroup is awaited. joining: who has an
    unanswered JoinGroup under an id that no decision has named yet.
    """

    __slots__ = ("bucket", "generation", "joining", "members", "name", "syncs")

    def __init__(self, name: str, bucket: BucketSessions) -> None:
        """Begin without members."""
        self.name = name
        self.bucket = bucket
        self.generation = 0
        self.members: dict[str, MemberSession] = {}
        self.joining: dict[str, MemberSession] = {}
        self.syncs: PendingSyncs | None = None


class BucketSessions:
    """The groups of a bucket by name; report_s: until then no member has to be reported but those
    that were woken, which were idle.
    """

    __slots__ = ("groups", "number", "report_s", "woken")

    def __init__(self, number: int) -> None:
        """Begin without groups."""
        self.number = number
        self.groups: dict[str, GroupSessions] = {}
        self.report_s = math.inf
        self.woken: list[MemberSession] = []

    def is_due(self, now_s: float) -> bool:
        """Return whether a member may have to be reported."""
        return bool(self.woken) or self.report_s <= now_s

    def take_due(self, now_s: float) -> list[MemberSession]:
        """Return the members to look at; report_s is then that of the others."""
        woken, self.woken = self.woken, []
        if self.report_s > now_s:
            return woken
        self.report_s = math.inf
        return [
            one
            for group in self.groups.values()
            for one in (*group.members.values(), *group.joining.values())
        ]


@dataclass(slots=True)
class PendingSyncs:
    """The SyncGroups of a generation, which the machine awaits from all of its members.

    deadline_s: until when it does (the loop's time). report_s: from when on those that were
    answered without it have to be reported: the rest of the time may pass until the log gives an
    event its time.
    """

    deadline_s: float
    report_s: float
    unreported: dict[str, None] = field(default_factory=dict)

    def add(self, member: str, now_s: float) -> bool:
        """Note that a member has sent SyncGroup; return False when it is too late for that."""
        in_time = now_s < self.deadline_s
        if in_time:
            self.unreported[member] = None
        return in_time

    def rename(self, old: str, new: str) -> None:
        """Take a member's SyncGroup for that of the id under which it goes on."""
        if old in self.unreported:
            del self.unreported[old]
            self.unreported[new] = None

    def report(self, now_s: float) -> list[str]:
        """Return the members to report now."""
        if not self.unreported or now_s < self.report_s:
            return []
        reported = list(self.unreported)
        self.unreported.clear()
        return reported
