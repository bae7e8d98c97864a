"""Which topics ZooKeeper is known to have."""

from __future__ import annotations

from collections import Counter
from types import SimpleNamespace

from streaming.observers.topics import TopicsObserver
from streaming.observers.tree import Dirty
from streaming.zk.types import ZNode


def test_a_topic_that_nobody_can_read_is_listed() -> None:
    broken = ZNode(b"{", version=0, czxid=1, mzxid=1, mtime_ms=0, ephemeral_owner=0)
    tree = SimpleNamespace(
        children=lambda path: ["t"], get_many=lambda paths: [broken for _ in paths], session=None
    )
    counters: Counter[str] = Counter()
    observer = TopicsObserver(tree, log=None, counters=counters)
    assert not observer.is_listed("t")
    observer.look(Dirty(everything=True))
    assert counters["broken_topic_znodes"] == 1
    assert observer.is_listed("t") and "t" not in observer
    tree.children = lambda path: []
    observer.look(Dirty(everything=True))
    assert not observer.is_listed("t")
