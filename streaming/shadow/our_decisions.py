"""What our machine's decisions change in the books."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from typing import Any

import orjson

from state.bodies import RewriteAssignment
from state.decisions import DecisionKind
from state.merge import MergedDecision
from state.opened_decisions import open_body
from state.partitions.changes import EPOCH_DURING_DELETE
from state.protocol_errors import error_text
from state.reply_bodies import ControllerApi, partition_errors
from streaming.shadow.books import Books
from streaming.shadow.leadership import from_row
from streaming.shadow.partition_book import AwaitedChange
from streaming.shadow.verdicts import Verdict


def apply_decisions(
    books: Books, decisions: Iterable[MergedDecision], now_ms: int, *, void: bool = False
) -> list[Verdict]:
    """Apply our machine's decisions; return what those that end a topic show.

    void: they are not compared, the live controller had no reason to decide now. The next step of a
    move that is under way is, and may be missed.
    """
    verdicts: list[Verdict] = []
    decisions = list(decisions)
    refused = _refused_isrs(decisions)
    for one in decisions:
        match one.kind:
            case DecisionKind.UPDATE_BROKERS:
                brokers = orjson.loads(one.body)["brokers"]
                books.brokers = {each["id"]: each["epoch"] for each in brokers}
                books.failed_log_dirs &= books.brokers.keys()
            case DecisionKind.CHANGE_PARTITIONS:
                _changed(books, one, now_ms, void, refused)
            case DecisionKind.STOP_REPLICAS:
                _stopped(books, one)
            case DecisionKind.REWRITE_ASSIGNMENT | DecisionKind.COMPLETE_REASSIGNMENT:
                _rewritten(books, one, now_ms)
            case DecisionKind.DELETE_TOPIC:
                verdicts += _deleted(books, one, now_ms, void)
            case DecisionKind.UNMARK_TOPIC_DELETION:
                _unmarked(books, orjson.loads(one.body)["topic"])
            case DecisionKind.REPLY:
                _replied(books, orjson.loads(one.body))
            case _:
                pass
    return verdicts


def _refused_isrs(decisions: Iterable[MergedDecision]) -> set[tuple[int, str, int]]:
    """Return (event, topic, partition) of each ISR change that our machine refused."""
    replies = [
        (one.offset, orjson.loads(one.body)) for one in decisions if one.kind is DecisionKind.REPLY
    ]
    return {
        (offset, reply["topic"], number)
        for offset, reply in replies
        if reply["api"] == ControllerApi.ALTER_PARTITION
        for number, error in partition_errors(reply).items()
        if error
    }


def _changed(
    books: Books,
    decision: MergedDecision,
    now_ms: int,
    void: bool,
    refused: Set[tuple[int, str, int]],
) -> None:
    for row in open_body(decision.kind, decision.body):
        assert isinstance(row, dict)
        subject = (row["topic"], row["partition"])
        if (decision.offset, *subject) in refused:
            continue  # a higher leader epoch for a leader that exists in our guess only
        state = from_row(row)
        if state.version < 0:
            continue  # it never had a leader
        book = books.opened(subject)
        written = "write" in row["actions"] and (not void or books.reassigning(subject))
        decided = AwaitedChange(decision.offset, row["rule"], state) if written else None
        book.decided(decided, state, now_ms)


def _stopped(books: Books, decision: MergedDecision) -> None:
    for row in open_body(decision.kind, decision.body):
        assert isinstance(row, dict)
        book = books.topics.get(row["topic"])
        if book is not None and row["delete"] and row["leader_epoch"] == EPOCH_DURING_DELETE:
            book.stopped.add((row["broker"], row["partition"]))


def _rewritten(books: Books, decision: MergedDecision, now_ms: int) -> None:
    body: RewriteAssignment = orjson.loads(decision.body)
    book = books.topics.get(body["topic"])
    if book is not None:
        book.decided(decision.offset, decision.kind, body, now_ms)
        books.open_topics.add(book.name)


def _deleted(
    books: Books, decision: MergedDecision, now_ms: int, void: bool
) -> tuple[Verdict, ...]:
    book = books.topics.get(orjson.loads(decision.body)["topic"])
    if book is None:
        return ()
    ruling = book.deleted(decision.offset, now_ms)
    if void or ruling.forget:
        books.forget(book.name)
    else:
        books.open_topics.add(book.name)
    return ruling.verdicts


def _unmarked(books: Books, topic: str) -> None:
    """Deletion is not allowed: the topic lives on."""
    if topic in books.topics:
        books.topics[topic].marked = False


def _replied(books: Books, reply: Mapping[str, Any]) -> None:
    for number, error in partition_errors(reply).items():
        if not error:
            continue
        topic = reply["topic"]
        refusal = f"we answer {reply['api']} with error {error_text(error)}"
        book = books.partitions.get((topic, number))
        if book is not None:
            book.refusal = refusal
        if reply["api"] == ControllerApi.ALTER_REASSIGNMENTS and topic in books.topics:
            books.topics[topic].refusal = refusal
