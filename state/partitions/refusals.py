"""Moves of partitions and replicas that rules refuse, and what is said about them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import numpy as np
import numpy.typing as npt

from state.blocks import Column
from state.matrix import NONE, Bools, Int32s, Rows
from state.partitions.table import PartitionTable


class RefusalReason(StrEnum):
    """Why a move was refused, as the decision log names it."""

    ILLEGAL_MOVE = "illegal_move"
    NEWER_CONTROLLER = "stored_by_newer_controller"
    NO_STATE = "no_stored_state"
    NO_CANDIDATE = "no_candidate"
    NO_LIVE_REPLICA = "no_live_replica"
    WOULD_LEAD = "new_replica_is_leader"
    BELOW_MIN_INSYNC = "below_min_insync_replicas"


@dataclass(frozen=True, slots=True)
class Refusal:
    """Moves refused for one reason: rows int[k], the replica ids int32[k] (-1: the partition
    itself).
    """

    rows: Rows
    replica: Int32s
    current: npt.NDArray[np.int8]
    target: int
    reason: RefusalReason

    def only(self, mask: Bools) -> Refusal:
        """Return the refusal of some of the rows."""
        return Refusal(
            self.rows[mask], self.replica[mask], self.current[mask], self.target, self.reason
        )


class Refusals:
    """What was refused during one event, or several about different topics."""

    def __init__(self, table: PartitionTable) -> None:
        """Start with nothing refused."""
        self._table = table
        self._found: list[Refusal] = []

    def add_partitions(self, at: Rows, target: int, reason: RefusalReason) -> None:
        """Report partition moves that are not made."""
        if len(at):
            replica = np.full(len(at), NONE, dtype=np.int32)
            self._found.append(Refusal(at, replica, self._table.rows.state[at], target, reason))

    def add_replicas(self, at: Rows, mask: Bools, target: int, reason: RefusalReason) -> None:
        """Report replica moves that are not made: mask bool[k, R] of rows `at`."""
        if mask.any():
            rows = self._table.rows
            row, column = np.nonzero(mask)
            at = at[row]
            current = rows.replica_state[at, column]
            self._found.append(Refusal(at, rows.replicas[at, column], current, target, reason))

    def blocks(self, *, by_topic: bool) -> Iterator[tuple[Rows, dict[str, Column], dict[str, Any]]]:
        """Yield (rows, columns, header) of each event that has some: a block's header names its
        reasons. by_topic: each topic has an event of its own.
        """
        if not self._found:
            return
        if not by_topic:
            yield self._block(self._found)
            return
        topics = self._table.rows.topic
        for topic in np.unique(topics[np.concatenate([one.rows for one in self._found])]):
            yield self._block([one.only(topics[one.rows] == topic) for one in self._found])

    def _block(self, refusals: Sequence[Refusal]) -> tuple[Rows, dict[str, Column], dict[str, Any]]:
        refusals = [refusal for refusal in refusals if len(refusal.rows)]
        at = np.concatenate([refusal.rows for refusal in refusals])
        reasons = sorted({refusal.reason.value for refusal in refusals})
        columns: dict[str, Column] = {
            "partition": self._table.rows.partition[at],
            "replica": np.concatenate([refusal.replica for refusal in refusals]),
            "current": np.concatenate([refusal.current for refusal in refusals]),
            "target": np.concatenate(
                [np.full(len(r.rows), r.target, dtype=np.int8) for r in refusals]
            ),
            "reason": np.concatenate(
                [np.full(len(r.rows), reasons.index(r.reason), dtype=np.int8) for r in refusals]
            ),
        }
        return at, columns, {"reasons": reasons}
