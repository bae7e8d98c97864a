"""One term as the controller: claim, load everything, follow what changes, give back."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from state.event_kinds import EventKind
from streaming.errors import ConfigurationError
from streaming.front import addresses
from streaming.front.delegation_tokens import ignored_tokens
from streaming.front.gateway import FrontGateway
from streaming.front.load_events import elected, overridable, topics_have_ids
from streaming.front.preparation import create_missing
from streaming.front.rivals import Rivals
from streaming.front.seen import Seen
from streaming.front.signals import GiveUpRole, Signals
from streaming.front.tenure import Tenure
from streaming.front.zk_acls import ignored_rights
from streaming.image.racks import controller_rack
from streaming.log.events import EventAppender, event
from streaming.observers.brokers import Registration, readable_registrations
from streaming.observers.expired_tokens import ExpiredTokensObserver
from streaming.observers.notifications import NotificationsObserver
from streaming.observers.observers import Observers
from streaming.observers.producer_ids import producer_ids_observed
from streaming.observers.topics import TopicsObserver
from streaming.observers.tree import Dirty, DirtyPaths, WatchedTree
from streaming.process.counters import Counters
from streaming.process.wall_clock import wall_clock_ms
from streaming.settings import Settings
from streaming.wire.endpoints import Endpoint, SecurityProtocol
from streaming.zk.claim import ControllerClaim
from streaming.zk.errors import ZooKeeperUnreachable
from streaming.zk.fenced import FencedWriter
from streaming.zk.opening import session_of
from streaming.zk.types import SessionState
from streaming.zk.write_limits import WriteLimits
from streaming.zk.znodes import (
    CLUSTER_ID_PATH,
    CONTROLLER_EPOCH_PATH,
    CONTROLLER_PATH,
    MIGRATION_PATH,
    PRODUCER_ID_BLOCK_PATH,
    parse_cluster_id,
)

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Watching:
    """What reads, and takes notifications away, under one claim since its last load began."""

    topics: TopicsObserver
    notifications: NotificationsObserver
    observers: Observers
    tokens: ExpiredTokensObserver
    writer: FencedWriter


class Term:
    """One session, one claim, and the observers that read through them; used by one thread.

    Every method raises RoleLost or GiveUpRole when the term must end, and the errors of
    streaming.zk.errors.
    """

    def __init__(
        self,
        settings: Settings,
        log: EventAppender,
        signals: Signals,
        gateway: FrontGateway,
        counters: Counters,
        *,
        seen: Seen,
        rivals: Rivals,
    ) -> None:
        """Prepare a session of its own; nothing is sent yet. gateway: where brokers reach us."""
        self._settings = settings
        self._log = log
        self._signals = signals
        self._gateway = gateway
        self._seen = seen
        self._counters = counters
        self._session = session_of(settings, self._on_state)
        self._dirty = DirtyPaths(signals.notify)
        self._tree = WatchedTree(self._session, self._dirty)
        self._tenure = Tenure(
            self._session, self._tree, settings.controller_id, rivals, seen.note_holder
        )
        self._endpoints: Sequence[Endpoint] = ()
        self._unserved: str | None = None  # what was warned of last
        self._watching: _Watching | None = None
        self._read: TopicsObserver | None = None  # once all topics were read
        self._last_read: _Watching | None = None  # by the last load that has read them
        self._elected_at = -1  # offset of the election that the last load began with
        self._load_after = -1  # a load has to begin behind that offset

    def connect_and_claim(self) -> ControllerClaim:
        """Open the session and take the role from whoever has it.

        Raises RoleLost when it kept changing hands, IdTaken when our id may be a broker's, and
        ConfigurationError when it is, when brokers could not reach us, or we not them, when another
        process takes the role back with our id, when a KRaft controller has it, or ZooKeeper
        forbids the claim.
        """
        self._session.connect(self._settings.zookeeper_connection_timeout_ms)
        self._signals.check()
        self._endpoints = self._gateway.endpoints(self._broker_listeners())
        brokers = self._registrations()
        addresses.check_brokers(self._settings, self._endpoints, brokers)
        if cost := addresses.unclean_shutdowns(self._settings, brokers):
            logger.warning("%s", cost)
        return self._tenure.claim(self._endpoints)

    def load(self) -> None:
        """Append the election and everything that is in ZooKeeper, and leave watches on it.

        Each read leaves its watch before or with reading, so what changes during the load is
        followed after it. Old notifications go before the states they are about are read, as in
        KafkaController.onControllerFailover.
        """
        claim = self._tenure.held()
        self._read = None
        self._dirty.drain()  # everything is read below
        appended = self._log.append([elected(claim, self._endpoints, self._settings)])
        self._elected_at = appended.start
        watching = self._watching = self._watch(claim)
        observers, topics = watching.observers, watching.topics
        create_missing(self._session, watching.writer, self._settings)
        self._tenure.check_controller()
        observers.configs.start()
        watching.notifications.discard()
        self._look_at_brokers(observers)
        observers.configs.look_at_cluster_default()
        topics.look(Dirty(reread_all=True))
        self._read, self._last_read = topics, watching
        observers.deletions.look()
        self._look_at_cluster_id()
        self._log.append(
            [
                producer_ids_observed(self._session.get(PRODUCER_ID_BLOCK_PATH), self._counters),
                event(EventKind.RESYNC_COMPLETED, {"topics": len(topics)}),
            ]
        )
        observers.admin.look(Dirty(reread_all=True))
        self._register_ourselves(observers)
        self._look_at_migration()
        for ignored in (ignored_rights, ignored_tokens):
            if told := ignored(self._session, self._settings):
                logger.warning("%s", told)

    def follow(self) -> None:
        """Append what changes; returns only by raising."""
        while True:
            self._signals.wait_for_work(self._dirty, self._following().tokens.due_s)
            dirty = self._dirty.drain()
            if dirty.reload and self._elected_at <= self._load_after:
                logger.info("everything is loaded again, under the same claim")
                self.load()
                continue
            try:
                self._look(dirty)
            except ZooKeeperUnreachable as error:
                # Nothing that was read halfway was appended: read it again when connected.
                logger.info("a look at ZooKeeper is repeated: %s", error)
                self._dirty.mark(dirty)

    def suspect(self) -> None:
        """Look whether the role is still ours, soon; from any thread."""
        self._dirty.mark(Dirty(frozenset([CONTROLLER_PATH, CONTROLLER_EPOCH_PATH])))

    def observe_again(self, topics: Iterable[str], unwritable: Iterable[str]) -> None:
        """Append topics as they are, even if they did not change; from any thread."""
        self._dirty.mark(Dirty(reappend=frozenset(topics), unwritable=frozenset(unwritable)))

    def load_again(self, after: int) -> None:
        """Append an election and everything again, as after a claim, soon, unless a load began
        behind that offset; from any thread.

        Without need there is none: what is decided in between and not written yet would be read as
        it was before.
        """
        self._load_after = max(self._load_after, after)
        self._dirty.mark(Dirty(reload=True))

    def topic_exists(self, name: str) -> bool:
        """Return whether a topic's znode was there when the topics were last listed, or they are
        still to be; from any thread.
        """
        topics = self._read
        return topics is None or topics.is_listed(name)

    def partition_count(self, topic: str) -> int:
        """Return how many partitions a topic was last read with, 0 when it was not read; from any
        thread.
        """
        topics = self._read
        return 0 if topics is None else topics.partition_count(topic)

    def min_insync_replicas(self, topic: str) -> int | None:
        """Return a topic's min.insync.replicas, its own or the cluster's, as it was read last, None
        when nothing was read yet; from any thread.
        """
        read = self._last_read
        if read is None:
            return None
        own = read.topics.min_insync_replicas(topic)
        return read.observers.configs.min_insync_replicas if own is None else own

    def deprioritized(self) -> tuple[int, ...]:
        """Return the brokers that lead where nobody else can, as was read last, ascending; from any
        thread.
        """
        read = self._last_read
        return () if read is None else read.observers.configs.deprioritized

    def give_back(self) -> bool:
        """Delete /controller if it is ours; False when it was not."""
        return self._tenure.give_back()

    def close(self) -> None:
        """End the session; with it goes what it holds."""
        self._session.close()

    def _watch(self, claim: ControllerClaim) -> _Watching:
        limits = WriteLimits.of(self._settings)
        writer = FencedWriter(self._session, claim.epoch_zk_version, limits)
        tree, log, counters = self._tree, self._log, self._counters
        minted = topics_have_ids(self._settings)
        check = self._signals.check
        topics = TopicsObserver(tree, log, counters, check=check, mint_topic_ids=minted)
        notifications = NotificationsObserver(tree, writer, log, counters)
        observers = Observers(
            tree,
            log,
            topics,
            controller_id=claim.controller_id,
            defaults=overridable(self._settings),
            counters=counters,
            names_counted=self._seen.note_deletions,
        )
        tokens = ExpiredTokensObserver(
            self._session,
            log,
            counters,
            wall_clock_ms,
            interval_s=self._settings.delegation_token_expiry_check_interval_ms / 1000,
        )
        return _Watching(topics, notifications, observers, tokens, writer)

    def _broker_listeners(self) -> dict[str, SecurityProtocol]:
        """Return what is spoken on the brokers' listeners to be announced on, by name, waiting for
        a first broker.

        Before there is one nobody needs a controller, and the first one to start may well be it
        for a moment. One that has our id is none of them. Raises ConfigurationError, also when
        there is such a broker, and IdTaken when there may be.
        """
        if not self._gateway.needs_listeners():
            return {}
        said = False
        while not (found := addresses.served_listeners(self._settings, self._registrations())):
            self._tenure.check_id([addresses.first_endpoint(self._settings)])
            if not said:
                where = self._settings.zookeeper_connect
                logger.info("no broker is registered in ZooKeeper at %s: one is waited for", where)
                said = True
            self._signals.wait_for_work(self._dirty)
            self._dirty.drain()
        return found

    def _registrations(self) -> list[Registration]:
        return readable_registrations(self._tree, self._settings.controller_id)

    def _look_at_brokers(self, observers: Observers) -> None:
        """Raises GiveUpRole when one came that the role would not have been taken beside: whoever
        claims next refuses it.
        """
        observers.brokers.look()
        brokers = observers.brokers.registrations
        try:
            addresses.check_brokers(self._settings, self._endpoints, brokers)
        except ConfigurationError as error:
            raise GiveUpRole(str(error)) from error
        unserved = addresses.unserved_listeners(self._settings, self._endpoints, brokers)
        if unserved and unserved != self._unserved:
            logger.warning("%s", unserved)
            self._unserved = unserved

    def _look(self, dirty: Dirty) -> None:
        watching = self._following()
        if CONTROLLER_PATH in dirty:
            self._tenure.check_controller()
        if CONTROLLER_EPOCH_PATH in dirty:
            self._tenure.check_epoch()
        watching.observers.look(
            dirty,
            brokers=lambda: self._look_at_changed_brokers(watching.observers),
            notifications=watching.notifications.look,
        )
        if CLUSTER_ID_PATH in dirty:
            self._look_at_cluster_id()
        if MIGRATION_PATH in dirty:
            self._look_at_migration()
        watching.tokens.look_if_due()

    def _following(self) -> _Watching:
        assert self._watching is not None, "a term loads before it follows"
        return self._watching

    def _look_at_changed_brokers(self, observers: Observers) -> None:
        self._look_at_brokers(observers)
        self._register_ourselves(observers)

    def _look_at_cluster_id(self) -> None:
        znode = self._tree.get(CLUSTER_ID_PATH)
        if znode is None:  # the first broker to start creates it
            return
        try:
            self._seen.cluster_id = parse_cluster_id(znode.data)
        except ValueError as error:
            logger.warning("%s", error)

    def _look_at_migration(self) -> None:
        is_there = self._tree.get(MIGRATION_PATH) is not None
        if is_there and not self._seen.migration:
            logger.warning(
                "ZooKeeper has %s: a KRaft quorum waits to take this cluster over until this node"
                " is stopped, or a migration that was rolled back left it behind",
                MIGRATION_PATH,
            )
        self._seen.migration = is_there

    def _register_ourselves(self, observers: Observers) -> None:
        self._tenure.register(self._endpoints, controller_rack(observers.brokers.racks))

    def _on_state(self, state: SessionState) -> None:
        self._signals.set_held(state is SessionState.HELD)
        if state is SessionState.LOST:
            self._signals.lose("the ZooKeeper session expired")
