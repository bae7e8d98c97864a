"""The partition states of a live cluster, each watched."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence

import numpy as np

from streaming.observers.states import StateTuple, state_tuples
from streaming.observers.tree import Dirty, WatchedTree
from streaming.process.counters import Counters
from streaming.shadow.leadership import Leadership, Partition, from_state
from streaming.zk.types import ZNode
from streaming.zk.znodes import parse_partition_states, partition_state_path

logger = logging.getLogger(__name__)


class StatesReader:
    """Reads states when their watch fired; one that is missing is watched too.

    Two changes in quick succession may be seen as one.
    """

    def __init__(self, tree: WatchedTree, counters: Counters) -> None:
        """Start with no partition."""
        self._tree = tree
        self._counters = counters
        self._subjects: dict[str, Partition] = {}
        self._cached: dict[Partition, StateTuple | None] = {}

    def cached(self) -> dict[Partition, StateTuple | None]:
        """Return the states as they were read last."""
        return dict(self._cached)

    def add(self, partitions: Iterable[Partition]) -> None:
        """Follow these partitions and no others; what is not known yet is read when it is dirty."""
        wanted = set(partitions)
        for path, subject in list(self._subjects.items()):
            if subject not in wanted:
                del self._subjects[path]
                self._cached.pop(subject, None)
        for subject in wanted:
            self._subjects[partition_state_path(*subject)] = subject

    def replace(self, partitions: Iterable[Partition]) -> None:
        """Follow these partitions and no others, and read them all."""
        self.add(partitions)
        paths = list(self._subjects)
        self._cached = dict(zip(self._subjects.values(), self._read(paths), strict=True))

    def look(self, dirty: Dirty) -> dict[Partition, Leadership | None]:
        """Return the states that differ from how they were read last."""
        paths = (
            list(self._subjects)
            if dirty.reread_all
            else sorted(dirty.paths & self._subjects.keys())
        )
        found: dict[Partition, Leadership | None] = {}
        for path, state in zip(paths, self._read(paths), strict=True):
            subject = self._subjects[path]
            if subject not in self._cached or self._cached[subject] != state:
                self._cached[subject] = state
                found[subject] = from_state(state)
        return found

    def _read(self, paths: Sequence[str]) -> list[StateTuple | None]:
        znodes: list[ZNode | None] = [
            self._tree.get(path) if znode is None else znode
            for path, znode in zip(paths, self._tree.get_many(paths), strict=True)
        ]
        states = parse_partition_states(
            [None if znode is None else znode.data for znode in znodes],
            np.array([-1 if znode is None else znode.version for znode in znodes], dtype=np.int32),
        )
        for row, error in states.errors.items():
            logger.warning("%s is passed over: %s", paths[row], error)
            self._counters["broken_partition_states"] += 1
        return state_tuples(states)
