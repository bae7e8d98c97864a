"""What happens while a look reads states, beside a real ZooKeeper."""

from __future__ import annotations

import threading

import pytest

from state.event_kinds import EventKind
from streaming.observers.deletions import DeletionsObserver
from streaming.observers.tree import Dirty
from streaming.shadow.comparison import Comparison
from streaming.shadow.shadow import Shadow
from streaming.shadow.states_reader import StatesReader
from streaming.shadow.verdicts import Status
from streaming.zk.client import ZkSession
from streaming.zk.reader import ZkReader
from streaming.zk.types import WatchEvent
from streaming.zk.znodes import DELETE_TOPICS_PATH, LOG_DIR_EVENT_PATH, partition_state_path
from tests.integration.shadow.support import (
    create_topic,
    delete_topic,
    look_until,
    reader_of,
    register,
    state,
    wait_until_dirty,
)
from tests.unit.shadow.support import GRACE_MS, WINDOW_MS, MemoryEngine, Notes

NOTICE = b'{"version":1,"broker":1,"event":1}'


class Beside:
    """A shadow that has read the cluster, with one more topic in it."""

    def __init__(self, live: ZkSession, seen: ZkReader) -> None:
        create_topic(live, "healthy", [1, 2], state([1, 2]))
        self.reader, self.engine, self.notes = reader_of(seen), MemoryEngine(), Notes()
        self._shadow = Shadow(self.engine, Comparison(WINDOW_MS, GRACE_MS), self.notes)
        self._look = look_until(self.reader, lambda look: look.load)
        self._shadow.observe(self._look)
        self.look_until_quiet()

    def look_until_quiet(self) -> None:
        while self.reader.dirty:
            self._look = self.reader.look()
            self._shadow.observe(self._look)

    def end_windows(self) -> None:
        end_ms = self._look.over_ms + WINDOW_MS
        self._shadow.settle(end_ms, end_ms)


def test_a_result_does_not_overtake_what_the_server_told_before_it(
    live: ZkSession, seen: ZkReader
) -> None:
    """Watches are called by a thread of their own, which is busy."""
    reader = reader_of(seen)
    look_until(reader, lambda look: look.load)
    while reader.dirty:
        reader.look()
    held, goes_on = threading.Event(), threading.Event()

    def busy(_: WatchEvent) -> None:
        held.set()
        assert goes_on.wait(60)

    seen.get("/held", busy)
    live.create("/held", b"")
    assert held.wait(60)
    live.create(f"{DELETE_TOPICS_PATH}/t", b"")
    live.set(partition_state_path("t", 0), state([2], leader=2, leader_epoch=1))
    reader.dirty.mark(Dirty(frozenset([partition_state_path("t", 0)])))
    threading.Timer(0.5, goes_on.set).start()
    look = reader.look()
    assert [one.kind for one in look.inputs] == [EventKind.TOPIC_DELETION_REQUESTED]
    assert list(look.states) == [("t", 0)]


def test_a_deletion_that_ends_while_its_mark_is_looked_for_is_seen(
    live: ZkSession, seen: ZkReader, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A state on the way there is read, then the topic, and then neither topic nor mark are there:
    without its cause the state would be taken for a shutdown of broker 1.
    """
    register(live, 1, 2)
    beside = Beside(live, seen)
    really = DeletionsObserver.look

    def late(deletions: DeletionsObserver, *given: object) -> None:
        monkeypatch.undo()
        delete_topic(live, "t")
        live.delete(f"{DELETE_TOPICS_PATH}/t")
        really(deletions, *given)

    monkeypatch.setattr(DeletionsObserver, "look", late)
    live.create(f"{DELETE_TOPICS_PATH}/t", b"")
    live.set(partition_state_path("t", 0), state([2], leader=2, leader_epoch=1))
    wait_until_dirty(beside.reader, partition_state_path("t", 0), DELETE_TOPICS_PATH)
    beside.look_until_quiet()
    beside.end_windows()
    assert EventKind.CONTROLLED_SHUTDOWN_REQUESTED not in [one.kind for one in beside.engine.events]
    assert [(one.status, one.kind) for one in beside.notes.verdicts] == [
        (Status.AGREED, "delete_topic")
    ]


def test_a_result_does_not_come_without_its_input(
    live: ZkSession, seen: ZkReader, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A state is read for another reason, and has what a notification led to that is newer than
    what the look began with.
    """
    live.ensure_path(LOG_DIR_EVENT_PATH)
    register(live, 1, 2)
    beside = Beside(live, seen)
    really = StatesReader.look

    def late(states: StatesReader, dirty: Dirty) -> None:
        monkeypatch.undo()
        live.create_sequential(f"{LOG_DIR_EVENT_PATH}/log_dir_event_", NOTICE)
        live.set(partition_state_path("t", 0), state([2], leader=2, leader_epoch=1))
        wait_until_dirty(beside.reader, LOG_DIR_EVENT_PATH)
        really(states, dirty)

    monkeypatch.setattr(StatesReader, "look", late)
    live.set(partition_state_path("t", 0), state([1, 2]))
    wait_until_dirty(beside.reader, partition_state_path("t", 0))
    beside.look_until_quiet()
    beside.end_windows()
    assert {(one.status, one.topic) for one in beside.notes.verdicts} == {(Status.AGREED, "t")}
