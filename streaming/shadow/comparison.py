"""The whole comparison: books of all partitions and topics, fed with looks and decisions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass, field
from typing import Any

import orjson

from state.decisions import DecisionKind
from state.event_kinds import EventKind
from state.merge import MergedDecision
from state.partitions.changes import EPOCH_DURING_DELETE
from state.records import open_body
from state.replies import Api
from streaming.log.api import NewRecord
from streaming.shadow.guesses import Ask
from streaming.shadow.leadership import Leadership, Motion, Partition, assignment_of, from_row
from streaming.shadow.looks import Load, Look, SeenTopic
from streaming.shadow.partition_book import Decided, PartitionBook
from streaming.shadow.requests import Requests, subjects_of
from streaming.shadow.topic_book import TopicBook
from streaming.shadow.topic_events import removed, topic_events
from streaming.shadow.verdicts import Status, Verdict

_NOWHERE = Motion(())


@dataclass(slots=True)
class Settled:
    """What comparing led to: events that our machine is to fold, and what was found."""

    records: list[NewRecord] = field(default_factory=list)
    verdicts: list[Verdict] = field(default_factory=list)


class Comparison:
    """Compares our machine with a live controller; pure but for what it is told.

    The order of calls is: the events of a look are folded and their decisions taken (`fed`,
    `decided`), then the look itself (`saw`), then `settle` until it asks for nothing more, each
    time after its events were folded too. It is the books' Surroundings.
    """

    def __init__(self, window_ms: int, grace_ms: int) -> None:
        """Start with nothing known."""
        self.window_ms = window_ms
        self.grace_ms = grace_ms
        self._partitions: dict[Partition, PartitionBook] = {}
        self._topics: dict[str, TopicBook] = {}
        self._open_partitions: set[Partition] = set()
        self._open_topics: set[str] = set()
        self._brokers: dict[int, int] = {}
        self._failed_log_dirs: set[int] = set()
        self._epoch = -1
        self._requests = Requests()
        self._said: list[Verdict] = []

    @property
    def brokers(self) -> Mapping[int, int]:
        """Epochs of the registered brokers by id, as our machine knows them."""
        return self._brokers

    @property
    def failed_log_dirs(self) -> Set[int]:
        """Brokers that announced a failed log directory and are still there."""
        return self._failed_log_dirs

    @property
    def partitions(self) -> int:
        """How many partitions are compared."""
        return len(self._partitions)

    @property
    def unsettled(self) -> int:
        """How many partitions and topics wait for a match."""
        return len(self._open_partitions) + len(self._open_topics)

    def deleting(self, topic: str) -> bool:
        """Return whether a topic is being deleted."""
        book = self._topics.get(topic)
        return book is not None and book.marked

    def reassigning(self, subject: Partition) -> bool:
        """Return whether a partition is being reassigned, or its topic's comparison is open."""
        return subject[0] in self._open_topics or self.motion(subject).moving

    def motion(self, subject: Partition) -> Motion:
        """Return how a partition is placed by our machine; nowhere when it is not known."""
        topic, number = subject
        book = self._topics.get(topic)
        return _NOWHERE if book is None else book.mine.get(number, _NOWHERE)

    def begin(self, load: Load) -> list[Verdict]:
        """Start afresh from a load; what waited is passed over."""
        verdicts = [
            _passed_over(book, one, "another controller was elected")
            for book in self._partitions.values()
            for one in book.open
        ]
        self._partitions.clear()
        self._topics.clear()
        self._open_partitions.clear()
        self._open_topics.clear()
        self._failed_log_dirs.clear()
        self._epoch = load.epoch
        for subject, held in load.held.items():
            book = PartitionBook(subject)
            book.begin(held)
            book.live = held
            self._partitions[subject] = book
        return verdicts

    def fed(self, records: Iterable[NewRecord], now_ms: int) -> list[NewRecord]:
        """Take what our machine is to hear, and return what it is to fold: a topic that comes again
        while it holds on to an earlier one is removed first.
        """
        folded: list[NewRecord] = []
        for record in records:
            if record.kind == EventKind.TOPIC_OBSERVED:
                before = self._topics.get(record.key)
                if before is not None and before.live is None:
                    folded.append(removed(before))
                    self._said.append(before.deleted_without_us())
                    self._forget(before.name)
                self._observed(orjson.loads(record.payload), now_ms)
            marked = record.kind == EventKind.TOPIC_DELETION_REQUESTED
            if marked and record.key in self._topics:
                self._topics[record.key].marked = True
            folded.append(record)
        return folded

    def _observed(self, body: Mapping[str, Any], now_ms: int) -> None:
        lists = (
            dict(zip(body["partitions"], body.get(name) or (), strict=False))
            for name in ("replicas", "adding", "removing")
        )
        seen = assignment_of(*lists)
        book = self._topics.get(body["topic"])
        if book is None:
            book = TopicBook(
                body["topic"], body.get("topic_id"), seen, seen, seen, changed_ms=now_ms
            )
            self._topics[book.name] = book
        else:
            book.mine = seen | book.mine

    def decided(
        self, decisions: Iterable[MergedDecision], now_ms: int, *, void: bool = False
    ) -> list[Verdict]:
        """Take our machine's decisions; void: they are not compared, the live controller had no
        reason to decide now.
        """
        verdicts: list[Verdict] = []
        for one in decisions:
            match one.kind:
                case DecisionKind.UPDATE_BROKERS:
                    brokers = orjson.loads(one.body)["brokers"]
                    self._brokers = {each["id"]: each["epoch"] for each in brokers}
                    self._failed_log_dirs &= self._brokers.keys()
                case DecisionKind.CHANGE_PARTITIONS:
                    self._changed(one, now_ms, void)
                case DecisionKind.STOP_REPLICAS:
                    self._stopped(one)
                case DecisionKind.REWRITE_ASSIGNMENT | DecisionKind.COMPLETE_REASSIGNMENT:
                    self._rewritten(one, now_ms, void)
                case DecisionKind.DELETE_TOPIC:
                    verdicts += self._deleted(one)
                case DecisionKind.UNMARK_TOPIC_DELETION:
                    self._unmarked(orjson.loads(one.body)["topic"])
                case DecisionKind.REPLY:
                    self._replied(orjson.loads(one.body))
                case _:
                    pass
        return verdicts

    def _changed(self, decision: MergedDecision, now_ms: int, void: bool) -> None:
        for row in open_body(decision.kind, decision.body):
            assert isinstance(row, dict)
            subject = (row["topic"], row["partition"])
            state = from_row(row)
            if state.version < 0:
                continue  # it never had a leader
            book = self._partitions.setdefault(subject, PartitionBook(subject))
            written = "write" in row["actions"] and not void
            decided = Decided(decision.offset, row["rule"], state) if written else None
            book.decided(decided, state, now_ms)
            self._open_partitions.add(subject)

    def _stopped(self, decision: MergedDecision) -> None:
        for row in open_body(decision.kind, decision.body):
            assert isinstance(row, dict)
            book = self._topics.get(row["topic"])
            if book is not None and row["leader_epoch"] == EPOCH_DURING_DELETE:
                book.stopped.add((row["broker"], row["partition"]))

    def _rewritten(self, decision: MergedDecision, now_ms: int, void: bool) -> None:
        body = orjson.loads(decision.body)
        book = self._topics.get(body["topic"])
        if book is not None:
            book.decided(decision.offset, decision.kind, body, now_ms)
            if void:
                book.open.clear()
            self._open_topics.add(book.name)

    def _deleted(self, decision: MergedDecision) -> list[Verdict]:
        book = self._topics.get(orjson.loads(decision.body)["topic"])
        if book is None:
            return []
        self._forget(book.name)
        gone = book.live is None
        return [
            Verdict(
                Status.AGREED if gone else Status.MISSED,
                decision.kind,
                book.name,
                None,
                decision.offset,
                "gone",
                "gone" if gone else "there",
            )
        ]

    def _unmarked(self, topic: str) -> None:
        """Deletion is not allowed: the topic lives on."""
        if topic in self._topics:
            self._topics[topic].marked = False

    def _replied(self, reply: Mapping[str, Any]) -> None:
        for (topic, number), error in subjects_of(reply):
            if not error:
                continue
            refusal = f"we answer {reply['api']} with error {error}"
            book = self._partitions.get((topic, number))
            if book is not None:
                book.refusal = refusal
            if reply["api"] == Api.ALTER_REASSIGNMENTS and topic in self._topics:
                self._topics[topic].refusal = refusal

    def _forget(self, topic: str) -> None:
        book = self._topics.pop(topic)
        self._open_topics.discard(topic)
        for number in book.mine.keys() | (book.live or {}).keys():
            self._partitions.pop((topic, number), None)
            self._open_partitions.discard((topic, number))

    def _replace(self, book: TopicBook) -> None:
        """Go on from a topic as ZooKeeper has it."""
        if book.live is None:
            self._forget(book.name)
            return
        book.replace(book.live)
        for number in book.live:
            of_topic = self._partitions.get((book.name, number))
            if of_topic is not None:
                of_topic.begin(of_topic.live)

    def saw(self, look: Look) -> None:
        """Take the results of a look whose inputs were folded."""
        for topic, seen in look.topics.items():
            self._saw_topic(topic, seen, look.time_ms)
        for subject, live in look.states.items():
            if subject[0] not in self._topics:
                continue  # of a topic that is gone already
            book = self._partitions.setdefault(subject, PartitionBook(subject))
            book.saw(live, look.time_ms)
            self._open_partitions.add(subject)
        self._failed_log_dirs |= look.failed_log_dirs

    def _saw_topic(self, topic: str, seen: SeenTopic | None, now_ms: int) -> None:
        book = self._topics.get(topic)
        if book is not None:
            book.saw(None if seen is None else seen.assignment, now_ms)
            self._open_topics.add(topic)

    def settle(self, now_ms: int) -> Settled:
        """Rule about everything that is open."""
        settled = Settled(verdicts=self._said)
        self._said = []
        for name in sorted(self._open_topics):
            self._settle_topic(self._topics[name], settled, now_ms)
        if settled.records:
            return settled  # partitions are looked at when topics have settled
        asks: list[Ask] = []
        for subject in sorted(self._open_partitions):
            ruling = self._partitions[subject].rule(self, now_ms)
            settled.verdicts += ruling.verdicts
            if ruling.ask is not None:
                asks.append(ruling.ask)
            if ruling.settled:
                self._open_partitions.discard(subject)
        settled.records = self._requests.of(asks, self._brokers, self._epoch)
        return settled

    def _settle_topic(self, book: TopicBook, settled: Settled, now_ms: int) -> None:
        ruling = book.rule(self.window_ms, now_ms)
        settled.verdicts += ruling.verdicts
        settled.records += topic_events(
            book, ruling, self._requests, brokers=self._brokers, states=self._states(book)
        )
        if ruling.settled:
            self._open_topics.discard(book.name)
        if ruling.replace:
            self._replace(book)

    def _states(self, book: TopicBook) -> list[Leadership | None]:
        books = (self._partitions.get((book.name, number)) for number in book.live or ())
        return [None if one is None else one.live for one in books]


def _passed_over(book: PartitionBook, decided: Decided, why: str) -> Verdict:
    return Verdict(
        Status.PASSED_OVER,
        decided.kind,
        *book.subject,
        decided.offset,
        decided.state.as_json(),
        None if book.live is None else book.live.as_json(),
        why,
    )
