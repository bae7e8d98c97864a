"""The books of all partitions and topics, and what our machine knows beside them."""

from __future__ import annotations

from collections.abc import Mapping

from state.partitions.reassignment import Motion
from state.topic_partition import TopicPartition
from streaming.shadow.leadership import Leadership
from streaming.shadow.partition_book import PartitionBook
from streaming.shadow.topic_book import TopicBook
from streaming.shadow.verdicts import Verdict

_NOWHERE = Motion(())


class Books:
    """What is compared, and which of it is open: it waits for a match. It is the Surroundings of
    each partition's book.

    brokers: epochs of the registered ones by id, as our machine knows them. failed_log_dirs: those
    that announced a failed log directory and are still there.
    """

    def __init__(self, window_ms: int, grace_ms: int, *, leaders_ask: bool) -> None:
        """Start with no book."""
        self.window_ms = window_ms
        self.grace_ms = grace_ms
        self.leaders_ask = leaders_ask
        self.partitions: dict[TopicPartition, PartitionBook] = {}
        self.topics: dict[str, TopicBook] = {}
        self.open_partitions: set[TopicPartition] = set()
        self.open_topics: set[str] = set()
        self.brokers: dict[int, int] = {}
        self.failed_log_dirs: set[int] = set()
        self._kept: set[int] | None = None

    def keeps_nothing(self, broker: int) -> bool:
        """Return whether a broker has left all ISRs that it can leave, as one that shuts down does
        before it goes (KafkaController.doControlledShutdown): those with another live member.
        """
        return broker not in self._in_sync()

    def _in_sync(self) -> set[int]:
        """Return the brokers in the ISR of a partition as both have it, with a live one beside."""
        if self._kept is None:
            kept: set[int] = set()
            for book in self.partitions.values():
                if book.live is not None and book.live == book.mine:
                    live = [id_ for id_ in book.live.isr if id_ in self.brokers]
                    if len(live) > 1 and not self.deleting(book.subject[0]):
                        kept.update(live)
            self._kept = kept
        return self._kept

    def look_again(self) -> None:
        """Forget what was found out about all partitions: they may have changed."""
        self._kept = None

    def deleting(self, topic: str) -> bool:
        """Return whether a topic is being deleted."""
        book = self.topics.get(topic)
        return book is not None and book.marked

    def reassigning(self, subject: TopicPartition) -> bool:
        """Return whether a partition is being reassigned, or its topic's comparison is open."""
        return subject[0] in self.open_topics or self.motion(subject).in_progress

    def motion(self, subject: TopicPartition) -> Motion:
        """Return how a partition is placed by our machine; nowhere when it is not known."""
        topic, number = subject
        book = self.topics.get(topic)
        return _NOWHERE if book is None else book.mine.get(number, _NOWHERE)

    def begin(self, held: Mapping[TopicPartition, Leadership | None]) -> None:
        """Start afresh from the states that both have; None: there is none."""
        self.partitions.clear()
        self.topics.clear()
        self.open_partitions.clear()
        self.open_topics.clear()
        self.failed_log_dirs.clear()
        for subject, state in held.items():
            book = self.partitions[subject] = PartitionBook(subject)
            book.begin(state)
            book.live = state

    def passed_over(self, why: str) -> list[Verdict]:
        """Return that it cannot be seen any more whether what waits was done."""
        partitions = [one for book in self.partitions.values() for one in book.passed_over(why)]
        topics = [one for book in self.topics.values() for one in book.passed_over(why)]
        return partitions + topics

    def opened(self, subject: TopicPartition) -> PartitionBook:
        """Return a partition's book, which is open from now on."""
        self.open_partitions.add(subject)
        return self.partitions.setdefault(subject, PartitionBook(subject))

    def forget(self, topic: str) -> None:
        """Close the books of a topic and its partitions."""
        book = self.topics.pop(topic)
        self.open_topics.discard(topic)
        for number in book.mine.keys() | (book.live or {}).keys():
            self.partitions.pop((topic, number), None)
            self.open_partitions.discard((topic, number))

    def replace(self, book: TopicBook, now_ms: int) -> list[Verdict]:
        """Go on from a topic as ZooKeeper has it; return what is said of its partitions."""
        if book.live is None:
            self.forget(book.name)
            return []
        book.replace(book.live)
        there = [one for one in self._partitions_of(book) if one is not None]
        return [verdict for one in there for verdict in one.replace(self, now_ms)]

    def live_states(self, book: TopicBook) -> list[Leadership | None]:
        """Return the live states of a topic's partitions."""
        return [None if one is None else one.live for one in self._partitions_of(book)]

    def _partitions_of(self, book: TopicBook) -> list[PartitionBook | None]:
        """Return the books of a topic's live partitions; None where there is none."""
        return [self.partitions.get((book.name, number)) for number in book.live or ()]
