"""Which requests under /admin are appended, and which once more."""

from __future__ import annotations

from collections import Counter

import orjson

from state.payloads.admin import REASSIGN_PARTITIONS_PATH
from streaming.observers.admin import AdminObserver
from streaming.observers.tree import Dirty
from streaming.zk.types import ZNode
from streaming.zk.znodes.admin import reassignment_bytes

NEW = Dirty(frozenset([REASSIGN_PARTITIONS_PATH]))


class World:
    """The request as it is, and what was appended about it."""

    def __init__(self) -> None:
        self.request: ZNode | None = None
        self.appended: list[tuple[str, str, list]] = []
        self.topics = {"t", "u", "x"}
        self.observer = AdminObserver(self, self, self, Counter())

    def __contains__(self, topic: str) -> bool:
        return topic in self.topics

    def get(self, path: str) -> ZNode | None:
        return self.request if path == REASSIGN_PARTITIONS_PATH else None

    def append(self, records) -> range:
        bodies = [(one.kind, one.key, orjson.loads(one.payload)) for one in records]
        self.appended += [(kind, key, body.get("targets")) for kind, key, body in bodies]
        return range(0)

    def ask(self, data: bytes, czxid: int = 7, version: int = 0) -> None:
        self.request = ZNode(data, version, czxid, czxid, 1, 0)

    def look(self, dirty: Dirty) -> list[tuple[str, str, list]]:
        self.appended = []
        self.observer.ask_again(dirty.reappend - dirty.unwritable)
        self.observer.look(dirty)
        return self.appended


def asked(topic: str, *targets: list[int]) -> tuple[str, str, list]:
    return "alter_reassignments_requested", topic, [*targets]


def following() -> World:
    world = World()
    world.ask(reassignment_bytes({("t", 0): [2], ("t", 1): [3], ("u", 0): [2]}))
    assert world.look(NEW) == [asked("t", [2], [3]), asked("u", [2])]
    assert world.look(NEW) == []
    return world


def test_what_is_still_asked_of_topics_that_are_decided_about_again_is_asked_again():
    world = following()
    assert world.look(Dirty(reappend=frozenset("t"))) == [asked("t", [2], [3])]
    world.ask(reassignment_bytes({("t", 1): [3], ("u", 0): [2]}), version=1)
    assert world.look(NEW) == []
    assert world.look(Dirty(reappend=frozenset("tx"))) == [asked("t", [3])]
    assert world.look(Dirty(reappend=frozenset("x"))) == [], "the request stays"


def test_of_topics_that_cannot_be_written_nothing_is_asked_again():
    again = Dirty(reappend=frozenset("tu"), unwritable=frozenset("t"))
    assert following().look(again) == [asked("u", [2])]


def test_a_new_request_is_not_taken_for_the_one_before():
    world = following()
    world.ask(reassignment_bytes({("t", 0): [4]}), czxid=8)
    assert world.look(Dirty(NEW.paths, reappend=frozenset("t"))) == [asked("t", [4])]
    world.ask(b"{", czxid=8, version=1)
    assert world.look(Dirty(reappend=frozenset("t"))) == []
    world.request = None
    assert world.look(Dirty(reappend=frozenset("t"))) == []


def test_a_topic_that_is_not_known_yet_is_looked_at_before_it_is_asked_about(monkeypatch):
    """It may have been created since the topics were looked at, as its request was."""
    world, looks = World(), []
    look = world.observer.look
    monkeypatch.setattr(world, "look", lambda dirty: looks.append((dirty, [*world.appended])))
    world.ask(reassignment_bytes({("new", 0): [2], ("t", 0): [2]}))
    look(NEW)
    assert looks == [(Dirty(frozenset(["/brokers/topics/new"])), [])]
    assert asked("new", [2]) in world.appended
