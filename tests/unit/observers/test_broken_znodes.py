"""A znode that cannot be used is set aside, logged and counted, and hides no other."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterable
from types import SimpleNamespace
from typing import Any

import numpy as np
import orjson
import pytest

from state.event_kinds import EventKind
from streaming.log.api import NewRecord
from streaming.observers import deletions
from streaming.observers.brokers import BrokersObserver
from streaming.observers.deletions import DeletionsObserver
from streaming.observers.topics import TopicsObserver
from streaming.observers.tree import Dirty
from streaming.zk.types import ZNode

LONG = "n" * 70_000
"""No log takes an event about it."""

GONE = -1


class Log:
    """Keeps what is appended."""

    def __init__(self) -> None:
        self.records: list[NewRecord] = []

    def append(self, records: list[NewRecord]) -> None:
        self.records += records


class Names:
    """Topics of which all that are asked for are known, by the first of these ids; a look finds
    each by the next. read: what was looked at, in order, by its name under `/brokers/topics`.
    """

    def __init__(self, *ids: str | None) -> None:
        self.ids = [*ids] or [None]
        self.read: list[Any] = []

    def __contains__(self, name: str) -> bool:
        return True

    def topic_id(self, name: str) -> str | None:
        return self.ids[0]

    def look(self, dirty: Dirty) -> None:
        self.read.append({path.removeprefix("/brokers/topics/") for path in dirty.paths})
        del self.ids[:-1]


def registration(**changed: Any) -> ZNode:
    body = {"version": 5, "endpoints": ["PLAINTEXT://h:9092"], "jmx_port": -1} | changed
    return ZNode(orjson.dumps(body), 0, czxid=5, mzxid=5, mtime_ms=0, ephemeral_owner=1)


@pytest.mark.parametrize(
    ("name", "broken"),
    [
        ("2", registration(rack=7)),
        ("2", registration(features=[1])),
        ("2", registration(endpoints=["PLAINTEXT://h:99999999999999999999"])),
        ("3000000000", registration()),
    ],
)
def test_a_broken_registration_hides_no_other(
    name: str, broken: ZNode, caplog: pytest.LogCaptureFixture
) -> None:
    znodes = {"/brokers/ids/1": registration(rack="r"), f"/brokers/ids/{name}": broken}
    tree = SimpleNamespace(
        children=lambda path: ["1", name, "x", "9" * 5_000],
        get_many=lambda paths: [znodes[path] for path in paths],
    )
    log, counters = Log(), Counter[str]()
    observer = BrokersObserver(tree, log, 1000, counters)
    observer.look()
    observer.look()
    [told] = [orjson.loads(record.payload) for record in log.records]
    assert [one["id"] for one in told["registered"]] == [1]
    assert observer.ids == [1]
    assert counters == {"broken_broker_znodes": 1}
    assert f"registration of broker {name} is passed over" in caplog.text


def read(czxids: Iterable[int]) -> SimpleNamespace:
    """Znodes without data, as `read_many` returns them; GONE for one that is not there."""
    of_znodes = np.array(list(czxids))
    return SimpleNamespace(czxid=of_znodes, version=np.where(of_znodes == GONE, GONE, 0))


def observing(
    monkeypatch: pytest.MonkeyPatch, names: Names, *marks: list[int]
) -> tuple[DeletionsObserver, Log, list[int]]:
    """Topics t and u are marked; what is read of the marks, in order. How many there are is told
    to the list.
    """
    told = iter(marks)

    def read_marks(_: object, paths: list[str]) -> SimpleNamespace:
        names.read.append("marks")
        return read(next(told))

    monkeypatch.setattr(deletions, "read_many", read_marks)
    tree = SimpleNamespace(children=lambda path: ["t", "u"], session=None)
    log, counts = Log(), list[int]()
    return DeletionsObserver(tree, log, names, Counter[str](), counts.append), log, counts


def test_a_name_that_no_topic_may_have_is_not_deleted(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(deletions, "read_many", lambda _, paths: read(range(len(paths))))
    tree = SimpleNamespace(children=lambda path: ["t", "u", LONG], session=None)
    log, counters = Log(), Counter[str]()
    observer = DeletionsObserver(tree, log, Names(), counters, lambda _: None)
    observer.look()
    observer.look()
    assert [record.key for record in log.records] == ["t", "u"]
    assert counters == {"broken_admin_requests": 1}
    assert "is no legal name of a topic" in caplog.text


def test_a_mark_that_goes_while_it_is_read_is_no_request(monkeypatch: pytest.MonkeyPatch) -> None:
    """It would ask for the deletion of a topic that was made under that name meanwhile."""
    names, marks = Names(), ([5, 6], [5, 6], [GONE, 6], [9, 6], [9])
    observer, log, counts = observing(monkeypatch, names, *marks)
    observer.look()
    observer.look()
    assert [record.key for record in log.records] == ["t", "u"]
    observer.look()
    assert [record.key for record in log.records] == ["t", "u", "t"]
    assert counts == [2, 1, 2]
    first, third = ["marks", {"t", "u"}, "marks"], ["marks", {"t"}, "marks"]
    assert names.read == [*first, "marks", *third]


def test_a_mark_that_goes_while_topics_are_read_is_no_request(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What was seen then may be the topic that was made since; a mark of that one counts."""
    observer, log, _ = observing(monkeypatch, Names(), [5, 6], [GONE, 6], [8, 6], [8])
    observer.look()
    assert [record.key for record in log.records] == ["u"]
    observer.look()
    assert [record.key for record in log.records] == ["u", "t"]


