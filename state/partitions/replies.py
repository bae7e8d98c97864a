"""Replies to requests about some partitions of one topic that may also come through ZooKeeper."""

from __future__ import annotations

from typing import Any

from state.admin_payloads import AlterReassignmentsRequested, ElectLeadersRequested
from state.decisions import Decision, DecisionKind, json_decision
from state.events import Event
from state.protocol_errors import ProtocolError


def partitions_reply(
    event: Event,
    api: str,
    request: ElectLeadersRequested | AlterReassignmentsRequested,
    error: ProtocolError,
    partitions: list[dict[str, Any]],
) -> list[Decision]:
    """Return the reply with an answer per partition; nobody waits for one to a znode's request."""
    if request.request_id is None:
        return []
    body = {
        "request_id": request.request_id,
        "api": api,
        "topic": request.topic,
        "error": int(error),
        "partitions": partitions,
    }
    return [json_decision(event.offset, DecisionKind.REPLY, body)]
