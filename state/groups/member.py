"""A member of a consumer group, and the deadlines of all members in order."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from heapq import heappop, heappush

from state.groups.change_bodies import NewMember
from state.groups.payloads.requests import Protocols

NEVER = (1 << 63) - 1
"""A deadline that does not come."""


@dataclass(slots=True)
class Member:
    """A member of a group.

    metadata and assignment are base64. join_request, sync_request: id of the request that waits.
    deadline_ms: when it expires unless a heartbeat comes; None while it waits for the others.
    is_new: its first generation has not begun, so it can expire while it waits. pending_sync: its
    SyncGroup of this generation has not come. order: its place among the group's, as they joined.
    """

    id: str
    instance: str | None
    client: str
    host: str
    session_timeout_ms: int
    rebalance_timeout_ms: int
    protocols: Protocols
    assignment: str = ""
    join_request: str | None = None
    sync_request: str | None = None
    deadline_ms: int | None = None
    is_new: bool = False
    pending_sync: bool = False
    order: int = field(default=0, init=False, compare=False)

    def metadata(self, protocol: str) -> str:
        """Return the member's metadata for a protocol; raises KeyError when it has not named it."""
        found = self._metadata(protocol)
        if found is None:
            raise KeyError(protocol)
        return found

    def metadata_if_any(self, protocol: str | None) -> str:
        """Return the member's metadata for a protocol, "" for one that it has not named."""
        return self._metadata(protocol or "") or ""

    def _metadata(self, protocol: str) -> str | None:
        for name, metadata in self.protocols:
            if name == protocol:
                return metadata  # of two with the same name the first counts
        return None

    @property
    def waits(self) -> bool:
        """Whether it waits for the group rather than the group for it."""
        return not self.is_new and (self.join_request is not None or self.sync_request is not None)


def member_fields(member: Member) -> NewMember:
    """Return what a loaded group and a group's record say of each member."""
    return {
        "member": member.id,
        "instance": member.instance,
        "client": member.client,
        "host": member.host,
        "session_timeout_ms": member.session_timeout_ms,
        "rebalance_timeout_ms": member.rebalance_timeout_ms,
    }


class Deadlines:
    """Deadlines in ms of a group's members and of the member ids that it gave out, the first of
    which is found without looking at the others.

    What was noted holds while the member, or the id, has that deadline; what does not hold any more
    is passed over when its turn comes. Of those due together members come in order of joining, ids
    as they were given out.
    """

    __slots__ = ("_given", "_members", "_new", "_noted", "_pending")

    def __init__(self, members: Iterable[Member], pending: Mapping[str, int]) -> None:
        """Begin with a group's members and its ids given out, whose deadlines are looked up in
        pending from then on.
        """
        self._noted = 0
        self._pending = pending
        self._members: list[tuple[int, int, int, Member]] = []
        self._new: list[tuple[int, int, int, Member]] = []
        self._given: list[tuple[int, int, str]] = []
        for member in members:
            self.note(member)
        for member_id in pending:
            self.note_given(member_id)

    def note(self, member: Member) -> None:
        """Take a member's deadline, if it has one."""
        if member.deadline_ms is None:
            return
        self._noted += 1
        entry = (member.deadline_ms, member.order, self._noted, member)
        heappush(self._members, entry)
        if member.is_new:
            heappush(self._new, entry)

    def note_given(self, member_id: str) -> None:
        """Take the deadline of an id that was given out."""
        self._noted += 1
        heappush(self._given, (self._pending[member_id], self._noted, member_id))

    def first_member(self) -> Member | None:
        """Return the member whose session expires first; None without any."""
        heap = self._members
        while heap and heap[0][3].deadline_ms != heap[0][0]:
            heappop(heap)
        return heap[0][3] if heap else None

    def first_new_ms(self) -> int:
        """Return the first deadline of a new member, NEVER without one."""
        heap = self._new
        while heap and not (heap[0][3].is_new and heap[0][3].deadline_ms == heap[0][0]):
            heappop(heap)
        return heap[0][0] if heap else NEVER

    def first_given(self) -> str | None:
        """Return the given-out id that expires first; None without any."""
        heap = self._given
        while heap and self._pending.get(heap[0][2]) != heap[0][0]:
            heappop(heap)
        return heap[0][2] if heap else None
