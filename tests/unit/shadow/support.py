"""A live cluster told by hand, and a shadow beside it that folds in memory."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

from checkpoints.machine_format import decode_machine
from checkpoints.replay import States, fold_batch
from state.event_kinds import EventKind
from state.events import Event
from state.partitions.reassignment import Motion
from state.partitions.slot import Slot
from state.routing import GROUP_SLOTS, Layout
from streaming.decided_rows import FoldedBatch
from streaming.log.api import NewRecord
from streaming.log.events import event
from streaming.shadow.comparison import Comparison
from streaming.shadow.leadership import Leadership
from streaming.shadow.looks import Load, Look, SeenTopic
from streaming.shadow.shadow import Shadow, Watcher
from streaming.shadow.verdicts import Status, Verdict
from streaming.zk.types import SessionState
from tests.fixtures.story import OURSELVES

WINDOW_MS = 1_000
GRACE_MS = 100


class MemoryEngine:
    """Folds in memory; events: all that was appended."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.states: States = {}
        self._folded = 0

    def append(self, records: Sequence[NewRecord]) -> range:
        start = len(self.events)
        for record in records:
            offset = len(self.events)
            self.events.append(
                Event(offset, 1_000 + offset, record.kind, record.key, record.payload)
            )
        return range(start, len(self.events))

    def decided(self, until: int) -> Iterator[FoldedBatch]:
        events = self.events[self._folded : until]
        self._folded = until
        times = {one.offset: one.time_ms for one in events}
        yield FoldedBatch(fold_batch(self.states, events, Layout(1, GROUP_SLOTS)), times, until)

    def close(self) -> None:
        pass


class Notes:
    """Keeps verdicts."""

    def __init__(self) -> None:
        self.verdicts: list[Verdict] = []

    def add(self, verdict: Verdict, now_ms: int) -> None:
        self.verdicts.append(verdict)


def state(leader: int, isr: Sequence[int], epoch: int = 0, version: int = 0) -> Leadership:
    return Leadership(leader, epoch, tuple(isr), 0, version)


def broker(id_: int, epoch: int | None = None) -> dict[str, Any]:
    return {"id": id_, "epoch": epoch or 100 + id_, "rack": None, "endpoints": []}


class Beside:
    """The live cluster has topic t with partition 0 on brokers 1, 2, 3, as `held` says."""

    def __init__(
        self,
        held: Leadership | None = None,
        brokers: Sequence[int] = (1, 2, 3),
        moving: Motion | None = None,
        leaders_ask: bool = True,
        **config: Any,
    ) -> None:
        self.config = {"auto.leader.rebalance.enable": False, **config}
        self.now_ms = 1_000_000
        self.engine = MemoryEngine()
        self.notes = Notes()
        comparison = Comparison(WINDOW_MS, GRACE_MS, leaders_ask=leaders_ask)
        self.shadow = Shadow(self.engine, comparison, self.notes)
        self.motion = moving or Motion((1, 2, 3))
        self.load(held or state(1, [1, 2, 3], 4, 9), brokers=brokers, epoch=5, first=True)

    def load(
        self,
        held: Leadership,
        *,
        brokers: Sequence[int],
        epoch: int,
        first: bool,
        states: Mapping[int, Leadership] | None = None,
    ) -> None:
        """A controller is elected; states: what it has done since by partition of t."""
        records = [
            event(
                EventKind.CONTROLLER_ELECTED,
                {
                    "controller_id": OURSELVES,
                    "epoch": epoch,
                    "epoch_zk_version": epoch,
                    "endpoints": [],
                    "config": self.config,
                },
            ),
            self.brokers(registered=[broker(id_) for id_ in brokers]),
            self.topic([self.motion.replicas], [held], moving=self.motion),
            event(EventKind.RESYNC_COMPLETED, {"topics": 1}),
        ]
        look = Look(self.now_ms, records, load=Load(epoch, {("t", 0): held}, first))
        look.states = {("t", number): one for number, one in (states or {}).items()}
        self.shadow.observe(look)

    def brokers(self, **changed: Any) -> NewRecord:
        return event(EventKind.BROKER_REGISTRATIONS_CHANGED, changed)

    def topic(
        self,
        replicas: Sequence[Sequence[int]],
        states: Sequence[Leadership | None],
        name: str = "t",
        topic_id: str | None = None,
        moving: Motion | None = None,
    ) -> NewRecord:
        """moving: how each of its partitions is being reassigned."""
        moves = [] if moving is None else [moving] * len(replicas)
        body = {
            "topic": name,
            "topic_id": topic_id,
            "adding": [sorted(one.adding) for one in moves],
            "removing": [sorted(one.removing) for one in moves],
            "partitions": list(range(len(replicas))),
            "replicas": replicas,
            "states": [
                None if s is None else [s.leader, s.leader_epoch, s.isr, 5, s.recovery, s.version]
                for s in states
            ],
        }
        return event(EventKind.TOPIC_OBSERVED, body, name)

    def look(
        self,
        *inputs: NewRecord,
        live: Leadership | None = None,
        partition: int = 0,
        topics: Mapping[str, SeenTopic | None] | None = None,
        log_dirs: Sequence[int] = (),
    ) -> None:
        """A look that brings inputs, and a state of t if there is one."""
        self.now_ms += 1
        states = {} if live is None else {("t", partition): live}
        look = Look(self.now_ms, list(inputs), states, dict(topics or {}), set(log_dirs))
        self.shadow.observe(look)

    def wait(self, ms: int = WINDOW_MS) -> None:
        """Let time pass without anything happening."""
        self.now_ms += ms
        self.shadow.settle(self.now_ms, self.now_ms)

    def statuses(self) -> list[tuple[Status, str]]:
        """What was said since it was asked last."""
        said, self.notes.verdicts = self.notes.verdicts, []
        return [(one.status, one.kind) for one in said]

    def ours(self, partition: int = 0) -> Leadership:
        """The partition as our machine has it."""
        slot = decode_machine(self.engine.states[0])
        assert isinstance(slot, Slot)
        rows, at = slot.table.rows, int(slot.table.rows_of("t")[partition])
        isr = tuple(id_ for id_ in rows.isr[at].tolist() if id_ >= 0)
        return Leadership(
            int(rows.leader[at]),
            int(rows.leader_epoch[at]),
            isr,
            int(rows.recovery[at]),
            int(rows.zk_version[at]),
        )

    def kinds(self) -> list[str]:
        """Kinds of all events after the load."""
        return [one.kind for one in self.engine.events[4:]]


def seen(*motions: Motion, topic_id: str | None = None) -> SeenTopic:
    return SeenTopic(topic_id, dict(enumerate(motions)))


def session(held: bool = True) -> Any:
    now = SessionState.HELD if held else SessionState.IN_DOUBT
    return SimpleNamespace(state=now, session_timeout_ms=10_000)


def reader(look: Callable[[], Look] | None = None, **counters: int) -> Any:
    return SimpleNamespace(look=look, counters=Counter(counters))


def unstarted(held: bool = True, **counters: int) -> Watcher:
    return Watcher(session(held), lambda wake: reader(**counters), threading.Event())


@contextmanager
def watching(look: Callable[[], Look]) -> Iterator[Watcher]:
    ended = threading.Event()
    watcher = Watcher(session(), lambda wake: reader(look), ended)
    watcher.start()
    try:
        yield watcher
    finally:
        ended.set()
        watcher.stop()


def unloaded() -> Shadow:
    return Shadow(MemoryEngine(), Comparison(WINDOW_MS, GRACE_MS), Notes())
