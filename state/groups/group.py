"""A consumer group: its members, timers and offsets."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from state.groups.member import Deadlines, Member
from state.groups.offset_store import OffsetStore
from state.groups.payloads.requests import Protocols
from state.groups.states import GroupState
from state.groups.subscription import CONSUMER, subscribed_topics

SLACK_MS = 1_000
"""How late a timer that no request waits for may ring, so that many of them cost one batch."""

SLACK_PART = 10
"""And at most this part of the shortest session."""


class JoinTimer(NamedTuple):
    """When joining ends, in a stable group when the rebalance begins that waits for whoever left to
    come back; remaining_ms: by how much an initial delay may still grow, None after the first
    generation.
    """

    deadline_ms: int
    remaining_ms: int | None


@dataclass(slots=True)
class Group:
    """State of one group.

    partition: of `__consumer_offsets`. state_since_ms: None when it was loaded from a record that
    does not say. pending: deadlines in ms of member ids that were given out and not used yet.
    new_member_added: the initial delay is prolonged. subscribed: topics of the generation's
    subscriptions, None when not known. assigned_by: the write that carried the assignments.
    joined, unsynced: how many members wait in JoinGroup, and of how many SyncGroup is to come.
    """

    name: str
    partition: int
    state: GroupState = GroupState.EMPTY
    generation: int = 0
    protocol_type: str | None = None
    protocol: str | None = None
    leader: str | None = None
    state_since_ms: int | None = None
    members: dict[str, Member] = field(default_factory=dict)
    pending: dict[str, int] = field(default_factory=dict)
    join_timer: JoinTimer | None = None
    sync_deadline_ms: int | None = None
    new_member_added: bool = False
    subscribed: tuple[str, ...] | None = None
    assigned_by: tuple[int, int] | None = None
    store: OffsetStore = field(default_factory=OffsetStore)
    instances: dict[str, str] = field(default_factory=dict, init=False)
    support: Counter[str] = field(default_factory=Counter, init=False)
    joined: int = field(default=0, init=False)
    unsynced: int = field(default=0, init=False)
    _came: int = field(default=0, init=False)
    _deadlines: Deadlines | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        """Derive what is not stored."""
        for member in self.members.values():
            self._count(member)

    def _count(self, member: Member) -> None:
        self._came += 1
        member.order = self._came
        self.joined += member.join_request is not None
        self.unsynced += member.pending_sync
        if member.instance is not None:
            self.instances[member.instance] = member.id
        for name in {name for name, _ in member.protocols}:
            self.support[name] += 1

    def add(self, member: Member, protocol_type: str) -> None:
        """Take a member in; the first one of a group leads it and says its protocol type."""
        assert member.id not in self.members, f"{self.name} has a member {member.id}"
        if not self.members:
            self.protocol_type = protocol_type
        if self.leader is None:
            self.leader = member.id
        self.members[member.id] = member
        self._count(member)
        self.pending.pop(member.id, None)
        self.set_deadline(member, member.deadline_ms)

    def drop(self, member: Member) -> None:
        """Take a member out; the next one in order of joining leads in its place."""
        del self.members[member.id]
        member.deadline_ms = None
        self.let_join(member, None)
        self.sync_came(member)
        if member.instance is not None:
            del self.instances[member.instance]
        self.support.subtract({name for name, _ in member.protocols})
        self.leader = leader_without(self.leader, member.id, self.members)

    def rename(self, member: Member, new_id: str) -> None:
        """Give a member another id; it keeps its place and its part as leader."""
        old_id, member.id = member.id, new_id
        self.members = {one.id: one for one in self.members.values()}
        if member.instance is not None:
            self.instances[member.instance] = new_id
        if self.leader == old_id:
            self.leader = new_id

    def set_deadline(self, member: Member, deadline_ms: int | None) -> None:
        """Expire a member then unless a heartbeat comes; None: not before it is answered."""
        member.deadline_ms = deadline_ms
        if self._deadlines is not None:
            self._deadlines.note(member)

    def give_out(self, member_id: str, deadline_ms: int) -> None:
        """Note an id that was given out, for as long as somebody may come with it."""
        self.pending[member_id] = deadline_ms
        if self._deadlines is not None:
            self._deadlines.note_given(member_id)

    def let_join(self, member: Member, request_id: str | None) -> None:
        """Let a member wait in JoinGroup with a request, or not any more."""
        self.joined += (request_id is not None) - (member.join_request is not None)
        member.join_request = request_id

    def await_syncs(self) -> None:
        """Wait for the SyncGroup of every member."""
        for member in self.members.values():
            member.pending_sync = True
        self.unsynced = len(self.members)

    def sync_came(self, member: Member) -> None:
        """Wait for the SyncGroup of a member no more."""
        self.unsynced -= member.pending_sync
        member.pending_sync = False

    def offer(self, member: Member, protocols: Protocols) -> None:
        """Replace the protocols that a member offers."""
        before = {name for name, _ in member.protocols}
        after = {name for name, _ in protocols}
        member.protocols = protocols
        if before != after:
            self.support.subtract(before)
            self.support.update(after)

    def supports(self, protocol_type: str, protocols: Protocols) -> bool:
        """Return whether a member with these protocols can take part."""
        if self.state is GroupState.EMPTY:
            return bool(protocol_type) and bool(protocols)
        everyone = len(self.members)
        return self.protocol_type == protocol_type and any(
            self.support[name] == everyone for name, _ in protocols
        )

    def vote(self) -> str:
        """Return the protocol that most members prefer among those that all know; of equals the
        one that was voted for first.
        """
        everyone = len(self.members)
        votes: Counter[str] = Counter(
            next(name for name, _ in member.protocols if self.support[name] == everyone)
            for member in self.members.values()
        )
        return max(votes, key=votes.__getitem__)

    def topics(self) -> tuple[str, ...] | None:
        """Return what the members are subscribed to under the group's protocol; None: not known."""
        if self.protocol_type != CONSUMER:
            return None
        if not self.members:
            return ()
        protocol = self.protocol
        if protocol is None:
            return None
        return subscribed_topics(one.metadata(protocol) for one in self.members.values())

    @property
    def rebalance_timeout_ms(self) -> int:
        """The longest time that a member wants to be waited for; none that wants less than nothing
        ends anything in the past (GroupMetadata.rebalanceTimeoutMs).
        """
        return max((0, *(one.rebalance_timeout_ms for one in self.members.values())))

    @property
    def all_joined(self) -> bool:
        """Whether every member waits for the next generation and nobody else is to come."""
        return not self.pending and self.joined == len(self.members)

    @property
    def deadlines(self) -> Deadlines:
        """The deadlines of members and of given-out ids, in order."""
        if self._deadlines is None:
            self._deadlines = Deadlines(self.members.values(), self.pending)
        return self._deadlines

    @property
    def next_deadline_ms(self) -> int:
        """When the first of its timers is due, NEVER when none is armed."""
        return self.deadlines_ms()[0]

    def deadlines_ms(self) -> tuple[int, int]:
        """Return when the first of its timers is due, and when the first of those is that the clock
        rings for; NEVER when none is armed.

        The clock rings for no session: the front, which keeps them, appends a tick when one is
        over. A new member sends no heartbeats, so for that one the clock does.
        """
        clock_ms = self.deadlines.first_new_ms()
        if self.join_timer is not None:
            clock_ms = min(clock_ms, self.join_timer.deadline_ms)
        if self.sync_deadline_ms is not None:
            clock_ms = min(clock_ms, self.sync_deadline_ms)
        if (given := self.deadlines.first_given()) is not None:
            clock_ms = min(clock_ms, self.pending[given])
        member = self.deadlines.first_member()
        if member is None or member.deadline_ms is None:
            return clock_ms, clock_ms
        return min(clock_ms, member.deadline_ms), clock_ms

    @property
    def slack_ms(self) -> int:
        """How late the clock may ring for the group's timer: a little, while no request waits for
        it.
        """
        if self.join_timer is not None or self.sync_deadline_ms is not None:
            return 0
        shortest_ms = min(
            (one.session_timeout_ms for one in self.members.values()), default=SLACK_MS
        )
        return min(SLACK_MS, shortest_ms // SLACK_PART)


def leader_without(leader: str | None, gone: str, members: Iterable[str]) -> str | None:
    """Return who leads once a member is gone: the next one, in order of joining, if it led."""
    return next(iter(members), None) if leader == gone else leader


def empty_since_ms(group: Group) -> int | None:
    """Return since when a group that had members has none: its offsets are kept from then on
    (GroupMetadata.removeExpiredOffsets); None for other groups.
    """
    became_empty = group.protocol_type is not None and group.state is GroupState.EMPTY
    return group.state_since_ms if became_empty else None
