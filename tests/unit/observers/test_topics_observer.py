"""Which topics ZooKeeper is known to have."""

from __future__ import annotations

from collections import Counter
from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

import orjson
import pytest

from streaming.log.api import NewRecord
from streaming.observers import topics
from streaming.observers.overrides import Overrides
from streaming.observers.topics import TopicsObserver
from streaming.observers.tree import Dirty
from streaming.zk.types import ZNode
from streaming.zk.znodes import TopicZNode, topic_bytes


def observer_of(tree: Any, log: Any, counters: Counter[str]) -> TopicsObserver:
    return TopicsObserver(tree, log, counters, check=lambda: None, mint_topic_ids=False)


def test_a_topic_that_nobody_can_read_is_listed() -> None:
    broken = ZNode(b"{", version=0, czxid=1, mzxid=1, mtime_ms=0, ephemeral_owner=0)
    tree = SimpleNamespace(
        children=lambda path: ["t"], get_many=lambda paths: [broken for _ in paths], session=None
    )
    counters: Counter[str] = Counter()
    observer = observer_of(tree, None, counters)
    assert not observer.is_listed("t")
    observer.look(Dirty(reread_all=True))
    assert counters["broken_topic_znodes"] == 1
    assert observer.is_listed("t") and "t" not in observer
    assert observer.partition_count("t") == 0
    tree.children = lambda path: []
    observer.look(Dirty(reread_all=True))
    assert not observer.is_listed("t")


@pytest.mark.parametrize("path", ["/brokers/topics", "/brokers/topics/t"])
def test_a_topic_that_is_gone_when_it_is_to_be_observed_again_is_removed(path, monkeypatch) -> None:
    """Nothing else says so any more, and readers have it as it was."""
    monkeypatch.setattr(topics, "topic_overrides", lambda *read: [Overrides() for _ in read[2]])
    monkeypatch.setattr(topics, "read_states", lambda *read: [None for _ in read[1]])
    data = topic_bytes(TopicZNode({0: [1]}, "xVg7K6qyTvmxpuD7RnqU_w"))
    found = {"t": ZNode(data, version=0, czxid=1, mzxid=1, mtime_ms=0, ephemeral_owner=0)}
    tree = SimpleNamespace(
        children=lambda _: [*found],
        get_many=lambda paths: [found.get(one.rpartition("/")[2]) for one in paths],
        session=None,
    )
    log = Log()
    observer = observer_of(tree, log, Counter())
    observer.look(Dirty(reread_all=True))
    assert observer.partition_count("t") == 1
    found.clear()
    observer.look(Dirty(paths=frozenset([path]), reappend=frozenset(["t", "unseen"])))
    assert [(one.kind, orjson.loads(one.payload)) for one in log.records[1:]] == [
        ("topic_removed", {"topic": "t", "topic_id": "xVg7K6qyTvmxpuD7RnqU_w"}),
        ("topic_removed", {"topic": "unseen", "topic_id": None}),
    ]
    assert "t" not in observer


@pytest.mark.parametrize("is_gone", [False, True])
def test_a_topic_that_cannot_be_read_again_is_said_to_be_there_or_gone_as_soon_as_it_is(
    is_gone: bool, monkeypatch
) -> None:
    """Whoever asks about it is asked to ask again until then."""
    monkeypatch.setattr(topics, "topic_overrides", lambda *read: [Overrides() for _ in read[2]])
    monkeypatch.setattr(topics, "read_states", lambda *read: [None for _ in read[1]])
    found = {"t": ZNode(b"{", version=0, czxid=1, mzxid=1, mtime_ms=0, ephemeral_owner=0)}
    tree = SimpleNamespace(
        children=lambda _: [*found],
        get_many=lambda paths: [found.get(one.rpartition("/")[2]) for one in paths],
        session=None,
    )
    log, counters = Log(), Counter[str]()
    observer = observer_of(tree, log, counters)
    observer.look(Dirty(reappend=frozenset(["t"])))
    observer.look(Dirty(reread_all=True))
    assert (log.records, counters) == ([], {"broken_topic_znodes": 1})
    data = topic_bytes(TopicZNode({0: [1]}, "xVg7K6qyTvmxpuD7RnqU_w"))
    found["t"] = ZNode(data, version=1, czxid=1, mzxid=2, mtime_ms=0, ephemeral_owner=0)
    if is_gone:
        found.clear()
    observer.look(Dirty(paths=frozenset(["/brokers/topics"])))
    observer.look(Dirty(reread_all=True))
    kind = "topic_removed" if is_gone else "topic_observed"
    [said] = [(one.kind, orjson.loads(one.payload).get("observed_again")) for one in log.records]
    assert said == (kind, None if is_gone else True)
    assert observer.observed_again == (frozenset() if is_gone else {"t"}), "as what comes behind is"
    observer.followed_up(frozenset("t"))
    assert not observer.observed_again


def test_what_the_job_wants_observed_again_says_so(monkeypatch) -> None:
    monkeypatch.setattr(topics, "topic_overrides", lambda *read: [Overrides() for _ in read[2]])
    monkeypatch.setattr(topics, "read_states", lambda *read: [None for _ in read[1]])
    data = topic_bytes(TopicZNode({0: [1]}, "xVg7K6qyTvmxpuD7RnqU_w"))
    znode = ZNode(data, version=0, czxid=1, mzxid=1, mtime_ms=0, ephemeral_owner=0)
    tree = SimpleNamespace(
        children=lambda _: ["t"], get_many=lambda paths: [znode for _ in paths], session=None
    )
    log = Log()
    observer = observer_of(tree, log, Counter())
    observer.look(Dirty(reread_all=True))
    observer.look(Dirty(reappend=frozenset(["t"])))
    first, again = [orjson.loads(one.payload) for one in log.records]
    assert again == first | {"observed_again": True}


class Log:
    """Keeps what is appended."""

    def __init__(self) -> None:
        self.records: list[NewRecord] = []

    def append(self, records) -> None:
        self.records += records

    def append_async(self, records) -> Future:
        self.append(records)
        done: Future = Future()
        done.set_result(None)
        return done
