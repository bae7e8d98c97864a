"""What an event, or several about a topic each, change about the partitions of a slot.

Rules mark rows; `Changes.finish` turns the marks into column blocks. A partition is written once
per event however many rules touched it: its leader epoch and its znode version rise by one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Self

import numpy as np
import numpy.typing as npt

from state.blocks import Column
from state.change_columns import CHANGE_COLUMNS
from state.cluster.authority import Authority
from state.cluster.brokers import Brokers
from state.decisions import ELECTIONS, Action, Decision, DecisionKind, Rule
from state.matrix import NONE, Bools, Int32s, Rows, any_in_row, contains, unpad_rows
from state.partitions.assignment import assignment_decision, reassignment_end
from state.partitions.event_blocks import ClusterEventBlocks, EventBlocks, TopicEventBlocks
from state.partitions.legal import PartitionState
from state.partitions.refusals import Refusals
from state.partitions.table import PartitionTable

EPOCH_DURING_DELETE = -2
LEADER_DURING_DELETE = -2
NO_EPOCH = -1

REPLICA_MARKS = ("recipients", "stop", "stop_delete", "started", "returned")
"""Marks of `Changes` on replicas: they are as wide as `replicas`, and move with their broker."""

_CHANGE_COLUMNS = tuple(one.name for one in CHANGE_COLUMNS)
_ELECTS = np.isin(np.arange(len(Rule)), ELECTIONS)
_TELLS_LESS = np.isin(np.arange(len(Rule)), (Rule.REPLICA_LEFT_ISR, Rule.LEADER_EPOCH_BUMPED))
"""Rules, by number, that give a leader, and that do not hide that one was given in the same event.
"""


class Changes:
    """Marks on the rows of one table during one event, or several about different topics.

    write, create, bump (leader epoch), is_new, metadata (UpdateMetadata to every broker): bool[n];
    recipients (LeaderAndIsr), stop, stop_delete (StopReplica), started (online for the first time),
    returned (online again): bool[n, R]; rule: int8[n]. leader_before: int32[n], as the event found
    it. extra_decisions: what the event decides beside the rows.

    A handler ends with `deletion.finish_with_deletions` if its event may let a deletion go on, else
    with `finish`: once, since epochs and versions rise there.
    """

    @classmethod
    def about_cluster(cls, table: PartitionTable, offset: int) -> Self:
        """Return the changes of an event about the cluster."""
        return cls(table, ClusterEventBlocks(table, offset))

    @classmethod
    def about_topics(cls, table: PartitionTable, offsets: Mapping[str, int]) -> Self:
        """Return the changes of events about topics, given by topic name: only rows of these topics
        may be marked.
        """
        return cls(table, TopicEventBlocks(table, offsets))

    def __init__(self, table: PartitionTable, events: EventBlocks) -> None:
        """Start with no marks; rows must not be added to the table afterwards."""
        rows = table.rows
        count, width = rows.replicas.shape
        self.table = table
        self.events = events
        self.refusals = Refusals(table)
        self.write = np.zeros(count, dtype=bool)
        self.create = np.zeros(count, dtype=bool)
        self.bump = np.zeros(count, dtype=bool)
        self.is_new = np.zeros(count, dtype=bool)
        self.metadata = np.zeros(count, dtype=bool)
        self.recipients: Bools = np.zeros((count, width), dtype=bool)
        self.stop: Bools = np.zeros((count, width), dtype=bool)
        self.stop_delete: Bools = np.zeros((count, width), dtype=bool)
        self.started: Bools = np.zeros((count, width), dtype=bool)
        self.returned: Bools = np.zeros((count, width), dtype=bool)
        self.rule = np.zeros(count, dtype=np.int8)
        self.leader_before = rows.leader.copy()
        self.extra_decisions: list[Decision] = []
        self._left: list[tuple[Rows, Int32s, Bools]] = []
        self._completed: list[Rows] = []
        self._longest: Int32s | None = None
        self._asked: list[Rows] = []
        self._finished = False

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

    def raise_leader_epoch(self, at: Rows, recipients: Bools) -> None:
        """Raise the leader epoch of rows without an election, and tell replicas bool[k, R]."""
        self.recipients[at] |= recipients
        self.mark_written(at, Rule.LEADER_EPOCH_BUMPED)

    def keep_stops(self, at: Rows, dropped: Bools) -> None:
        """Remember what is to be stopped of replicas bool[k, R] that leave their lists now."""
        row, column = np.nonzero(dropped & self.stop[at])
        row = at[row]
        if len(row):
            brokers = self.table.rows.replicas[row, column]
            self._left.append((row, brokers, self.stop_delete[row, column]))

    def stop_unlisted(self, at: Rows) -> None:
        """Have members of the rows' ISRs that the rows do not list delete what they have."""
        isr = self.table.rows.isr[at]
        row, column = np.nonzero((isr != NONE) & ~contains(self.table.rows.replicas[at], isr))
        if len(row):
            delete = np.ones(len(row), dtype=bool)
            self._left.append((at[row], isr[row, column], delete))

    def complete(self, at: Rows) -> None:
        """Note that reassignments of rows have ended: their lists are what they ended with."""
        if len(at):
            self._completed.append(at)

    def note_longest(self, at: Rows, replicas: Int32s) -> None:
        """Note whose log ends last of the replicas of rows, -1 where that is not known."""
        if self._longest is None:
            self._longest = np.full(len(self.write), NONE, dtype=np.int32)
        self._longest[at] = replicas

    def longest(self, at: Rows) -> Int32s:
        """Return int32[k]: what was noted of rows, -1 where nothing was."""
        if self._longest is None:
            return np.full(len(at), NONE, dtype=np.int32)
        return self._longest[at]

    def ask_log_ends(self, at: Rows) -> None:
        """Have replicas of rows asked where their logs end, if nobody leads them by the end."""
        if len(at):
            self._asked.append(at)

    def rewrite_assignment(self, authority: Authority, topic: int) -> None:
        """Have a topic's znode written as the table has it now; topic is its index."""
        kind = DecisionKind.REWRITE_ASSIGNMENT
        self.extra_decisions.append(self._assignment(authority, topic, kind))

    def finish(self, authority: Authority, brokers: Brokers) -> list[Decision]:
        """Apply the epoch and version steps of the marked rows and return each event's blocks."""
        assert not self._finished, "epochs and versions rise once"
        self._finished = True
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
            found += self.events.blocks(kind, changed, columns, extra)
        if self.stop.any() or self._left:
            at, columns = self._stop_columns(deleted)
            found += self.events.blocks(DecisionKind.STOP_REPLICAS, at, columns, {})
        found += self._questions(deleted)
        for at, columns, extra in self.refusals.blocks(by_topic=self.events.topics is not None):
            found += self.events.blocks(DecisionKind.REFUSE_TRANSITION, at, columns, extra)
        return [*self.extra_decisions, *found, *self._completions(authority)]

    def _questions(self, deleted: Bools) -> list[Decision]:
        """Return of which partitions replicas are to be asked where their logs end."""
        if not self._asked:
            return []
        rows = self.table.rows
        at = np.unique(np.concatenate(self._asked))
        at = at[~deleted[at] & (rows.state[at] != PartitionState.ONLINE)]
        if len(at) == 0:
            return []
        columns = {"partition": rows.partition[at]}
        return self.events.blocks(DecisionKind.ASK_LOG_ENDS, at, columns, {})

    def _completions(self, authority: Authority) -> list[Decision]:
        """Return what ends reassignments, topic by topic: the assignment, and the request's end."""
        if not self._completed:
            return []
        at = np.concatenate(self._completed)
        found = []
        for topic in np.unique(self.table.rows.topic[at]).tolist():
            found.append(self._assignment(authority, topic, DecisionKind.COMPLETE_REASSIGNMENT))
            ended = at[self.table.rows.topic[at] == topic]
            found.append(self._end_of_request(authority, topic, ended))
        return found

    def _assignment(self, authority: Authority, topic: int, kind: DecisionKind) -> Decision:
        offset = self.events.offset_of(self.table.topics[topic].name)
        return assignment_decision(self.table, authority, offset, topic, kind)

    def _end_of_request(self, authority: Authority, topic: int, at: Rows) -> Decision:
        rows = self.table.rows
        partitions = {
            partition: ids
            for partition, ids in zip(
                rows.partition[at].tolist(), unpad_rows(rows.replicas[at]), strict=True
            )
        }
        name = self.table.topics[topic].name
        return reassignment_end(authority, self.events.offset_of(name), name, partitions)

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
