"""A configuration change is not forgotten when ZooKeeper goes away while it is looked at."""

from __future__ import annotations

from collections import Counter
from types import SimpleNamespace

import pytest

from streaming.observers import notices
from streaming.observers.configs import ConfigsObserver
from streaming.zk.errors import ZooKeeperUnreachable
from streaming.zk.znodes.notifications import config_change_bytes


class Topics:
    """Loses the connection at its first reading."""

    def __init__(self) -> None:
        self.read: list[list[str]] = []

    def configs_changed(self, topics) -> None:
        self.read.append(list(topics))
        if len(self.read) == 1:
            raise ZooKeeperUnreachable("here", 1)


def test_a_look_that_fails_halfway_is_repeated_in_full(monkeypatch) -> None:
    tree = SimpleNamespace(children=lambda path: ["config_change_1"], session=None)
    change = SimpleNamespace(data=[config_change_bytes("topics/t")])
    monkeypatch.setattr(notices, "read_many", lambda session, paths: change)
    topics = Topics()
    observer = ConfigsObserver(tree, log=None, topics=topics, defaults={}, counters=Counter())
    with pytest.raises(ZooKeeperUnreachable):
        observer.look()
    observer.look()
    observer.look()
    assert topics.read == [["t"], ["t"], []]
