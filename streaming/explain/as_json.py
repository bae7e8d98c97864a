"""Explanations as `helmstream explain --json` prints them."""

from __future__ import annotations

from typing import Any

import orjson

from state.partitions.ballots import Ballot
from streaming.explain.outcomes import Outcome
from streaming.explain.story import Explanation, GroupExplanation
from streaming.log.api import LogRecord


def explanation(one: Explanation) -> dict[str, Any]:
    """Return one change of a partition with its reasons."""
    persisted = _persisted(one.outcome)
    return {
        "topic": one.topic,
        "partition": one.partition,
        "partition_named": one.partition_named,
        "event": _event(one.change.offset, one.change.time_ms, one.event),
        "decided": dict(one.change.decided),
        "elections": None
        if one.reconstruction is None
        else [
            _election(ballot)
            for ballot in one.reconstruction.ballots
            if ballot.partition == one.partition
        ],
        "outcome_retained": one.outcome.retained,
        "outcome_damage": one.outcome.damage or None,
        "persisted": None if persisted is None else {**persisted, "lost": one.lost},
        "brokers": [_broker(broker, one) for broker in one.recipients],
        "brokers_complete": one.recipients_complete,
    }


def group_change(one: GroupExplanation) -> dict[str, Any]:
    """Return one change of a group."""
    return {
        "group": one.group,
        "event": _event(one.change.offset, one.change.time_ms, one.event),
        "changes": list(one.change.changes),
        "replies": list(one.change.replies),
        "outcome_retained": one.outcome.retained,
        "outcome_damage": one.outcome.damage or None,
        "persisted": _persisted(one.outcome),
    }


def _event(offset: int, time_ms: int, event: LogRecord | None) -> dict[str, Any]:
    return {
        "offset": offset,
        "time_ms": time_ms,
        "kind": None if event is None else event.kind,
        "key": None if event is None else event.key,
        "payload": None if event is None else orjson.loads(event.payload),
    }


def _election(ballot: Ballot) -> dict[str, Any]:
    return {
        "rule": ballot.rule.name.lower(),
        "isr": ballot.isr,
        "leader": ballot.leader,
        "unclean_allowed": ballot.unclean_allowed,
        "candidates": [
            {"broker": broker, "finding": finding.name.lower()}
            for broker, finding in ballot.candidates
        ],
    }


def _persisted(outcome: Outcome) -> dict[str, Any] | None:
    batch = outcome.batch
    if batch is None:
        return None
    return {"batch_id": batch["batch_id"], "written_at_ms": batch["written_at_ms"]}


def _broker(broker: int, one: Explanation) -> dict[str, Any]:
    return {
        "id": broker,
        "delivered_at_ms": one.outcome.delivered_ms.get(broker),
        "confirmed_at_ms": one.outcome.confirmed_ms.get(broker),
        "refused": one.refused_by(broker),
    }
