"""The newest term, for those who want something of it and do not run it."""

from __future__ import annotations

from collections.abc import Iterable

from streaming.front.term import Term


class PresentTerm:
    """Passes on to the newest term, on any thread; does nothing before the first one.

    A term that is over stays the newest until the next one begins.
    """

    def __init__(self) -> None:
        """Start without one."""
        self._term: Term | None = None

    def begin(self, term: Term) -> Term:
        """Pass on to this one from now on, and return it."""
        self._term = term
        return term

    def topic_exists(self, name: str) -> bool:
        """Return whether ZooKeeper may have a topic, as far as the term has read it."""
        return self._term is None or self._term.topic_exists(name)

    def partition_count(self, topic: str) -> int:
        """Return how many partitions a topic has in ZooKeeper, 0 when it was not read."""
        return 0 if self._term is None else self._term.partition_count(topic)

    def min_insync_replicas(self, topic: str) -> int | None:
        """Return a topic's min.insync.replicas as it was read last, None when it never was."""
        return None if self._term is None else self._term.min_insync_replicas(topic)

    def deprioritized(self) -> tuple[int, ...]:
        """Return the brokers that lead where nobody else can, as was read last, ascending."""
        return () if self._term is None else self._term.deprioritized()

    def suspect(self) -> None:
        """Have it look whether the role is still ours."""
        if self._term is not None:
            self._term.suspect()

    def observe_again(self, topics: Iterable[str], unwritable: Iterable[str]) -> None:
        """Have topics appended as they are; unwritable: those that ZooKeeper takes no write of."""
        if self._term is not None:
            self._term.observe_again(topics, unwritable)

    def load_again(self, after: int) -> None:
        """Have everything loaded again, unless a load began behind that offset."""
        if self._term is not None:
            self._term.load_again(after)

    def close(self) -> None:
        """End its session, and let the role go with it."""
        if self._term is not None:
            self._term.close()
