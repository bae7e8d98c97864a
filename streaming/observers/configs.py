"""Watches configuration changes that decisions depend on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from state.cluster.config import DEPRIORITIZED, broker_ids
from state.event_kinds import EventKind
from state.topic_overrides import MIN_INSYNC
from streaming.log.events import EventAppender, event
from streaming.observers.notices import read_notices
from streaming.observers.overrides import cluster_overrides
from streaming.observers.ports import Topics
from streaming.observers.tree import WatchedTree
from streaming.process.counters import Counters
from streaming.zk.znodes import CONFIG_CHANGES_PATH, entity_config_path, parse_config_change
from streaming.zk.znodes.paths import DEFAULT_ENTITY

_CLUSTER_DEFAULT = f"brokers/{DEFAULT_ENTITY}"
_TOPIC_PREFIX = "topics/"


class ConfigsObserver:
    """Follows /config/changes: what it names is read, and appended when it differs.

    Entries are only read; brokers delete them when they are old. The cluster-wide defaults that
    brokers keep under brokers/<default> go before our own settings, as they do in a broker; only
    those of which there is a setting are looked at.
    """

    def __init__(
        self,
        tree: WatchedTree,
        log: EventAppender,
        topics: Topics,
        defaults: Mapping[str, Any],
        counters: Counters,
    ) -> None:
        """Start from our own settings, defaults by key, as what was appended last."""
        self._tree = tree
        self._log = log
        self._topics = topics
        self._settings = dict(defaults)
        self._appended = dict(defaults)
        self._counters = counters
        self._seen: set[str] = set()

    @property
    def min_insync_replicas(self) -> int:
        """Return the cluster's default as it was appended last; from any thread."""
        default: int = self._appended[MIN_INSYNC]
        return default

    @property
    def deprioritized(self) -> tuple[int, ...]:
        """Return leader.deprioritized.list as it was appended last; from any thread."""
        return broker_ids(self._appended[DEPRIORITIZED])

    def start(self) -> None:
        """Remember the changes that are there: whatever they changed is about to be read."""
        self._seen = set(self._tree.children(CONFIG_CHANGES_PATH))

    def look(self) -> None:
        """Read what new changes name, and append what differs."""
        names = self._tree.children(CONFIG_CHANGES_PATH)
        entities = self._entities([name for name in names if name not in self._seen])
        if _CLUSTER_DEFAULT in entities:
            self.look_at_cluster_default()
        self._topics.configs_changed(
            entity.removeprefix(_TOPIC_PREFIX)
            for entity in entities
            if entity.startswith(_TOPIC_PREFIX)
        )
        self._seen = set(names)  # not before: a look that loses the connection is repeated

    def look_at_cluster_default(self) -> None:
        """Read the cluster-wide defaults and append those that differ."""
        path = entity_config_path("brokers", DEFAULT_ENTITY)
        znode = self._tree.session.get(path)
        data = None if znode is None else znode.data
        config = self._settings | cluster_overrides(data, self._settings, self._counters)
        changed = {key: value for key, value in config.items() if value != self._appended[key]}
        if changed:
            self._log.append([event(EventKind.CLUSTER_CONFIG_CHANGED, {"config": changed})])
            self._appended = config

    def _entities(self, names: list[str]) -> set[str]:
        paths = [f"{CONFIG_CHANGES_PATH}/{name}" for name in names]
        return set(read_notices(self._tree.session, paths, parse_config_change, self._counters))
