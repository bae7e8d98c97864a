"""The writes of random logs of groups: on their way for a while, then appended or refused."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from state.bodies import ChangeGroup, GroupStep
from state.groups.change_kinds import ChangeKind
from state.groups.image import GroupImage, WriteId
from state.groups.states import GroupState
from tests.logs.group_parts import REFUSALS


@dataclass(slots=True)
class Writes:
    """Folds decisions into an image, as what carries them out does.

    held: writes on their way in order, with their partition. refuses: how many fail that end next.
    """

    image: GroupImage = field(default_factory=GroupImage)
    held: list[tuple[WriteId, int]] = field(default_factory=list)
    refuses: int = 0

    def begin(self, offset: int, decision: ChangeGroup) -> list[GroupStep]:
        """Take a decision; return the steps that need no records."""
        decided = self.image.begin(offset, decision)
        self.held += [(write, decided.partition) for write in decided.writes]
        return [
            step for step in decided.steps if (offset, step.get("write", -1)) not in decided.writes
        ]

    def may_assign(self, group: str, leader: str | None, generation: int) -> bool:
        """Return whether a generation waits for what its leader assigns, and no write of the group
        is on its way.
        """
        view = self.image.groups.get(group)
        if view is None or group in self.image.writing:
            return False
        waits = (GroupState.COMPLETING, leader, generation)
        return (view.state, view.leader, view.generation) == waits

    def assign(
        self, group: str, leader: str, generation: int, given: dict[str, str], now_ms: int
    ) -> bool:
        """Fold what a leader assigns, if it may; return whether that was so."""
        if not self.may_assign(group, leader, generation):
            return False
        view = self.image.groups[group]
        told = [(one, given.get(one, "")) for one in view.members]
        self.image.assigned(
            group,
            {
                "change": ChangeKind.ASSIGNMENT_DISTRIBUTED,
                "generation": generation,
                "assignments": told,
                "at_ms": now_ms,
            },
        )
        return True

    def end(self, count: int) -> tuple[list[GroupStep], list[dict[str, Any]]]:
        """End the writes that have been on their way for longest; return the steps of those that
        were appended, and what group_records_refused says of the others.
        """
        ending, self.held = self.held[:count], self.held[count:]
        appended, refused = [], []
        for write, partition in ending:
            if self.refuses:
                self.refuses -= 1
                error = REFUSALS[write[0] % len(REFUSALS)]
                refused.append(self.image.refused(write, partition, error))
            else:
                _, step = self.image.in_flight[write]
                self.image.appended(write)
                appended.append(step)
        return appended, refused
