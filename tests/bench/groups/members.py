"""Groups of members that join, synchronise, heartbeat and commit, all in one thread."""

from __future__ import annotations

import time
from collections.abc import Sequence

from tests.bench.groups import frames
from tests.bench.groups.wire import Wire

_NONE, _REBALANCE_IN_PROGRESS, _MEMBER_ID_REQUIRED = 0, 27, 79
_LOOK_AGAIN_S = 0.02
_TIMEOUT_S = 900.0


class UnexpectedError(Exception):
    """A request was answered with an error that this load does not lead to."""


class Member:
    """One member, with a connection of its own."""

    __slots__ = ("connection", "generation", "group", "id", "next")

    def __init__(self, group: Group, connection: int) -> None:
        self.group = group
        self.connection = connection
        self.id = ""
        self.generation = -1
        self.next = ""


class Group:
    """A group: who has come how far in its newest generation."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.members: list[Member] = []
        self.sizes: dict[int, int] = {}
        self.synced: dict[int, int] = {}
        self.began = 0.0
        self.ended = 0.0


class Population:
    """Groups of equal size; as joining parks a connection, each member has one of its own.

    timeouts_ms: of sessions and rebalances.
    """

    def __init__(
        self,
        wire: Wire,
        prefix: str,
        groups: int,
        size: int,
        timeouts_ms: tuple[int, int] = (frames.SESSION_MS, frames.REBALANCE_MS),
    ) -> None:
        self._wire = wire
        self._timeouts_ms = timeouts_ms
        self._size = size
        self._rejoins = 0
        self._identified = 0
        self._complete = 0
        self.groups = [Group(f"{prefix}-{number}") for number in range(groups)]
        self.members: list[Member] = []
        for place in range(size):
            for number, group in enumerate(self.groups):
                member = Member(group, place * groups + number)
                group.members.append(member)
                self.members.append(member)
        wire.connect(len(self.members))

    def form(self) -> list[float]:
        """Let all members join: first each gets an id, then all come with theirs.

        Returns how long each group took, from its first JoinGroup to its last assignment.
        """
        self._begin()
        self._identified = 0
        for member in self.members:
            self._ask_join(member, "identified")
        self._wire.run(lambda: self._identified == len(self.members), _TIMEOUT_S)
        return self._join_all()

    def rejoin(self) -> list[float]:
        """Let all members of all groups come with other metadata at once; returns as `form`."""
        self._begin()
        self._rejoins += 1
        return self._join_all()

    def _begin(self) -> None:
        self._complete = 0
        self._wire.answered = self._answered
        for group in self.groups:
            group.began = 0.0
            group.sizes.clear()
            group.synced.clear()

    def _join_all(self) -> list[float]:
        for member in self.members:
            self._ask_join(member, "joined")
        self._wire.run(lambda: self._complete == len(self.groups), _TIMEOUT_S)
        return [group.ended - group.began for group in self.groups]

    def heartbeats(self) -> list[bytes]:
        return [frames.heartbeat(one.group.name, one.id, one.generation) for one in self.members]

    def commits(self, partitions: int) -> list[bytes]:
        """Return a commit of one member of each group."""
        first = [group.members[0] for group in self.groups]
        return [
            frames.offset_commit(one.group.name, one.id, one.generation, partitions)
            for one in first
        ]

    def _ask_join(self, member: Member, then: str) -> None:
        member.next = then
        member.group.began = member.group.began or time.perf_counter()
        metadata = frames.subscription(self._rejoins)
        self._wire.send(
            member.connection,
            frames.join_group(member.group.name, member.id, metadata, self._timeouts_ms),
        )

    def _answered(self, number: int, answer: bytes) -> None:
        member = self.members[number]
        match member.next:
            case "identified":
                joined = frames.Joined(answer)
                _expect(joined.error, [_MEMBER_ID_REQUIRED])
                member.id = joined.member
                self._identified += 1
            case "joined":
                self._joined(member, frames.Joined(answer))
            case "synced":
                self._synced(member, frames.error_of(answer))
            case "heard":
                self._heard(member, frames.error_of(answer))

    def _joined(self, member: Member, joined: frames.Joined) -> None:
        _expect(joined.error, [_NONE])
        member.generation = joined.generation
        if joined.members:
            member.group.sizes[joined.generation] = len(joined.members)
        member.next = "synced"
        self._wire.send(
            member.connection,
            frames.sync_group(member.group.name, member.id, joined.generation, joined.members),
        )

    def _synced(self, member: Member, error: int) -> None:
        _expect(error, [_NONE, _REBALANCE_IN_PROGRESS])
        if error == _REBALANCE_IN_PROGRESS:
            self._ask_join(member, "joined")
            return
        group, generation = member.group, member.generation
        if group.sizes[generation] < self._size:
            self._look_later(member)
            return
        group.synced[generation] = group.synced.get(generation, 0) + 1
        if group.synced[generation] == self._size:
            group.ended = time.perf_counter()
            self._complete += 1

    def _look_later(self, member: Member) -> None:
        """Look soon whether others have come, as a client's heartbeats do."""
        member.next = "heard"
        request = frames.heartbeat(member.group.name, member.id, member.generation)
        self._wire.send_later(_LOOK_AGAIN_S, member.connection, request)

    def _heard(self, member: Member, error: int) -> None:
        _expect(error, [_NONE, _REBALANCE_IN_PROGRESS])
        if error == _NONE:
            self._look_later(member)
        else:
            self._ask_join(member, "joined")


def _expect(error: int, allowed: Sequence[int]) -> None:
    if error not in allowed:
        raise UnexpectedError(f"error {error}, expected one of {list(allowed)}")
