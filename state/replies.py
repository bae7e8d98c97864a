"""Answers to those who asked the controller for something."""

from __future__ import annotations

from collections.abc import Sequence

from state.decisions import Decision, DecisionKind, json_decision
from state.events import Event
from state.payloads.admin import AlterReassignmentsRequested, ElectLeadersRequested
from state.protocol_errors import ProtocolError
from state.reply_bodies import PartitionError, PartitionsApi, PartitionsReply, Reply


def reply(event: Event, body: Reply) -> Decision:
    """Return the reply to a request."""
    return json_decision(event.offset, DecisionKind.REPLY, body)


def partitions_reply(
    event: Event,
    api: PartitionsApi,
    request: ElectLeadersRequested | AlterReassignmentsRequested,
    error: ProtocolError,
    partitions: Sequence[PartitionError],
) -> list[Decision]:
    """Return the reply with an answer per partition; nobody waits for one to a znode's request."""
    if request.request_id is None:
        return []
    body: PartitionsReply = {
        "request_id": request.request_id,
        "api": api,
        "error": error,
        "topic": request.topic,
        "partitions": partitions,
    }
    return [reply(event, body)]
