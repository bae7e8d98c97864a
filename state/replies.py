"""Answers to those who asked the controller for something."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

from state.decisions import Decision, DecisionKind, json_decision
from state.events import Event
from state.payloads.admin import AlterReassignmentsRequested, ElectLeadersRequested
from state.protocol_errors import ProtocolError


class Api(StrEnum):
    """Requests to the controller; the values stand in replies."""

    ALTER_PARTITION = "alter_partition"
    CONTROLLED_SHUTDOWN = "controlled_shutdown"
    CREATE_TOPIC = "create_topic"
    CREATE_PARTITIONS = "create_partitions"
    DELETE_TOPIC = "delete_topic"
    ELECT_LEADERS = "elect_leaders"
    ALTER_REASSIGNMENTS = "alter_reassignments"
    RAISE_LEADER_EPOCHS = "raise_leader_epochs"
    PRODUCER_IDS = "producer_ids"


def reply(event: Event, api: Api, request_id: str, error: ProtocolError, **fields: Any) -> Decision:
    """Return the reply to a request; fields: what its API says besides the error."""
    body = {"request_id": request_id, "api": api, "error": int(error), **fields}
    return json_decision(event.offset, DecisionKind.REPLY, body)


def partitions_reply(
    event: Event,
    api: Api,
    request: ElectLeadersRequested | AlterReassignmentsRequested,
    error: ProtocolError,
    partitions: list[dict[str, Any]],
) -> list[Decision]:
    """Return the reply with an answer per partition; nobody waits for one to a znode's request."""
    if request.request_id is None:
        return []
    fields = {"topic": request.topic, "partitions": partitions}
    return [reply(event, api, request.request_id, error, **fields)]
