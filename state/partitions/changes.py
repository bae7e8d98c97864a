"""What an event, or several about a topic each, change about the partitions of a slot.

Rules mark rows; `Changes.decisions` turns the marks into column blocks. A partition is written once
per event however many rules touched it: its leader epoch and its znode version rise by one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from state.blocks import Column, encode_block
from state.change_columns import CHANGE_COLUMNS
from state.cluster.authority import Authority
from state.cluster.brokers import Brokers
from state.decisions import ELECTIONS, Action, Decision, DecisionKind, Rule
from state.matrix import NONE, Bools, Int32s, Rows, any_in_row, unpad_rows
from state.partitions.assignment import assignment_decision, reassignment_end
from state.partitions.table import PartitionTable, Topic
from state.topic_ids import topic_id_to_text

EPOCH_DURING_DELETE = -2
NO_EPOCH = -1

_CHANGE_COLUMNS = tuple(one.name for one in CHANGE_COLUMNS)
_ELECTS = np.isin(np.arange(len(Rule)), ELECTIONS)
_TELLS_LESS = np.isin(np.arange(len(Rule)), (Rule.REPLICA_LEFT_ISR, Rule.LEADER_EPOCH_BUMPED))
"""Rules, by number, that give a leader, and that do not hide that one was given in the same event.
"""


@dataclass(frozen=True, slots=True)
class Refusal:
    """Moves refused for one reason: rows int[k], the replica ids int32[k] (-1: the partition
    itself).
    """

    rows: Rows
    replica: Int32s
    current: npt.NDArray[np.int8]
    target: int
    reason: str

    def only(self, mask: Bools) -> Refusal:
        """Return the refusal of some of the rows."""
        return Refusal(
            self.rows[mask], self.replica[mask], self.current[mask], self.target, self.reason
        )


class Changes:
    """Marks on the rows of one table during one event, or several about different topics.

    write, create, bump (leader epoch), is_new, metadata (UpdateMetadata to every broker): bool[n];
    recipients (LeaderAndIsr), stop, stop_delete (StopReplica): bool[n, R]; rule: int8[n].
    """

    def __init__(self, table: PartitionTable, offset: int | Mapping[str, int]) -> None:
        """Start with no marks; rows must not be added to the table afterwards.

        offset: that of an event about the cluster; else, by topic name, that of the event about the
        topic: only rows of these topics may be marked.
        """
        rows = table.rows
        count, width = rows.replicas.shape
        self.table = table
        self._offset = offset
        self.write = np.zeros(count, dtype=bool)
        self.create = np.zeros(count, dtype=bool)
        self.bump = np.zeros(count, dtype=bool)
        self.is_new = np.zeros(count, dtype=bool)
        self.metadata = np.zeros(count, dtype=bool)
        self.recipients = np.zeros((count, width), dtype=bool)
        self.stop = np.zeros((count, width), dtype=bool)
        self.stop_delete = np.zeros((count, width), dtype=bool)
        self.rule = np.zeros(count, dtype=np.int8)
        self.leader_before = rows.leader.copy()
        self.refusals: list[Refusal] = []
        self.also: list[Decision] = []
        self._left: list[tuple[Rows, Int32s, Bools]] = []
        self._completed: list[Rows] = []

    @property
    def topics(self) -> Mapping[str, int] | None:
        """The topics that the events are about, each with its event's offset; None: the cluster."""
        return None if isinstance(self._offset, int) else self._offset

    def offset_of(self, topic: str) -> int:
        """Return the offset of the event that changes a topic."""
        return self._offset if isinstance(self._offset, int) else self._offset[topic]

    def mark_written(
        self, at: Rows, rule: Rule | npt.NDArray[np.int8], *, bump: bool = True
    ) -> None:
        """Mark rows whose state changes: it is written, told to every broker, and filed under the
        rule, or still under the one that elected its leader before.
        """
        self.write[at] = True
        self.metadata[at] = True
        before = self.rule[at]
        self.rule[at] = np.where(_ELECTS[before] & _TELLS_LESS[rule], before, rule)
        if bump:
            self.bump[at] = True

    def refuse_partitions(self, at: Rows, target: int, reason: str) -> None:
        """Report partition moves that are not made."""
        if len(at):
            replica = np.full(len(at), NONE, dtype=np.int32)
            self.refusals.append(Refusal(at, replica, self.table.rows.state[at], target, reason))

    def refuse_replicas(self, at: Rows, mask: Bools, target: int, reason: str) -> None:
        """Report replica moves that are not made: mask bool[k, R] of rows `at`."""
        if mask.any():
            rows = self.table.rows
            row, column = np.nonzero(mask)
            at = at[row]
            current = rows.replica_state[at, column]
            self.refusals.append(Refusal(at, rows.replicas[at, column], current, target, reason))

    def keep_stops(self, at: Rows, leaving: Bools) -> None:
        """Remember what is to be stopped of replicas bool[k, R] that leave their lists now."""
        row, column = np.nonzero(leaving & self.stop[at])
        row = at[row]
        if len(row):
            brokers = self.table.rows.replicas[row, column]
            self._left.append((row, brokers, self.stop_delete[row, column]))

    def complete(self, at: Rows) -> None:
        """Note that reassignments of rows have ended: their lists are what they ended with."""
        if len(at):
            self._completed.append(at)

    def decisions(self, authority: Authority, brokers: Brokers) -> list[Decision]:
        """Apply the epoch and version steps of the marked rows and return each event's blocks."""
        self._step_epochs(authority)
        found = []
        deleted = self.table.in_deletion()
        self.recipients[deleted] = False
        changed = np.flatnonzero(self.write | self.metadata | any_in_row(self.recipients))
        if len(changed):
            columns = self._change_columns(changed, deleted, brokers)
            extra = {
                "controller_epoch": authority.epoch,
                **authority.fence(),
            }
            kind = DecisionKind.CHANGE_PARTITIONS
            found += self._blocks(kind, changed, columns, extra)
        if self.stop.any() or self._left:
            at, columns = self._stop_columns(deleted)
            found += self._blocks(DecisionKind.STOP_REPLICAS, at, columns, {})
        for refused in self._refusals_of_events():
            at, columns, extra = self._refusal_columns(refused)
            found += self._blocks(DecisionKind.REFUSE_TRANSITION, at, columns, extra)
        return [*self.also, *found, *self._completions(authority)]

    def _blocks(
        self, kind: DecisionKind, at: Rows, columns: dict[str, Column], extra: dict[str, Any]
    ) -> list[Decision]:
        """Return columns about rows `at` as a block, or as one for each topic with its offset."""
        if isinstance(self._offset, int):
            topic, named = topic_column(self.table, at)
            block = encode_block({"topic": topic} | columns, named | extra)
            return [Decision(self._offset, kind, block)]
        topics = self.table.rows.topic[at]
        order = np.argsort(topics, kind="stable")
        used, starts = np.unique(topics[order], return_index=True)
        found = []
        for index, rows in zip(used.tolist(), np.split(order, starts[1:]), strict=True):
            topic = self.table.topics[index]
            of_topic = {"topic": np.zeros(len(rows), dtype=np.int32)}
            of_topic |= {name: column[rows] for name, column in columns.items()}
            block = encode_block(of_topic, _named([topic]) | extra)
            found.append(Decision(self._offset[topic.name], kind, block))
        return found

    def _completions(self, authority: Authority) -> list[Decision]:
        """Return what ends reassignments, topic by topic: the assignment, and the request's end."""
        if not self._completed:
            return []
        at = np.concatenate(self._completed)
        found = []
        for topic in np.unique(self.table.rows.topic[at]).tolist():
            offset = self.offset_of(self.table.topics[topic].name)
            kind = DecisionKind.COMPLETE_REASSIGNMENT
            found.append(assignment_decision(self.table, authority, offset, topic, kind))
            ended = at[self.table.rows.topic[at] == topic]
            found.append(self._end_of_request(authority, offset, topic, ended))
        return found

    def _end_of_request(self, authority: Authority, offset: int, topic: int, at: Rows) -> Decision:
        rows = self.table.rows
        partitions = {
            partition: ids
            for partition, ids in zip(
                rows.partition[at].tolist(), unpad_rows(rows.replicas[at]), strict=True
            )
        }
        return reassignment_end(authority, offset, self.table.topics[topic].name, partitions)

    def _step_epochs(self, authority: Authority) -> None:
        rows = self.table.rows
        rows.leader_epoch[self.bump & ~self.create] += 1
        rows.zk_version[self.write] += 1
        rows.controller_epoch[self.write] = authority.epoch

    def _actions(self, at: Rows, deleted: Bools) -> npt.NDArray[np.uint8]:
        return (
            self.write[at] * np.uint8(Action.WRITE)
            | self.create[at] * np.uint8(Action.CREATE)
            | any_in_row(self.recipients[at]) * np.uint8(Action.LEADER_AND_ISR)
            | self.metadata[at] * np.uint8(Action.UPDATE_METADATA)
            | self.is_new[at] * np.uint8(Action.IS_NEW)
            | (self.metadata & deleted)[at] * np.uint8(Action.DELETED)
        ).astype(np.uint8)

    def _change_columns(self, at: Rows, deleted: Bools, brokers: Brokers) -> dict[str, Column]:
        rows = self.table.rows
        replicas = rows.replicas[at]
        columns = {
            "partition": rows.partition[at],
            "leader": rows.leader[at],
            "leader_epoch": rows.leader_epoch[at],
            "partition_epoch": rows.zk_version[at],
            "controller_epoch": rows.controller_epoch[at],
            "leader_before": self.leader_before[at],
            "recovery": rows.recovery[at],
            "actions": self._actions(at, deleted),
            "rule": self.rule[at],
            "isr": rows.isr[at],
            "replicas": replicas,
            "offline": (replicas != NONE) & (~brokers.live(replicas) | rows.offline_dir[at]),
            "adding": rows.adding[at],
            "removing": rows.removing[at],
            "recipients": self.recipients[at],
        }
        assert ("topic", *columns) == _CHANGE_COLUMNS
        return columns

    def _stop_columns(self, deleted: Bools) -> tuple[Rows, dict[str, Column]]:
        rows = self.table.rows
        listed, column = np.nonzero(self.stop)
        at = np.concatenate([listed, *(row for row, _, _ in self._left)])
        delete = np.concatenate(
            [self.stop_delete[listed, column], *(delete for _, _, delete in self._left)]
        )
        brokers = [rows.replicas[listed, column], *(broker for _, broker, _ in self._left)]
        of_topic = np.arange(len(at)) < len(listed)
        epoch = np.where(rows.has_state[at], rows.leader_epoch[at], np.int32(NO_EPOCH))
        return at, {
            "partition": rows.partition[at],
            "broker": np.concatenate(brokers),
            "leader_epoch": np.where(
                (delete & of_topic) | deleted[at], np.int32(EPOCH_DURING_DELETE), epoch
            ).astype(np.int32),
            "delete": delete,
        }

    def _refusals_of_events(self) -> list[list[Refusal]]:
        """Return the refusals of each event that has some; a block's header names its reasons."""
        if self.topics is None or not self.refusals:
            return [self.refusals] if self.refusals else []
        topics = self.table.rows.topic
        return [
            [one.only(topics[one.rows] == topic) for one in self.refusals]
            for topic in np.unique(topics[np.concatenate([one.rows for one in self.refusals])])
        ]

    def _refusal_columns(
        self, refusals: Sequence[Refusal]
    ) -> tuple[Rows, dict[str, Column], dict[str, Any]]:
        refusals = [refusal for refusal in refusals if len(refusal.rows)]
        at = np.concatenate([refusal.rows for refusal in refusals])
        reasons = sorted({refusal.reason for refusal in refusals})
        columns: dict[str, Column] = {
            "partition": self.table.rows.partition[at],
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


def topic_column(table: PartitionTable, at: Rows) -> tuple[Int32s, dict[str, Any]]:
    """Return (int32[k] index into the names, {"topics": names, "topic_ids": ids}) for some rows of
    a table.
    """
    used, index = np.unique(table.rows.topic[at], return_inverse=True)
    return index.astype(np.int32), _named([table.topics[topic] for topic in used.tolist()])


def _named(topics: Sequence[Topic]) -> dict[str, Any]:
    return {
        "topics": [topic.name for topic in topics],
        "topic_ids": [topic_id_to_text(topic.topic_id) for topic in topics],
    }
