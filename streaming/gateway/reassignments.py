"""AlterPartitionReassignments, one event per topic, and ListPartitionReassignments."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

import numpy as np

from state.event_kinds import EventKind
from state.matrix import any_in_row, unpad
from state.protocol_errors import ProtocolError
from streaming.gateway.admin import AdminRequests
from streaming.gateway.calls import Call, shortened
from streaming.gateway.ports import ReplyBody
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
        """Answer when all topics were decided. Without the role that is the whole answer: of all
        other errors Java's client hears by the partitions alone (KafkaAdminClient).
        """
        asked: dict[str, Targets] = {}
        for topic in call.body["topics"]:
            targets = {one["partition_index"]: one["replicas"] for one in topic["partitions"]}
            asked.setdefault(topic["name"], {}).update(targets)
        replies = await asyncio.gather(
            *(self._alter(topic, targets) for topic, targets in asked.items())
        )
        elsewhere = any(reply["error"] == ProtocolError.NOT_CONTROLLER for reply in replies)
        if elsewhere or not self._requests.ready():
            error = ProtocolError.NOT_CONTROLLER
            return {"error_code": error, "error_message": None, "responses": []}
        responses = [
            {"name": topic, "partitions": _results(targets, reply)}
            for (topic, targets), reply in zip(asked.items(), replies, strict=True)
        ]
        return {"error_code": ProtocolError.NONE, "error_message": None, "responses": responses}

    async def _alter(self, topic: str, targets: Targets) -> ReplyBody:
        payload = {
            "topic": topic,
            "partitions": list(targets),
            "targets": list(targets.values()),
        }
        kind = EventKind.ALTER_REASSIGNMENTS_REQUESTED
        return await self._requests.reply(kind, topic, payload)


def _results(asked: Iterable[int], reply: ReplyBody) -> list[Body]:
    """Return the answers about the partitions of a topic: the reply's own error, where there is
    one, stands for all of them.
    """
    error, message = reply["error"], reply.get("message")
    if error != ProtocolError.NONE:
        return [_result(partition, error, message) for partition in asked]
    return [_result(one["partition"], one["error"], one["message"]) for one in reply["partitions"]]


def _result(partition: int, error: int, message: str | None) -> Body:
    return {
        "partition_index": partition,
        "error_code": error,
        "error_message": message and shortened(message),
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
