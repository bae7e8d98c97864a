"""Assignments that are given out without a micro-batch: what leaders of generations send.

What is checked against the image is what members have been told, so a generation that waits there
for its assignment may get it, whatever the query has decided since. Its record is appended at once;
when all brokers in sync have it, the log hears of it (`assignment_appended`), ahead of whatever the
group's members ask next, and then they do. docs/adr/0023 says why that is safe.
"""

from __future__ import annotations

import asyncio
import functools
import struct
from collections.abc import Sequence
from dataclasses import dataclass

from state.event_kinds import EventKind
from state.groups.change_bodies import AssignmentDistributed
from state.groups.change_kinds import ChangeKind
from state.groups.image import GroupImage
from state.groups.payloads.requests import SyncGroupRequested
from state.groups.records import assigned_metadata
from state.groups.states import GroupState
from streaming.front.groups.decisions import Changed
from streaming.front.groups.view import CoordinatorView
from streaming.log.api import NewRecord
from streaming.log.events import AppendEvents, event
from streaming.offsets.batches import BatchRecord, bytes_at_most, encode_batch
from streaming.offsets.leader import LeaderStopped, OffsetsLeader, Refusal
from streaming.offsets.records import encode_record
from streaming.process.wall_clock import wall_clock_ms

_LARGEST_BYTES = 256 * 1024
"""Of a record; a larger one is decided, so that the log is sure to take what is said of it."""


@dataclass(frozen=True, slots=True, eq=False)
class _Assignment:
    """What a leader assigns in a generation, and the group's record with it."""

    group: str
    partition: int
    generation: int
    assignments: list[tuple[str, str]]
    time_ms: int
    record: BatchRecord

    def event(self) -> NewRecord:
        """Return what the log hears of it."""
        body = {
            "group": self.group,
            "partition": self.partition,
            "generation": self.generation,
            "assignments": self.assignments,
        }
        return event(EventKind.ASSIGNMENT_APPENDED, body, self.group)

    def change(self) -> AssignmentDistributed:
        """Return what the image folds, as the decision about it will say it."""
        return {
            "change": ChangeKind.ASSIGNMENT_DISTRIBUTED,
            "generation": self.generation,
            "assignments": self.assignments,
            "at_ms": self.time_ms,
        }


class DirectAssignments:
    """Appends what leaders assign; lives on the front's event loop."""

    def __init__(
        self,
        leader: OffsetsLeader,
        append: AppendEvents,
        view: CoordinatorView,
        changed: Changed,
    ) -> None:
        """append: takes events; changed: takes the changes of a group once they are true."""
        self._leader = leader
        self._append = append
        self._view = view
        self._changed = changed
        self._taken: dict[int, list[_Assignment]] = {}
        self._under_way: dict[str, _Assignment] = {}
        self._left: set[str] = set()

    def take(self, request: SyncGroupRequested) -> bool:
        """Have a leader's assignment appended at the end of this turn of the loop; False leaves it
        to be decided. What happens to the first one of a generation happens to the others, so that
        members are told what is stored.

        The request was found right, of a group that waits for it in the image.
        """
        if request.group in self._under_way:
            return True
        one = self._read(request) if self._may_append(request) else None
        if one is None:
            self.leave(request)
            return False
        if not self._taken:
            asyncio.get_running_loop().call_soon(self._append_taken)
        self._taken.setdefault(one.partition, []).append(one)
        self._under_way[one.group] = one
        return True

    def leave(self, request: SyncGroupRequested) -> None:
        """Note that a SyncGroup of a group in the image is decided: what it assigns may count."""
        if request.generation == self._view.image.groups[request.group].generation:
            self._left.add(request.group)

    def _may_append(self, request: SyncGroupRequested) -> bool:
        """Return whether the record would stand where it belongs: behind a write that is on its way
        the group may be another one than the image says.
        """
        return (
            request.group not in self._left
            and self._view.node_role.decides()
            and request.group not in self._view.image.writing
            and self._leader.refusal(request.partition) is not Refusal.FULL
        )

    def _read(self, request: SyncGroupRequested) -> _Assignment | None:
        """Return what is to be appended, None for what cannot be."""
        group, now_ms = self._view.image.groups[request.group], wall_clock_ms()
        told = [(name, request.assignments.get(name, "")) for name in group.members]
        try:
            key, value = encode_record(
                request.group, assigned_metadata(group, request.assignments, now_ms)
            )
        except struct.error:
            return None  # a name is too long for the topic: the machine hears that it is refused
        record = BatchRecord(now_ms, key, value)
        if bytes_at_most([record]) > _LARGEST_BYTES:
            return None
        of = request.group, request.partition, request.generation
        return _Assignment(*of, told, now_ms, record)

    def _append_taken(self) -> None:
        taken, self._taken = self._taken, {}
        image = self._view.image
        for partition, ones in taken.items():
            batches = [encode_batch([one.record]) for one in ones]
            try:
                done = self._leader.append_all(partition, batches)
            except LeaderStopped:
                continue  # who waits for it has been answered
            done.add_done_callback(functools.partial(self._appended, image, ones))

    def _appended(
        self, image: GroupImage, ones: Sequence[_Assignment], done: asyncio.Future[None]
    ) -> None:
        """Tell the log, and then the members."""
        if done.cancelled() or done.exception() is not None or image is not self._view.image:
            return
        true = [one for one in ones if self._still_counts(one)]
        if true:
            self._append([one.event() for one in true])
        for one in true:
            change = one.change()
            image.assigned(one.group, change)
            self._changed(one.group, [change])

    def _still_counts(self, one: _Assignment) -> bool:
        """Return whether the generation still waits for this; it is under way no more."""
        if self._under_way.get(one.group) is not one:
            return False
        del self._under_way[one.group]
        group = self._view.image.groups.get(one.group)
        return (
            group is not None
            and group.state is GroupState.COMPLETING
            and group.generation == one.generation
        )

    def ended(self, group: str) -> None:
        """A generation is over: nothing of it is given out any more."""
        self._under_way.pop(group, None)
        self._left.discard(group)

    def forget(self) -> None:
        """Give out nothing of what is under way: the topic has it, and is loaded."""
        self._taken.clear()
        self._under_way.clear()
        self._left.clear()
