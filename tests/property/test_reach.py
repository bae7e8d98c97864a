"""The random logs of the other tests get somewhere: what can be decided is decided in some of them.

Everything is drawn with seeds: what fails here is a generator that has become poorer.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import orjson

from state.blocks import decode_block
from state.decisions import DecisionKind, Rule
from state.event_kinds import EventKind
from state.groups import kinds as group_kinds
from state.groups.image_changes import CHANGES
from tests.logs import group_intents
from tests.logs.state_logs import Author, author_of, random_intents

LOGS = 50
LEAST = 3
"""In how many of the logs everything is to be found that can be reached at all."""

UNREACHED_RULES = {
    Rule.NONE: "the absence of a rule",
    Rule.CONTROLLER_STARTED: "what is loaded has replicas: they start or stop, and that is said",
}
KINDS_ABOUT_GROUPS = {DecisionKind.CHANGE_GROUP}
EVENTS_ABOUT_GROUPS = set(group_kinds.READERS)
UNWRITTEN_EVENTS = {
    EventKind.GROUP_RECORDS_OVERTAKEN: "only a sink that appends out of order says it",
}
ASKED = ["several partitions", "by topic id"]


def seldom(found: Iterable[Iterable[object]], expected: Iterable[object]) -> dict[object, int]:
    """Return what is found in fewer than LEAST logs, and in how many."""
    counts = Counter(thing for one in found for thing in set(one))
    return {thing: counts[thing] for thing in expected if counts[thing] < LEAST}


def rules_of(author: Author) -> set[Rule]:
    blocks = (one for one in author.decided if one.kind is DecisionKind.CHANGE_PARTITIONS)
    return {Rule(rule) for one in blocks for rule in decode_block(one.body)[0]["rule"].tolist()}


def asked_of(author: Author) -> set[str]:
    """Return how leaders asked for ISRs."""
    kind = EventKind.ALTER_PARTITION_REQUESTED
    bodies = [orjson.loads(event.payload) for event in author.events if event.kind == kind]
    several = any(len(one["partitions"]) > 1 for one in bodies)
    by_id = any(one.get("topic_id") is not None for one in bodies)
    return {name for name, found in zip(ASKED, (several, by_id), strict=True) if found}


def errors_of(authors: Sequence[Author], api: str) -> list[int]:
    """Return what was answered to all partitions that were asked about."""
    decided = [one for author in authors for one in author.decided]
    replies: list[dict[str, Any]] = [
        orjson.loads(one.body) for one in decided if one.kind is DecisionKind.REPLY
    ]
    return [one["error"] for reply in replies if reply["api"] == api for one in reply["partitions"]]


def test_long_logs_reach_every_rule_and_every_kind_of_event_and_decision() -> None:
    authors = [author_of(random_intents(seed), plausible=bool(seed % 2)) for seed in range(LOGS)]
    assert seldom(map(rules_of, authors), set(Rule) - UNREACHED_RULES.keys()) == {}
    decided = ({one.kind for one in author.decided} for author in authors)
    assert seldom(decided, set(DecisionKind) - KINDS_ABOUT_GROUPS) == {}
    happened = ({event.kind for event in author.events} for author in authors)
    assert seldom(happened, set(EventKind) - EVENTS_ABOUT_GROUPS) == {}
    assert seldom(map(asked_of, authors), ASKED) == {}
    for api in ("alter_partition", "alter_reassignments"):
        errors = errors_of(authors, api)
        assert len(errors) > 2 * LOGS
        assert 1 / 3 < errors.count(0) / len(errors) < 3 / 4, api
        assert len(set(errors)) > 3, api


def test_every_log_begins_with_partitions_that_are_led() -> None:
    assert (author_of([]).slot().table.rows.leader > 0).all()


def test_long_logs_of_groups_reach_every_change_and_every_kind_of_event() -> None:
    authors = [group_intents.long_log(seed) for seed in range(LOGS)]
    changes = (
        {
            change["change"]
            for _, kind, body in author.decided
            if kind == DecisionKind.CHANGE_GROUP
            for step in body["steps"]
            for change in step["changes"]
        }
        for author in authors
    )
    assert seldom(changes, CHANGES) == {}
    happened = ({event.kind for event in author.events} for author in authors)
    assert seldom(happened, EVENTS_ABOUT_GROUPS - UNWRITTEN_EVENTS.keys()) == {}
