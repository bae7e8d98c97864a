"""The partition states of a live cluster, each watched."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from state.payloads.partitions import StateValues
from state.topic_partition import TopicPartition
from streaming.observers.states import StateTuple, state_tuples
from streaming.observers.tree import Dirty, WatchedTree
from streaming.process.counters import Counters
from streaming.shadow.leadership import Leadership, from_state
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
        self._subjects: dict[str, TopicPartition] = {}
        self._cached: dict[TopicPartition, StateTuple | None] = {}
        self._replaced: dict[TopicPartition, StateTuple | None] = {}  # as they were drained before

    def add(self, partitions: Iterable[TopicPartition], new: Iterable[str]) -> None:
        """Follow these partitions and no others; what is not known yet is read when it is dirty.

        new: state znodes of which nothing is known: a topic of that name that is gone had others.
        """
        wanted = set(partitions)
        for path, subject in list(self._subjects.items()):
            if subject not in wanted:
                del self._subjects[path]
                self._cached.pop(subject, None)
        for subject in wanted:
            self._subjects[partition_state_path(*subject)] = subject
        for path in new:
            if path in self._subjects:  # else it is gone again
                self._cached.pop(self._subjects[path], None)

    def look(self, dirty: Dirty) -> None:
        """Read the states that may differ from how they were read last."""
        paths = (
            list(self._subjects)
            if dirty.reread_all
            else sorted(dirty.paths & self._subjects.keys())
        )
        for path, state in zip(paths, self._read(paths), strict=True):
            subject = self._subjects[path]
            if subject not in self._cached or self._cached[subject] != state:
                self._replaced.setdefault(subject, self._cached.get(subject))
                self._cached[subject] = state

    def drain(self) -> dict[TopicPartition, Leadership | None]:
        """Return the states that differ since this was asked last."""
        replaced, self._replaced = self._replaced, {}
        return {subject: from_state(self._cached[subject]) for subject in replaced}

    def before(self, subject: TopicPartition, epoch: int) -> StateTuple | None:
        """Return a state as a controller of that epoch found it: as it was read last, or where that
        is of its writing as it was drained last.
        """
        state = self._cached.get(subject)
        return self._replaced.get(subject, state) if written_under(state, epoch) else state

    def read(self, partitions: Sequence[TopicPartition]) -> dict[TopicPartition, StateTuple | None]:
        """Read states, leaving a watch, without following them yet."""
        paths = [partition_state_path(*subject) for subject in partitions]
        return dict(zip(partitions, self._read(paths), strict=True))

    def follow(self, states: Mapping[TopicPartition, StateTuple | None]) -> None:
        """Go on from states that were just read, and follow these partitions and no others."""
        self._subjects = {partition_state_path(*subject): subject for subject in states}
        self._cached = dict(states)
        self._replaced.clear()

    def _read(self, paths: Sequence[str]) -> list[StateTuple | None]:
        znodes = self._tree.get_many(paths, await_missing=True)
        states = parse_partition_states(
            [None if znode is None else znode.data for znode in znodes],
            np.array([-1 if znode is None else znode.version for znode in znodes], dtype=np.int32),
        )
        for row, error in states.errors.items():
            logger.warning("%s is passed over: %s", paths[row], error)
            self._counters["broken_partition_states"] += 1
        return state_tuples(states)


def written_under(state: StateTuple | None, epoch: int) -> bool:
    """Return whether a controller of that epoch, or of a later one, wrote a state."""
    return state is not None and StateValues.of_json(state).controller_epoch >= epoch
