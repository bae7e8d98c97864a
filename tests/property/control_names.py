"""A topic whose name is used again: it has an id, and observers say when it comes and goes.

They are late, so that the name may stand for another topic by then.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import Any

from state.topic_ids import topic_id_to_text
from streaming.zk.znodes.paths import DELETE_TOPICS_PATH
from tests.fixtures.observed_topics import topic_now
from tests.property.control_actions import AGAIN, TARGETS, topics
from tests.property.control_loop import BROKERS
from tests.property.control_restarts import RestartingLoop


class ObservedLoop(RestartingLoop):
    """A loop with observers of the topics that have an id."""

    def __init__(self, asking: Collection[int]) -> None:
        self._known: dict[str, str] = {}
        super().__init__(asking)

    def is_settled(self) -> bool:
        return super().is_settled() and self._known == self._there()

    def catch_up(self) -> None:
        super().catch_up()
        self.look()

    def go_on_without_job(self) -> None:
        self.look()

    def look(self) -> None:
        """The observers look at the topics (TopicsObserver)."""
        there = self._there()
        self._say_gone(name for name, id_ in self._known.items() if there.get(name) != id_)
        for name in sorted(there.keys() - self._known.keys()):
            self._say_there(name)
        self._known = there

    def loaded(self) -> None:
        """Take that a load told of all topics that there are."""
        self._known = self._there()

    def send(self, head: dict[str, Any], body: bytes = b"") -> None:
        if head["type"] != "reobserve":
            super().send(head, body)
            return
        there = topics(self)
        gone = [name for name in head["topics"] if name not in there]
        super().send(head | {"topics": [name for name in head["topics"] if name in there]}, body)
        self._say_gone(gone)
        ids = self._there()
        self._known |= {name: ids[name] for name in head["topics"] if name in ids}

    def _there(self) -> dict[str, str]:
        ids = {name: topic.topic_id for name, topic in topics(self).items()}
        return {name: id_ for name, id_ in ids.items() if id_ is not None}

    def _say_gone(self, names: Iterable[str]) -> None:
        for name in sorted(names):
            self.log.write("topic_removed", name, topic=name, topic_id=self._known.pop(name, None))

    def _say_there(self, name: str) -> None:
        self.log.write("topic_observed", name, **topic_now(self.store, name))


def renew(loop: ObservedLoop, a: int, b: int) -> None:
    """The topic with an id is created, or deleted, or created again as soon as it may be gone."""
    marked = AGAIN in loop.store.children(DELETE_TOPICS_PATH)
    if AGAIN in topics(loop) and not marked:
        loop.log.write("delete_topic_requested", AGAIN, request_id="delete", topic=AGAIN)
        return
    if marked:
        loop.take_answers()
    new_id = topic_id_to_text((1 + len(loop.log.events)).to_bytes(16, "big"))
    loop.log.create(AGAIN, [TARGETS[b % len(TARGETS)]], topic_id=new_id)


def look(loop: ObservedLoop, a: int, b: int) -> None:
    """The observers look at the topics."""
    loop.look()


def slow(loop: ObservedLoop, a: int, b: int) -> None:
    """A broker takes its requests late from now on; or all take what waits for them."""
    loop.slow = {BROKERS[a % len(BROKERS)]} if b % 2 else set()
    if not loop.slow:
        loop.deliver_late()


NAME_ACTIONS: dict[str, Callable[[ObservedLoop, int, int], None]] = {
    one.__name__: one for one in (renew, look, slow)
}