def test_a_mark_means_the_topic_that_is_seen_while_it_is_there(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The one that was known under that name was deleted, another one made and marked."""
    observer, log, _ = observing(monkeypatch, Names("known", "there"), [5, 6], [GONE, 6])
    observer.look()
    assert [orjson.loads(record.payload) for record in log.records] == [
        {"topic": "u", "topic_id": "there"}
    ]


def test_a_topic_with_a_name_that_none_may_have_is_passed_over(
    caplog: pytest.LogCaptureFixture,
) -> None:
    znode = ZNode(b'{"partitions":{"0":[1]}}', 0, czxid=5, mzxid=5, mtime_ms=0, ephemeral_owner=0)
    tree = SimpleNamespace(
        children=lambda path: [LONG], get_many=lambda paths: [znode for _ in paths], session=None
    )
    counters = Counter[str]()
    observer = TopicsObserver(tree, Log(), counters, check=lambda: None, mint_topic_ids=False)
    with caplog.at_level(logging.WARNING):
        observer.look(Dirty(reread_all=True))
    assert (len(observer), observer.is_listed(LONG)) == (0, True)
    assert counters == {"broken_topic_znodes": 1}


def test_a_mark_that_went_is_told_of_while_its_topic_lives(monkeypatch: pytest.MonkeyPatch) -> None:
    names, marks = Names("an id"), ([5, 6], [5, 6], [GONE, 6], [GONE, GONE], [8, GONE], [8])
    observer, log, _ = observing(monkeypatch, names, *marks)
    observer.look()
    observer.look()
    said = log.records[-1]
    assert (said.kind, said.key) == (EventKind.TOPIC_DELETION_WITHDRAWN, "t")
    assert orjson.loads(said.payload) == {"topic": "t", "topic_id": "an id"}
    names.ids = ["another"]
    observer.look()
    assert log.records[-1] is said, "u is another topic by now"
    observer.look()
    assert log.records[-1].kind == EventKind.TOPIC_DELETION_REQUESTED
    assert len(log.records) == 4


def test_nobody_knows_which_topic_without_an_id_a_mark_meant(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    observer, log, _ = observing(monkeypatch, Names(None), [5, 6], [5, 6], [GONE, GONE])
    observer.look()
    observer.look()
    assert len(log.records) == 2
