"""What one event does to one group, noted in order: the body of a change_group decision."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from state.bodies import GroupStep, Undo
from state.groups.change_bodies import Change
from state.groups.config import GroupConfig
from state.groups.tables import GroupApi
from state.protocol_errors import ProtocolError


class Step:
    """Changes and replies that are true together; with records, once these are appended."""

    __slots__ = ("body", "turn")

    def __init__(self, turn: Turn) -> None:
        """Begin a step of a turn."""
        self.turn = turn
        self.body: GroupStep = {"changes": [], "replies": []}

    def change(self, change: Change) -> None:
        """Keep what changed, and add the turn's present time to it."""
        change["at_ms"] = self.turn.now_ms
        self.body["changes"].append(change)

    def reply(self, request_id: str, api: GroupApi, error: ProtocolError, **fields: Any) -> None:
        """Note an answer."""
        self.body["replies"].append(
            {"request_id": request_id, "api": api, "error": error, **fields}
        )


class Turn:
    """One event about one group.

    offset: the event's. now_ms: the deadline of the timer that fires, else the event's time.
    """

    __slots__ = ("_steps", "_writes", "config", "now_ms", "offset")

    def __init__(self, offset: int, now_ms: int, config: GroupConfig) -> None:
        """Begin with nothing noted."""
        self.offset = offset
        self.now_ms = now_ms
        self.config = config
        self._steps: list[Step] = []
        self._writes = 0

    def change(self, change: Change) -> None:
        """Note what changed and needs no record."""
        self._plain().change(change)

    def reply(self, request_id: str, api: GroupApi, error: ProtocolError, **fields: Any) -> None:
        """Note an answer that waits for no record."""
        self._plain().reply(request_id, api, error, **fields)

    def write(
        self,
        records: Sequence[dict[str, Any]],
        *,
        undo: Undo | None = None,
        quiet: bool = False,
        producer: tuple[int, int] | None = None,
    ) -> Step:
        """Note records to append and return the step of what follows from them.

        undo: what the machine needs back if they are refused. quiet: a refusal counts for nothing.
        """
        step = Step(self)
        step.body["records"], step.body["write"] = list(records), self._writes
        if undo is not None:
            step.body["undo"] = undo
        if quiet:
            step.body["quiet"] = True
        if producer is not None:
            step.body["producer"] = producer
        self._writes += 1
        self._steps.append(step)
        return step

    @property
    def next_write(self) -> tuple[int, int]:
        """The id that the next write will have."""
        return self.offset, self._writes

    def _plain(self) -> Step:
        if not self._steps or "records" in self._steps[-1].body:
            self._steps.append(Step(self))
        return self._steps[-1]

    def steps(self) -> list[GroupStep]:
        """Return the steps as they stand in the decision."""
        return [step.body for step in self._steps]
