"""AlterPartitionReassignments, one event per topic, and ListPartitionReassignments."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any

import numpy as np

from state.event_kinds import EventKind
from state.matrix import any_in_row, unpad
from state.protocol_errors import ProtocolError
from state.reply_bodies import ReassignmentAnswer
from streaming.gateway.admin import AdminRequests
from streaming.gateway.calls import Call
from streaming.image.cluster_image import ClusterImage
from streaming.wire.schema_codec import Body

Targets = dict[int, list[int] | None]
"""Replicas by partition; None takes a reassignment back."""


class AlterPartitionReassignments:
    """Answers AlterPartitionReassignments (KafkaApis.handleAlterPartitionReassignmentsRequest)."""

    def __init__(self, requests: AdminRequests) -> None:
        """Take who has requests decided."""
        self._requests = requests

    async def handle(self, call: Call) -> Body:
        """Answer when all topics were decided; without the role the error is the whole answer."""
        asked: dict[str, Targets] = {}
        for topic in call.body["topics"]:
            targets = {one["partition_index"]: one["replicas"] for one in topic["partitions"]}
            asked.setdefault(topic["name"], {}).update(targets)
        replies = await asyncio.gather(
            *(self._alter(topic, targets) for topic, targets in asked.items())
        )
        refused = [reply for reply in replies if reply["error"] != ProtocolError.NONE]
        if refused or not self._requests.ready():
            none = {"error": ProtocolError.NOT_CONTROLLER}
            first = min(refused, key=lambda reply: reply["error"], default=none)
            error, message = first["error"], first.get("message")
            return {"error_code": error, "error_message": message, "responses": []}
        responses = [
            {"name": topic, "partitions": [_result(one) for one in reply["partitions"]]}
            for topic, reply in zip(asked, replies, strict=True)
        ]
        return {"error_code": ProtocolError.NONE, "error_message": None, "responses": responses}

    async def _alter(self, topic: str, targets: Targets) -> dict[str, Any]:
        payload = {
            "topic": topic,
            "partitions": list(targets),
            "targets": list(targets.values()),
        }
        kind = EventKind.ALTER_REASSIGNMENTS_REQUESTED
        reply = await self._requests.reply(kind, topic, payload)
        if reply["error"] != ProtocolError.UNKNOWN_TOPIC_OR_PARTITION:
            return reply
        answers = [reply | {"partition": partition} for partition in targets]
        return {"error": ProtocolError.NONE, "partitions": answers}


def _result(answer: ReassignmentAnswer) -> Body:
    return {
        "partition_index": answer["partition"],
        "error_code": answer["error"],
        "error_message": answer["message"],
    }


class ListPartitionReassignments:
    """Answers ListPartitionReassignments from what was decided so far."""

    def __init__(self, requests: AdminRequests) -> None:
        """Take the cluster."""
        self._requests = requests

    async def handle(self, call: Call) -> Body:
        """Answer with what is in motion, among the partitions asked about if any are named."""
        image = self._requests.view.image()
        if image is None or not self._requests.ready():
            error = ProtocolError.NOT_CONTROLLER
            return {"error_code": error, "error_message": None, "topics": []}
        listed = call.body["topics"]
        asked = (
            None
            if listed is None
            else {(one["name"], number) for one in listed for number in one["partition_indexes"]}
        )
        topics: dict[str, list[Body]] = {}
        for topic, partition in in_motion(image):
            if asked is None or (topic, partition["partition_index"]) in asked:
                topics.setdefault(topic, []).append(partition)
        return {
            "error_code": ProtocolError.NONE,
            "error_message": None,
            "topics": [{"name": name, "partitions": rows} for name, rows in topics.items()],
        }


def in_motion(image: ClusterImage) -> Iterable[tuple[str, Body]]:
    """Yield (topic, partition) of everything in an image that is being reassigned."""
    if not len(image):
        return
    columns = image.columns
    topic_of, names = image.topic_of_rows()
    moving = np.flatnonzero(any_in_row(columns["adding"] | columns["removing"]))
    for row in moving.tolist():
        replicas = columns["replicas"][row]
        yield (
            names[topic_of[row]],
            {
                "partition_index": int(columns["partition"][row]),
                "replicas": unpad(replicas),
                "adding_replicas": replicas[columns["adding"][row]].tolist(),
                "removing_replicas": replicas[columns["removing"][row]].tolist(),
            },
        )
