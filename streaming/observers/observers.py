"""The observers that an active front and a shadow have alike, and which paths wake which."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from streaming.log.events import EventAppender
from streaming.observers.admin import AdminObserver
from streaming.observers.brokers import BrokersObserver
from streaming.observers.configs import ConfigsObserver
from streaming.observers.deletions import DeletionsObserver
from streaming.observers.ports import Topics
from streaming.observers.tree import Dirty, WatchedTree
from streaming.process.counters import Counters
from streaming.zk.znodes import BROKER_IDS_PATH, CONFIG_CHANGES_PATH, DELETE_TOPICS_PATH


class Observers:
    """Observers of brokers, configurations and requests, beside whoever observes the topics."""

    def __init__(
        self,
        tree: WatchedTree,
        log: EventAppender,
        topics: Topics,
        *,
        controller_id: int,
        defaults: Mapping[str, Any],
        counters: Counters,
        names_counted: Callable[[int], None] = lambda _: None,
    ) -> None:
        """Start with nothing known. defaults: as ConfigsObserver, names_counted: as
        DeletionsObserver has them.
        """
        self._topics = topics
        self.brokers = BrokersObserver(tree, log, controller_id, counters)
        self.configs = ConfigsObserver(tree, log, topics, defaults, counters)
        self.deletions = DeletionsObserver(tree, log, topics, counters, names_counted)
        self.admin = AdminObserver(tree, log, topics, counters)

    def look(
        self,
        dirty: Dirty,
        *,
        brokers: Callable[[], None],
        notifications: Callable[[Dirty], None],
    ) -> None:
        """Have everybody look who may see something new, in the order in which it is appended.

        brokers: looks at the brokers, with all that follows from them. notifications: looks at
        what brokers left.
        """
        if CONFIG_CHANGES_PATH in dirty:
            self.configs.look()
        if BROKER_IDS_PATH in dirty or dirty.below(BROKER_IDS_PATH):
            brokers()
        self._topics.look(dirty)
        notifications(dirty)
        again = self._topics.observed_again
        self.admin.ask_again(again - dirty.unwritable)
        self.admin.look(dirty)
        if DELETE_TOPICS_PATH in dirty:
            self.deletions.look()
        self.deletions.withdraw_again(again)
        self._topics.followed_up(again)
