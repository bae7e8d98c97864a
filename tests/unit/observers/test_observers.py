"""Which marks make whom look, and in which order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

import pytest

from state.payloads.admin import PREFERRED_ELECTION_PATH, REASSIGN_PARTITIONS_PATH
from streaming.observers.observers import Observers
from streaming.observers.tree import Dirty
from streaming.zk.znodes import (
    BROKER_IDS_PATH,
    CONFIG_CHANGES_PATH,
    DELETE_TOPICS_PATH,
    TOPICS_PATH,
    broker_path,
)


class World:
    """An empty tree and its topics; notes who looked, or which path was read."""

    session_timeout_ms = 1_000

    def __init__(self) -> None:
        self.looks: list[str] = []
        self.session = self
        here: Any = self
        self.observers = Observers(
            here, here, here, controller_id=1000, defaults={}, counters=Counter()
        )

    observed_again: frozenset[str] = frozenset()

    def followed_up(self, topics: frozenset[str]) -> None:
        assert not topics

    def children(self, path: str) -> list[str]:
        self.looks.append(path)
        return []

    def get(self, path: str) -> None:
        self.looks.append(path)

    def look(self, dirty: Dirty) -> None:
        self.looks.append("topics")

    def configs_changed(self, topics: Iterable[str]) -> None:
        assert not list(topics)

    def looks_at(self, dirty: Dirty) -> list[str]:
        self.observers.look(
            dirty,
            brokers=lambda: self.looks.append("brokers"),
            notifications=lambda _: self.looks.append("notifications"),
        )
        return self.looks


def test_after_a_broken_connection_everybody_looks_in_order():
    assert World().looks_at(Dirty(reread_all=True)) == [
        CONFIG_CHANGES_PATH,
        "brokers",
        "topics",
        "notifications",
        PREFERRED_ELECTION_PATH,
        REASSIGN_PARTITIONS_PATH,
        DELETE_TOPICS_PATH,
    ]


@pytest.mark.parametrize(
    ("path", "looks"),
    [
        (CONFIG_CHANGES_PATH, [CONFIG_CHANGES_PATH, "topics", "notifications"]),
        (BROKER_IDS_PATH, ["brokers", "topics", "notifications"]),
        (broker_path(3), ["brokers", "topics", "notifications"]),
        (TOPICS_PATH, ["topics", "notifications"]),
        (PREFERRED_ELECTION_PATH, ["topics", "notifications", PREFERRED_ELECTION_PATH]),
        (REASSIGN_PARTITIONS_PATH, ["topics", "notifications", REASSIGN_PARTITIONS_PATH]),
        (DELETE_TOPICS_PATH, ["topics", "notifications", DELETE_TOPICS_PATH]),
    ],
)
def test_a_mark_wakes_who_reads_there(path: str, looks: list[str]):
    assert World().looks_at(Dirty(frozenset([path]))) == looks
