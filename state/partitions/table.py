"""The partitions of one slot as numpy columns.

One row a partition; rows of a topic are adjacent only as they were added. `isr` keeps ZooKeeper's
order and may be wider than `replicas`. A row without a state znode (never had a leader) has
zk_version -1 and leader -1.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from itertools import takewhile

import numpy as np
import numpy.typing as npt

from state.matrix import NONE, Bools, Int32s, Rows, any_in_row, stack_padded, widen
from state.topic_ids import NO_TOPIC_ID, topic_id_to_text

NO_VERSION = -1
NO_LEADER = -1
DELETED_FOR_EVENTS = 1_000_000
"""For how many events after its deletion what was read of a topic before may still come."""


@dataclass(slots=True)
class Topic:
    """What is known of a topic apart from its partitions.

    topic_id: 16 bytes, zero when it has none. unclean, min_insync: its overrides of
    unclean.leader.election.enable and min.insync.replicas. zk_version: version of
    `/brokers/topics/<name>`. seen: it was observed; else we create it and nobody has seen it yet.
    end_rejected: ZooKeeper rejected the end of a reassignment; what leaders and brokers say does
    not let it be tried again.
    """

    name: str
    topic_id: bytes
    unclean: bool | None
    zk_version: int
    min_insync: int | None = None
    seen: bool = True
    end_rejected: bool = False

    def is_meant(self, topic_id: str | None) -> bool:
        """Return whether an event that gives the topic's name and this id is about it. Who appends
        one has observed what was there: without an id it is not about a topic nobody has seen yet.
        """
        return self.seen if topic_id is None else topic_id == topic_id_to_text(self.topic_id)


@dataclass(slots=True)
class Deletion:
    """A topic that is queued for deletion.

    started: its partitions are gone for clients, its replicas are being deleted. halted: nothing
    more is started until a broker with one of its replicas comes back (Kafka's ineligible).
    """

    started: bool = False
    halted: bool = False


@dataclass(frozen=True, slots=True)
class Deleted:
    """A topic that was deleted: its id, and the offset of the event that ended its deletion."""

    topic_id: bytes
    offset: int

    def counts(self, offset: int) -> bool:
        """Return whether an event with this offset may still tell what was read before."""
        return offset - self.offset <= DELETED_FOR_EVENTS


def _int32s() -> Int32s:
    return np.empty(0, dtype=np.int32)


def _matrix() -> Int32s:
    return np.empty((0, 0), dtype=np.int32)


def _masks() -> Bools:
    return np.empty((0, 0), dtype=bool)


def _int8s() -> npt.NDArray[np.int8]:
    return np.empty(0, dtype=np.int8)


@dataclass(slots=True)
class Columns:
    """Columns of n partitions; R is the widest replica list, W the widest ISR.

    topic int32[n] (index into the table's topics), partition int32[n], replicas int32[n, R], isr
    int32[n, W], leader, leader_epoch, zk_version, controller_epoch int32[n] (controller_epoch is
    the one its state was last written under), recovery int8[n], state int8[n] (PartitionState),
    replica_state int8[n, R] (ReplicaState), offline_dir, adding, removing bool[n, R].
    """

    topic: Int32s = field(default_factory=_int32s)
    partition: Int32s = field(default_factory=_int32s)
    replicas: Int32s = field(default_factory=_matrix)
    isr: Int32s = field(default_factory=_matrix)
    leader: Int32s = field(default_factory=_int32s)
    leader_epoch: Int32s = field(default_factory=_int32s)
    zk_version: Int32s = field(default_factory=_int32s)
    controller_epoch: Int32s = field(default_factory=_int32s)
    recovery: npt.NDArray[np.int8] = field(default_factory=_int8s)
    state: npt.NDArray[np.int8] = field(default_factory=_int8s)
    replica_state: npt.NDArray[np.int8] = field(
        default_factory=lambda: np.empty((0, 0), dtype=np.int8)
    )
    offline_dir: Bools = field(default_factory=_masks)
    adding: Bools = field(default_factory=_masks)
    removing: Bools = field(default_factory=_masks)

    def __len__(self) -> int:
        """Return n."""
        return len(self.partition)

    @property
    def has_state(self) -> Bools:
        """bool[n]: the partition has a state znode, so it has had a leader at some time."""
        stored: Bools = self.zk_version != NO_VERSION
        return stored

    def targets(self, at: Rows) -> Bools:
        """Return bool[k, R]: the row ends with the replica: it is listed and does not go."""
        ends_with: Bools = (self.replicas[at] != NONE) & ~self.removing[at]
        return ends_with

    def in_motion(self, at: Rows) -> Bools:
        """Return bool[k]: replicas of the row come or go."""
        return any_in_row(self.adding[at] | self.removing[at])


COLUMN_NAMES = tuple(column.name for column in fields(Columns))
PER_REPLICA = ("replica_state", "offline_dir", "adding", "removing")
"""Columns that say something of each replica, 0 where there is none: as wide as `replicas`."""
_FILL = {"replicas": NONE, "isr": NONE, **dict.fromkeys(PER_REPLICA, 0)}
"""Columns that are matrices, and what pads them."""


def stack(parts: list[Columns]) -> Columns:
    """Return the rows of all parts, in order, matrices padded to the widest."""
    stacked = Columns()
    for name in COLUMN_NAMES:
        arrays = [getattr(part, name) for part in parts]
        stacks = stack_padded(arrays, _FILL[name]) if name in _FILL else np.concatenate(arrays)
        setattr(stacked, name, stacks)
    return stacked


class PartitionTable:
    """All partitions of one slot, with the look-ups that rules ask for."""

    __slots__ = ("_by_name", "_pending", "_rows", "awaited", "deleted", "deletions", "topics")

    def __init__(
        self,
        topics: list[Topic] | None = None,
        rows: Columns | None = None,
        deletions: dict[str, Deletion] | None = None,
        deleted: dict[str, Deleted] | None = None,
        awaited: Iterable[str] = (),
    ) -> None:
        """Take the topics, their rows (rows.topic are indexes into topics) and, by name, the topics
        queued for deletion, those that were deleted and are not known to be gone, oldest first, and
        those that are forgotten until they have been read again.
        """
        self.topics = topics if topics is not None else []
        self.deletions = deletions if deletions is not None else {}
        self.deleted = deleted if deleted is not None else {}
        self.awaited = set(awaited)
        self._rows = rows if rows is not None else Columns()
        self._pending: list[Columns] = []
        self._by_name = {topic.name: index for index, topic in enumerate(self.topics)}

    @property
    def rows(self) -> Columns:
        """All rows; the arrays may be changed in place, never replaced by others of another
        length.
        """
        if self._pending:
            self._rows = stack([self._rows, *self._pending])
            self._pending = []
        return self._rows

    def topic_index(self, name: str) -> int | None:
        """Return the index of a topic, None when the slot does not know it."""
        return self._by_name.get(name)

    def topic(self, name: str) -> Topic | None:
        """Return a topic, None when the slot does not know it."""
        index = self._by_name.get(name)
        return None if index is None else self.topics[index]

    def rows_of(self, name: str) -> Rows:
        """Return the row numbers of a topic's partitions, ascending by partition; empty when it is
        unknown.
        """
        index = self._by_name.get(name)
        if index is None:
            return np.empty(0, dtype=np.intp)
        rows = np.flatnonzero(self.rows.topic == index)
        return rows[np.argsort(self.rows.partition[rows], kind="stable")]

    def find(self, name: str, partitions: Int32s) -> Rows:
        """Return the row number of each partition of a topic, -1 where the slot has none."""
        known = self.rows_of(name)
        if len(known) == 0:
            return np.full(len(partitions), -1, dtype=np.intp)
        numbers = self.rows.partition[known]
        at = np.minimum(np.searchsorted(numbers, partitions), len(known) - 1)
        return np.where(numbers[at] == partitions, known[at], -1)

    def find_all(self, by_topic: Mapping[str, Sequence[int]]) -> Rows:
        """Return the row numbers of all partitions by topic, in order, -1 where the slot has
        none.
        """
        found = [
            self.find(name, np.array(partitions, dtype=np.int32))
            for name, partitions in by_topic.items()
        ]
        return np.concatenate([np.empty(0, dtype=np.intp), *found])

    def is_of(self, names: Iterable[str]) -> Bools:
        """Return bool[n]: the row is of one of these topics."""
        indexes = [index for name in names if (index := self._by_name.get(name)) is not None]
        found: Bools = np.isin(self.rows.topic, np.array(indexes, dtype=np.int32))
        return found

    def spread(self, at: Rows, mask: Bools) -> Bools:
        """Return bool[n, R]: mask bool[k, R] on rows `at`, False elsewhere."""
        found = np.zeros(self.rows.replicas.shape, dtype=bool)
        found[at] = mask
        return found

    def deletions_held_by_reassignment(self) -> set[str]:
        """Return which of the topics queued for deletion are being reassigned."""
        queued = np.flatnonzero(self.is_of(self.deletions))
        moving = queued[self.rows.in_motion(queued)]
        return {self.topics[topic].name for topic in np.unique(self.rows.topic[moving]).tolist()}

    def in_deletion(self) -> Bools:
        """Return bool[n]: the row's topic is queued for deletion and nothing else may happen to it.

        One whose deletion waits for a reassignment to end lives on until then.
        """
        if not self.deletions:
            return np.zeros(len(self.rows), dtype=bool)
        held = self.deletions_held_by_reassignment()
        return self.is_of(
            name
            for name, deletion in self.deletions.items()
            if deletion.started or name not in held
        )

    def add_topic(self, topic: Topic) -> int:
        """Add a topic without partitions and return its index; the name must be new to the slot."""
        assert topic.name not in self._by_name, f"topic {topic.name!r} is there already"
        self.topics.append(topic)
        self._by_name[topic.name] = len(self.topics) - 1
        return len(self.topics) - 1

    def add_rows(self, columns: Columns) -> None:
        """Append rows; they are stacked when next looked at, so that loading many topics stays
        linear.
        """
        self._pending.append(columns)

    def remove_topics(self, names: Iterable[str]) -> None:
        """Forget topics, their rows and that they were to be deleted."""
        gone = np.zeros(len(self.topics), dtype=bool)
        for name in names:
            self.deletions.pop(name, None)
            index = self._by_name.get(name)
            if index is not None:
                gone[index] = True
        if not gone.any():
            return
        rows = self.rows
        kept = ~gone[rows.topic]
        for column in COLUMN_NAMES:
            setattr(rows, column, getattr(rows, column)[kept])
        rows.topic = (np.cumsum(~gone) - 1).astype(np.int32)[rows.topic]
        self.topics = [self.topics[index] for index in np.flatnonzero(~gone).tolist()]
        self._by_name = {topic.name: at for at, topic in enumerate(self.topics)}

    def note_deleted(self, topic: Topic, offset: int) -> None:
        """Remember a topic that the event with this offset deleted, and forget those that do not
        count any more: nobody says that a topic is gone which was never observed.
        """
        if topic.topic_id != NO_TOPIC_ID:
            self.deleted.pop(topic.name, None)
            self.deleted[topic.name] = Deleted(topic.topic_id, offset)
        past = takewhile(lambda name: not self.deleted[name].counts(offset), self.deleted)
        for name in list(past):
            del self.deleted[name]

    def was_deleted(self, name: str, topic_id: bytes, offset: int) -> bool:
        """Return whether the event with this offset tells what was read of a topic before it was
        deleted: it says that topic's id, and the topic is not known to be gone.

        How long that is asked depends on the log alone, not on what else shares the slot.
        """
        deleted = self.deleted.get(name)
        return deleted is not None and deleted.topic_id == topic_id and deleted.counts(offset)

    def replace_isr(self, at: Rows, isr: Int32s) -> None:
        """Write ISR lists int32[len(at), V] into rows, widening the column for a longer list."""
        rows = self.rows
        rows.isr = widen(rows.isr, isr.shape[1])
        rows.isr[at] = widen(isr, rows.isr.shape[1])
