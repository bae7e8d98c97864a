"""The events that a ruling about a topic becomes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from state.event_kinds import EventKind
from streaming.log.api import NewRecord
from streaming.log.events import event
from streaming.shadow.leadership import Leadership, to_state
from streaming.shadow.requests import Requests, replicas_deleted
from streaming.shadow.topic_book import TopicBook, TopicRuling

_NOT_KNOWN = -1


def topic_events(
    book: TopicBook,
    ruling: TopicRuling,
    requests: Requests,
    *,
    brokers: Mapping[int, int],
    states: Sequence[Leadership | None],
) -> list[NewRecord]:
    """Return what our machine is to hear about a topic.

    brokers: epochs by id. states: the live ones, in the order of the live assignment.
    """
    if ruling.reassign:
        return [requests.reassign(book.name, ruling.reassign)]
    if ruling.mark:
        body = {"topic": book.name, "topic_id": book.topic_id}
        return [event(EventKind.TOPIC_DELETION_REQUESTED, body, book.name)]
    if ruling.answers:
        return replicas_deleted(book.name, ruling.answers, brokers)
    if not ruling.replace:
        return []
    return [removed(book), *([] if book.live is None else [_observed_again(book, states)])]


def removed(book: TopicBook) -> NewRecord:
    """Return that a topic is gone, or is there otherwise than our machine has it."""
    again = book.live is not None
    body = {"topic": book.name, "topic_id": book.topic_id, "observed_again": again}
    return event(EventKind.TOPIC_REMOVED, body, book.name)


def _observed_again(book: TopicBook, states: Sequence[Leadership | None]) -> NewRecord:
    live = book.live or {}
    body = {
        "topic": book.name,
        "topic_id": book.topic_id,
        "partitions": list(live),
        "replicas": [one.replicas for one in live.values()],
        "adding": [sorted(one.adding) for one in live.values()],
        "removing": [sorted(one.removing) for one in live.values()],
        "states": [to_state(one, _NOT_KNOWN) for one in states],
    }
    return event(EventKind.TOPIC_OBSERVED, body, book.name)
