"""The read side of groups: change_group decisions folded into what requests are answered from.

What a write changes is folded when its records are appended; until then its offsets are in flight.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson

from state.bodies import ChangeGroup, GroupStep, awaits_records
from state.groups.change_bodies import AssignmentDistributed, Change
from state.groups.change_kinds import ChangeKind
from state.groups.image_changes import (
    CHANGES,
    CREATES,
    DirectCommit,
    GroupView,
    without_removed,
)
from state.groups.offset_rows import OffsetRow, row_values
from state.topic_partition import TopicPartition

WriteId = tuple[int, int]
"""Offset of the event and index of the write in its decision."""

_BROKEN = (LookupError, TypeError, ValueError, AttributeError)
"""What folding a change raises that does not fit the group."""


@dataclass(slots=True)
class BegunDecision:
    """A decision about a group whose records are on their way; writes: its steps with records by
    their id.
    """

    group: str
    partition: int
    steps: list[GroupStep]
    writes: dict[WriteId, GroupStep]


def _raise(group: str, change: Change, error: Exception) -> None:
    raise error


@dataclass(slots=True)
class GroupImage:
    """Every group by name, and the writes that are on their way, with the group of each.

    writing: the ids of those of a group. committing: commits that are appended without a decision,
    by group. on_error: called with a change that cannot be folded; if it returns, the change is
    skipped.
    """

    groups: dict[str, GroupView] = field(default_factory=dict)
    in_flight: dict[WriteId, tuple[str, GroupStep]] = field(default_factory=dict)
    writing: dict[str, set[WriteId]] = field(default_factory=dict)
    committing: dict[str, set[DirectCommit]] = field(default_factory=dict)
    on_error: Callable[[str, Change, Exception], None] = _raise

    def apply(self, offset: int, body: bytes) -> None:
        """Fold a decision whose records, if it has any, are appended."""
        for write in self.begin(offset, orjson.loads(body)).writes:
            self.appended(write)

    def begin(self, offset: int, decision: ChangeGroup) -> BegunDecision:
        """Fold what is true at once and note the writes; each ends with appended or refused.

        decision: the body of a change_group decision.
        """
        group = decision["group"]
        decided = BegunDecision(group, decision["partition"], decision["steps"], {})
        for step in decided.steps:
            if awaits_records(step):
                write = (offset, step["write"])
                decided.writes[write] = step
                self.in_flight[write] = (group, step)
                self.writing.setdefault(group, set()).add(write)
            else:
                self._fold(group, step)
        return decided

    def appended(self, write: WriteId) -> None:
        """Fold what a write changed."""
        group, step = self._end(write)
        self._fold(group, step)

    def refused(self, write: WriteId, partition: int, error: int) -> dict[str, Any]:
        """Drop a write; return the payload of the group_records_refused about it, with what stays
        committed of its partitions, or will be by writes before it.

        partition: of `__consumer_offsets`. error: the protocol's code for what went wrong.
        """
        group, step = self._end(write)
        rows = self._offsets_before(write, group)
        kept = [(at, rows.get(at)) for at in _partitions(step)]
        return {
            "partition": partition,
            "group": group,
            "write": list(write),
            "error": error,
            "replies": step["replies"],
            "undo": step.get("undo"),
            "offsets": [[*at, None if row is None else row_values(at, row)] for at, row in kept],
        }

    def commit_begun(self, group: str, commit: DirectCommit) -> None:
        """Note a commit that is being appended; it ends with commit_ended."""
        self.committing.setdefault(group, set()).add(commit)

    def commit_ended(self, group: str, commit: DirectCommit, *, appended: bool) -> None:
        """Fold a commit that was appended, or drop it."""
        of_group = self.committing[group]
        of_group.remove(commit)
        if not of_group:
            del self.committing[group]
        view = self.groups.get(group)
        if appended and view is not None:
            view.apply_commit(commit)

    def assigned(self, group: str, change: AssignmentDistributed) -> None:
        """Fold an assignment that was appended without a decision; when that comes it changes
        nothing.
        """
        self._change(group, change)

    def unstable(self, group: str) -> set[TopicPartition]:
        """Return the group's partitions with a commit on its way, or that waits for a marker."""
        found: set[TopicPartition] = set()
        for write in self.writing.get(group, ()):
            found.update(_partitions(self.in_flight[write][1]))
        commits = {one.layout: one for one in self.committing.get(group, ())}
        for one in commits.values():
            found.update(one.partitions)
        if (view := self.groups.get(group)) is not None:
            found.update(*view.pending.values())
        return found

    def with_offsets_of(self, topics: set[str]) -> dict[str, set[str]]:
        """Return the groups that have offsets of topics, or will have by what is on its way, and of
        which of them.
        """
        found: dict[str, set[str]] = {}

        def look(group: str, partitions: Iterable[TopicPartition]) -> None:
            if gone := {topic for topic, _ in partitions if topic in topics}:
                found.setdefault(group, set()).update(gone)

        for group, view in self.groups.items():
            for rows in (view.offsets, *view.pending.values()):
                look(group, rows)
        for group, step in self.in_flight.values():
            look(group, _partitions(step))
        for group, commits in self.committing.items():
            for one in commits:
                look(group, one.partitions)
        return found

    def _offsets_before(self, write: WriteId, group: str) -> Mapping[TopicPartition, OffsetRow]:
        """Return a group's offsets as they are once its writes before one are appended."""
        view = GroupView()
        if (known := self.groups.get(group)) is not None:
            view.offsets.update(known.offsets)
        earlier = [self.in_flight[one][1] for one in self.writing.get(group, ()) if one < write]
        for change in (change for step in earlier for change in step["changes"]):
            if change["change"] == ChangeKind.OFFSETS_COMMITTED:
                CHANGES[change["change"]](view, change)
        return view.offsets

    def _end(self, write: WriteId) -> tuple[str, GroupStep]:
        group, step = self.in_flight.pop(write)
        of_group = self.writing[group]
        of_group.remove(write)
        if not of_group:
            del self.writing[group]
        return group, step

    def _fold(self, group: str, step: GroupStep) -> None:
        for change in step["changes"]:
            try:
                self._change(group, change)
            except _BROKEN as error:
                self.on_error(group, change, error)

    def _change(self, group: str, change: Change) -> None:
        name = change["change"]
        if name == ChangeKind.GROUP_REMOVED:
            self.groups.pop(group, None)
            self._prune(group, lambda changes: [])
        elif name in CREATES:
            self.groups[group] = view = GroupView()
            CHANGES[name](view, change)
        elif (known := self.groups.get(group)) is not None:
            # What a write changes may come when the group is gone.
            CHANGES[name](known, change)
            if change["change"] == ChangeKind.OFFSETS_REMOVED:
                self._prune(group, functools.partial(without_removed, removal=change))

    def _prune(self, group: str, rest: Callable[[list[Change]], list[Change]]) -> None:
        """Let writes that are on their way change no more than the rest of what they would."""
        for write in self.writing.get(group, ()):
            _, step = self.in_flight[write]
            self.in_flight[write] = (group, {**step, "changes": rest(step["changes"])})


def _partitions(step: GroupStep) -> list[TopicPartition]:
    """Return the offsets that a write is about."""
    return [
        (topic, partition)
        for change in step["changes"]
        if "offsets" in change
        for topic, partition, *_ in change["offsets"]
    ]
