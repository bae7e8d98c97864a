"""Reads a live cluster without touching it: inputs as events, and what its controller did."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any

from state.cluster.config import DEPRIORITIZED
from state.event_kinds import EventKind
from state.payloads.admin import PREFERRED_ELECTION_PATH, REASSIGN_PARTITIONS_PATH
from state.topic_partition import TopicPartition
from streaming.front.load_events import elected, overridable
from streaming.log.api import NewRecord
from streaming.log.events import event
from streaming.observers.notices import read_notices
from streaming.observers.observers import Observers
from streaming.observers.states import StateTuple
from streaming.observers.tree import Dirty, DirtyPaths, WatchedTree
from streaming.process.counters import Counters
from streaming.process.wall_clock import steady_clock_ms
from streaming.settings import Settings
from streaming.shadow.leadership import Leadership, from_state
from streaming.shadow.looks import Load, Look
from streaming.shadow.states_reader import StatesReader, written_under
from streaming.shadow.topics_reader import TopicsReader
from streaming.zk.claim import ControllerClaim, epoch_of
from streaming.zk.own_id import BrokersId, foreign_registration
from streaming.zk.reader import ZkReader
from streaming.zk.types import ZNode
from streaming.zk.znodes import (
    CONTROLLER_EPOCH_PATH,
    CONTROLLER_PATH,
    DELETE_TOPICS_PATH,
    LOG_DIR_EVENT_PATH,
    TOPICS_PATH,
    parse_log_dir_event,
)

_NOT_COMPARED = {
    # Asked of our machine when the live controller does it: its own timers are another's.
    "auto_leader_rebalance_enable": False,
    # A brake that Kafka's controller does not have.
    "controlled_shutdown_safety_check_enable": False,
    # It takes the first live replica, whatever the others have.
    "unclean_recovery_manager_enabled": False,
    # It knows no broker that is to lead no more.
    "leader_deprioritized_list": "",
}


def _compared(settings: Settings) -> dict[str, Any]:
    defaults = overridable(settings)
    del defaults[DEPRIORITIZED]
    return defaults


class Inputs:
    """Collects what observers append."""

    def __init__(self) -> None:
        """Start with nothing."""
        self.records: list[NewRecord] = []

    def append(self, records: Sequence[NewRecord]) -> range:
        """Collect events; offsets are not known yet."""
        self.records += records
        return range(0)

    def append_async(self, records: Sequence[NewRecord]) -> Future[range]:
        """Collect events."""
        done: Future[range] = Future()
        done.set_result(self.append(records))
        return done

    def drain(self) -> list[NewRecord]:
        """Return what was collected."""
        taken, self.records = self.records, []
        return taken


_States = dict[TopicPartition, StateTuple | None]


@dataclass(frozen=True, slots=True)
class _Watching:
    """What reads since the last load began."""

    topics: TopicsReader
    observers: Observers


class ClusterReader:
    """Looks at a live cluster; used by one thread.

    Every method raises the errors of streaming.zk.errors, BrokenControllerZNode and BrokersId; a
    look that failed is made again whole.
    """

    def __init__(self, session: ZkReader, settings: Settings, wake: Callable[[], None]) -> None:
        """Read through a connected session; wake is called when there may be something new."""
        self._settings = settings.model_copy(update=_NOT_COMPARED)
        self._session = session
        self.dirty = DirtyPaths(wake)
        self.counters: Counters = Counter()
        self._tree = WatchedTree(session, self.dirty)
        self._inputs = Inputs()
        self._states = StatesReader(self._tree, self.counters)
        self._controller: int | None = None  # czxid of /controller
        self._loaded = False
        self._failed: set[int] = set()
        self._watching = self._watch()

    def look(self) -> Look:
        """Return what changed: results first, then inputs, then whether the controller did."""
        look = Look(steady_clock_ms())  # before what is dirty is taken: what fires later is later
        dirty = self.dirty.drain()
        try:
            look = self._look(look, dirty)
            look.over_ms = steady_clock_ms()
            return look
        except BaseException:
            self.dirty.mark(Dirty(reread_all=True))
            raise

    def _look(self, look: Look, dirty: Dirty) -> Look:
        topics, observers = self._watching.topics, self._watching.observers
        if self._controller is not None:
            self._states.look(dirty)
            dirty = self._dirty_meanwhile(dirty)
            if dirty.reread_all:
                # Brokers delete notifications of changes: some may have come and gone unseen.
                observers.configs.look_at_cluster_default()
                topics.configs_changed(topics.names())
            observers.look(
                dirty,
                brokers=lambda: self._look_at_brokers(observers),
                notifications=self._look_at_notifications,
            )
            if DELETE_TOPICS_PATH in dirty:
                # A mark that came and went by now was not seen, but its topic went before it.
                topics.look(Dirty(frozenset([TOPICS_PATH])))
        holder = self._tree.get(CONTROLLER_PATH)
        if holder is None:
            return self._resigned(look)
        if holder.czxid != self._controller:
            return self._load(look, holder)
        look.inputs = self._inputs.drain()
        look.topics = topics.drain_seen()
        look.states = self._states.drain()
        look.failed_log_dirs, self._failed = self._failed, set()
        fresh = topics.drain_fresh()
        if fresh:
            self._states.add(topics.partitions(), fresh)
            self.dirty.mark(Dirty(frozenset(fresh)))
        return look

    def _dirty_meanwhile(self, dirty: Dirty) -> Dirty:
        """Return what is dirty with what became so while states were read: a state may tell of an
        input that was not there before. States among it are for the next look.
        """
        self._session.await_watches()
        meanwhile = self.dirty.drain()
        if meanwhile == Dirty():
            return dirty
        self.dirty.mark(meanwhile)
        return Dirty.union([dirty, meanwhile])

    def _watch(self) -> _Watching:
        """Start again with nothing known."""
        tree, inputs, counters = self._tree, self._inputs, self.counters
        inputs.drain()
        topics = TopicsReader(tree, self.dirty, inputs, counters)
        observers = Observers(
            tree,
            inputs,
            topics,
            controller_id=self._settings.controller_id,
            defaults=_compared(self._settings),
            counters=counters,
        )
        return _Watching(topics, observers)

    def _look_at_brokers(self, observers: Observers) -> None:
        """Append how the brokers changed; raises BrokersId when one has the id that stands for our
        machine. It may stand for another helmstream, which has the role here.
        """
        own_id = self._settings.controller_id
        holder, registered = foreign_registration(self._session, own_id)
        # A front registers after it claimed: there may be another one by now.
        if registered is not None and self._session.get(CONTROLLER_PATH) == holder:
            raise BrokersId(own_id, registered)
        observers.brokers.look()

    def _look_at_notifications(self, dirty: Dirty) -> None:
        if LOG_DIR_EVENT_PATH in dirty:
            self._look_at_log_dirs()

    def _look_at_log_dirs(self) -> None:
        """Append which brokers say that they lost a log directory.

        The live controller deletes what they say as soon as it has heard of it.
        """
        names = self._tree.children(LOG_DIR_EVENT_PATH)
        paths = [f"{LOG_DIR_EVENT_PATH}/{name}" for name in names]
        said = read_notices(self._session, paths, parse_log_dir_event, self.counters)
        brokers = sorted(set(said))
        if brokers:
            body = {"broker_ids": brokers}
            self._inputs.append([event(EventKind.LOG_DIR_FAILURE_NOTIFIED, body)])
        self._failed |= set(brokers)

    def _resigned(self, look: Look) -> Look:
        """Nobody is the controller: our machine decides nothing until somebody is."""
        self._inputs.drain()
        if self._controller is None:
            return Look(look.time_ms)
        self._controller = None
        return Look(look.time_ms, [_resigned("no controller")])

    def _load(self, look: Look, holder: ZNode) -> Look:
        """Read everything, as the controller that was just elected does."""
        epoch = self._session.get(CONTROLLER_EPOCH_PATH)
        number = 0 if epoch is None else epoch_of(epoch)
        claim = ControllerClaim(
            self._settings.controller_id, number, 0 if epoch is None else epoch.version, 0
        )
        watching = self._watch()
        topics, observers = watching.topics, watching.observers
        self._inputs.append(
            [
                *([_resigned("another controller was elected")] if self._loaded else []),
                elected(claim, [], self._settings),
            ]
        )
        observers.configs.start()
        self._look_at_brokers(observers)
        observers.configs.look_at_cluster_default()
        read, held = self._load_topics(topics, number)
        self._tree.children(LOG_DIR_EVENT_PATH)
        observers.deletions.look()
        body = {"topics": len(topics)}
        self._inputs.append([event(EventKind.RESYNC_COMPLETED, body)])
        observers.admin.look(Dirty(frozenset([PREFERRED_ELECTION_PATH, REASSIGN_PARTITIONS_PATH])))
        look.load = Load(number, _leaderships(held), first=not self._loaded)
        look.inputs = self._inputs.drain()
        look.topics = topics.drain_seen()
        look.states = _leaderships({one: read[one] for one in read if read[one] != held[one]})
        # Nothing fails from here on: a load that did is made again from what was known before it.
        self._states.follow(read)
        self._watching = watching
        self._controller, self._loaded = holder.czxid, True
        self.dirty.mark(Dirty(frozenset([CONTROLLER_PATH])))  # it may be gone again by now
        return look

    def _load_topics(self, topics: TopicsReader, epoch: int) -> tuple[_States, _States]:
        """Append all topics; return the states that were read, and those they were appended with.

        What the new controller wrote is not given to our machine, which is to decide it itself.
        """
        read: _States = {}
        held: _States = {}

        def states(partitions: list[TopicPartition]) -> _States:
            read.update(self._states.read(partitions))
            for one, state in read.items():
                written = self._loaded and written_under(state, epoch)
                held[one] = self._before(one, topics, epoch) if written else state
            return held

        topics.load(states)
        return read, held

    def _before(
        self, subject: TopicPartition, topics: TopicsReader, epoch: int
    ) -> StateTuple | None:
        """Return a state as the new controller found it; None when the topic is a new one."""
        name = subject[0]
        if topics.czxid(name) != self._watching.topics.czxid(name):
            return None
        return self._states.before(subject, epoch)


def _leaderships(states: _States) -> dict[TopicPartition, Leadership | None]:
    return {one: from_state(state) for one, state in states.items()}


def _resigned(reason: str) -> NewRecord:
    return event(EventKind.CONTROLLER_RESIGNED, {"reason": reason})
