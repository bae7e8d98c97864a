"""Takes what brokers leave as notification znodes: ISR changes and failed log directories."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from state.event_kinds import EventKind
from state.payloads.partitions import StateCause
from streaming.log.api import NewRecord
from streaming.log.events import EventAppender, event
from streaming.observers.notices import read_notices
from streaming.observers.states import read_states
from streaming.observers.tree import Dirty, WatchedTree
from streaming.process.counters import Counters
from streaming.zk.errors import ZooKeeperError
from streaming.zk.fenced import FencedWriter
from streaming.zk.ops import Delete, WriteOp
from streaming.zk.outcomes import OutcomeKind
from streaming.zk.znodes import (
    ISR_CHANGE_PATH,
    LOG_DIR_EVENT_PATH,
    parse_isr_change,
    parse_log_dir_event,
)

T = TypeVar("T")


class Fenced(ZooKeeperError):
    """Another controller has taken over: a write of ours was refused by its epoch."""


def write_fenced(writer: FencedWriter, ops: Sequence[WriteOp]) -> None:
    """Make writes of which none is needed any more when its znode is not as expected.

    Raises Fenced when somebody else is the controller, SessionLost.
    """
    if any(outcome.kind is OutcomeKind.FENCED for outcome in writer.write(ops)):
        raise Fenced("another controller has taken over")


class NotificationsObserver:
    """Appends what notifications say, durably, and only then deletes them.

    A notification that cannot be read is logged, counted and deleted like the others, as Kafka
    does. Dying between append and delete appends the same facts again: they are states, not deltas.
    """

    def __init__(
        self, tree: WatchedTree, writer: FencedWriter, log: EventAppender, counters: Counters
    ) -> None:
        """Read with the tree, delete with the writer."""
        self._tree = tree
        self._writer = writer
        self._log = log
        self._counters = counters

    def discard(self) -> None:
        """Delete all that is there, unread: right before everything is read in bulk anyway."""
        for path in (ISR_CHANGE_PATH, LOG_DIR_EVENT_PATH):
            self._delete([f"{path}/{name}" for name in self._tree.children(path)])

    def look(self, dirty: Dirty) -> None:
        """Take what may be new; raises Fenced when somebody else is the controller."""
        if ISR_CHANGE_PATH in dirty:
            self._look_at_isr_changes()
        if LOG_DIR_EVENT_PATH in dirty:
            self._look_at_log_dir_events()

    def _look_at_isr_changes(self) -> None:
        """Append the present states of all partitions that leaders say they changed."""
        paths, changes = self._read(ISR_CHANGE_PATH, parse_isr_change)
        partitions = sorted({partition for change in changes for partition in change})
        states = read_states(self._tree.session, partitions, self._counters)
        by_topic: dict[str, tuple[list[int], list[object]]] = {}
        for (topic, partition), state in zip(partitions, states, strict=True):
            numbers, tuples = by_topic.setdefault(topic, ([], []))
            numbers.append(partition)
            tuples.append(state)
        self._finish(
            paths,
            [
                event(
                    EventKind.PARTITION_STATES_OBSERVED,
                    {
                        "topic": topic,
                        "cause": StateCause.NOTIFICATION,
                        "partitions": numbers,
                        "states": tuples,
                    },
                    topic,
                )
                for topic, (numbers, tuples) in by_topic.items()
            ],
        )

    def _look_at_log_dir_events(self) -> None:
        """Append which brokers say that they lost a log directory."""
        paths, brokers = self._read(LOG_DIR_EVENT_PATH, parse_log_dir_event)
        body = {"broker_ids": sorted(set(brokers))}
        self._finish(paths, [event(EventKind.LOG_DIR_FAILURE_NOTIFIED, body)] if brokers else [])

    def _read(self, path: str, parse: Callable[[bytes], T]) -> tuple[list[str], list[T]]:
        paths = [f"{path}/{name}" for name in self._tree.children(path)]
        return paths, read_notices(self._tree.session, paths, parse, self._counters)

    def _finish(self, paths: Sequence[str], records: Sequence[NewRecord]) -> None:
        if records:
            self._log.append(records)
        self._delete(paths)

    def _delete(self, paths: Sequence[str]) -> None:
        if paths:
            write_fenced(self._writer, [Delete(path) for path in paths])
