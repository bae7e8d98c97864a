"""The whole comparison: books of all partitions and topics, fed with looks and decisions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson

from state.event_kinds import EventKind
from state.merge import MergedDecision
from streaming.log.api import NewRecord
from streaming.shadow.books import Books
from streaming.shadow.guesses import Ask
from streaming.shadow.leadership import assignment_of
from streaming.shadow.looks import Load, Look, SeenTopic
from streaming.shadow.our_decisions import apply_decisions
from streaming.shadow.requests import Requests
from streaming.shadow.topic_book import TopicBook
from streaming.shadow.topic_events import removed, topic_events
from streaming.shadow.verdicts import Verdict


@dataclass(slots=True)
class Settled:
    """What comparing led to: events that our machine is to fold, and what was found."""

    records: list[NewRecord] = field(default_factory=list)
    verdicts: list[Verdict] = field(default_factory=list)


class Comparison:
    """Compares our machine with a live controller; pure but for what it is told.

    The order of calls is: the events of a look are folded and their decisions taken (`fed`,
    `decided`), then the look itself (`saw`), then `settle` until it asks for nothing more, each
    time after its events were folded too.
    """

    def __init__(self, window_ms: int, grace_ms: int, *, leaders_ask: bool = True) -> None:
        """Start with nothing known. leaders_ask: leaders have their ISRs changed by the controller,
        as with inter-broker protocols from 2.7 on.
        """
        self.window_ms = window_ms
        self._books = Books(window_ms, grace_ms, leaders_ask=leaders_ask)
        self._epoch = -1
        self._requests = Requests()
        self._said: list[Verdict] = []

    @property
    def partitions(self) -> int:
        """How many partitions are compared."""
        return len(self._books.partitions)

    @property
    def topics(self) -> int:
        """How many topics are compared."""
        return len(self._books.topics)

    @property
    def unsettled(self) -> int:
        """How many partitions and topics wait for a match."""
        return len(self._books.open_partitions) + len(self._books.open_topics)

    def begin(self, load: Load) -> list[Verdict]:
        """Start afresh from a load; what waited is passed over."""
        verdicts = self._books.passed_over("another controller was elected")
        self._books.begin(load.held)
        self._epoch = load.epoch
        return verdicts

    def fed(self, records: Iterable[NewRecord], now_ms: int) -> list[NewRecord]:
        """Take what our machine is to hear, and return what it is to fold: a topic that comes again
        while it holds on to an earlier one is removed first.
        """
        folded: list[NewRecord] = []
        for record in records:
            if record.kind == EventKind.TOPIC_OBSERVED:
                before = self._books.topics.get(record.key)
                if before is not None and before.live is None:
                    if before.ended is None:
                        folded.append(removed(before))
                    self._said.append(before.gone_for_them())
                    self._books.forget(before.name)
                self._observed(orjson.loads(record.payload), now_ms)
            if record.kind == EventKind.TOPIC_DELETION_WITHDRAWN:
                continue  # the live controller goes on with it
            marked = record.kind == EventKind.TOPIC_DELETION_REQUESTED
            if marked and record.key in self._books.topics:
                self._books.topics[record.key].marked = True
            folded.append(record)
        return folded

    def _observed(self, body: Mapping[str, Any], now_ms: int) -> None:
        lists = (
            dict(zip(body["partitions"], body.get(name) or (), strict=False))
            for name in ("replicas", "adding", "removing")
        )
        seen = assignment_of(*lists)
        book = self._books.topics.get(body["topic"])
        if book is None:
            book = TopicBook(
                body["topic"], body.get("topic_id"), seen, seen, seen, changed_ms=now_ms
            )
            self._books.topics[book.name] = book
        else:
            book.mine = seen | book.mine

    def decided(
        self, decisions: Iterable[MergedDecision], now_ms: int, *, void: bool = False
    ) -> list[Verdict]:
        """Take our machine's decisions; void: they are not compared, the live controller had no
        reason to decide now.
        """
        return apply_decisions(self._books, decisions, now_ms, void=void)

    def saw(self, look: Look) -> None:
        """Take the results of a look whose inputs were folded."""
        for topic, seen in look.topics.items():
            self._saw_topic(topic, seen, look.over_ms)
        for subject, live in look.states.items():
            if subject[0] not in self._books.topics:
                continue  # of a topic that is gone already
            self._books.opened(subject).saw(live, look.over_ms)
        self._books.failed_log_dirs |= look.failed_log_dirs

    def _saw_topic(self, topic: str, seen: SeenTopic | None, now_ms: int) -> None:
        book = self._books.topics.get(topic)
        if book is not None:
            book.saw(None if seen is None else seen.assignment, now_ms)
            self._books.open_topics.add(topic)

    def settle(self, seen_ms: int) -> Settled:
        """Rule about everything that is open; seen_ms: what was written until then was seen."""
        settled = Settled(verdicts=self._said)
        self._said = []
        self._books.look_again()
        for name in sorted(self._books.open_topics):
            self._settle_topic(self._books.topics[name], settled, seen_ms)
        if settled.records:
            return settled  # partitions are looked at when topics have settled
        asks: list[Ask] = []
        for subject in sorted(self._books.open_partitions):
            ruling = self._books.partitions[subject].rule(self._books, seen_ms)
            settled.verdicts += ruling.verdicts
            if ruling.ask is not None:
                asks.append(ruling.ask)
            if ruling.settled:
                self._books.open_partitions.discard(subject)
        settled.records = self._requests.of(asks, self._books.brokers, self._epoch)
        return settled

    def _settle_topic(self, book: TopicBook, settled: Settled, seen_ms: int) -> None:
        ruling = book.rule(self.window_ms, seen_ms)
        settled.verdicts += ruling.verdicts
        settled.records += topic_events(
            book,
            ruling,
            self._requests,
            brokers=self._books.brokers,
            states=self._books.live_states(book),
        )
        if ruling.settled:
            self._books.open_topics.discard(book.name)
        if ruling.replace:
            settled.verdicts += self._books.replace(book, seen_ms)
        if ruling.forget:
            self._books.forget(book.name)
