"""ElectLeaders: one event per topic."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from state.event_kinds import EventKind
from state.partitions import election
from state.partitions.admin_elections import needs_election
from state.payloads.admin import NOT_ELECTED, ElectionType
from state.protocol_errors import ProtocolError
from state.reply_bodies import partition_errors
from state.topic_partition import TopicPartition
from streaming.gateway.admin import AdminRequests, in_time
from streaming.gateway.calls import Call
from streaming.gateway.passing.log_ends import NO_EPOCH, LogEnds, logs_of, unled
from streaming.image.cluster_image import ClusterImage
from streaming.wire.schema_codec import Body

_TYPES = {0: ElectionType.PREFERRED, 1: ElectionType.UNCLEAN}
_MESSAGES: dict[int, str] = {
    ProtocolError.UNKNOWN_TOPIC_OR_PARTITION: "The partition does not exist.",
    ProtocolError.INVALID_TOPIC_EXCEPTION: "The topic is being deleted",
    ProtocolError.PREFERRED_LEADER_NOT_AVAILABLE: "The preferred replica is not live or not in "
    "the ISR.",
    ProtocolError.ELIGIBLE_LEADERS_NOT_AVAILABLE: "No replica is live.",
}


class ElectLeaders:
    """Answers ElectLeaders (KafkaApis.handleElectLeaders).

    Asked for all partitions, those that need no election are neither tried nor answered.
    """

    def __init__(self, requests: AdminRequests, log_ends: LogEnds | None = None) -> None:
        """Take who has requests decided, and who asks brokers where logs end before an unclean
        election, None for nobody.
        """
        self._requests = requests
        self._log_ends = log_ends

    async def handle(self, call: Call) -> Body:
        """Answer when all topics were decided; version 0 knows preferred elections only."""
        election_type = _TYPES.get(call.body["election_type"])
        if election_type is None:
            return {"error_code": ProtocolError.INVALID_REQUEST, "replica_election_results": []}
        if not self._requests.ready():
            error = ProtocolError.NOT_CONTROLLER
            return {"error_code": error, "replica_election_results": _refused(call.body, error)}
        asked = self._asked(call, election_type)
        logs = await self._logs(election_type, asked)
        results = await asyncio.gather(
            *(
                self._elect(call, election_type, topic, partitions, logs.get(topic))
                for topic, partitions in asked.items()
            )
        )
        return {"error_code": ProtocolError.NONE, "replica_election_results": results}

    def _asked(self, call: Call, election_type: ElectionType) -> dict[str, list[int]]:
        listed = call.body["topic_partitions"]
        image = self._requests.view.image()
        if listed is None:
            deprioritized = self._requests.view.deprioritized()
            return {} if image is None else needed(image, election_type, deprioritized)
        asked: dict[str, dict[int, None]] = {}
        for entry in listed:
            asked.setdefault(entry["topic"], {}).update(dict.fromkeys(entry["partitions"]))
        return {topic: list(partitions) for topic, partitions in asked.items()}

    async def _elect(
        self,
        call: Call,
        election_type: ElectionType,
        topic: str,
        partitions: list[int],
        logs: list[list[list[int]]] | None,
    ) -> Body:
        payload: dict[str, Any] = {
            "topic": topic,
            "election_type": election_type,
            "partitions": partitions,
        }
        if logs is not None:
            payload["logs"] = logs
        kind = EventKind.ELECT_LEADERS_REQUESTED
        reply = await self._requests.reply(kind, topic, payload)
        errors, whole = partition_errors(reply), int(reply["error"])
        return {
            "topic": topic,
            "partition_result": [
                _result(
                    partition,
                    _answered(errors.get(partition, whole), election_type, call.body),
                    reply.get("message"),
                )
                for partition in partitions
            ],
        }

    async def _logs(
        self, election_type: ElectionType, asked: Mapping[str, list[int]]
    ) -> dict[str, list[list[list[int]]]]:
        """Return by topic where the logs of live replicas end, as the event has it; nothing where
        nobody is to be asked.
        """
        image = self._requests.view.image()
        if self._log_ends is None or election_type is not ElectionType.UNCLEAN or image is None:
            return {}
        replicas: dict[TopicPartition, list[int]] = {}
        whom: dict[int, dict[TopicPartition, int]] = {}
        for place in ((topic, one) for topic, partitions in asked.items() for one in partitions):
            epoch, replicas[place] = unled(image, place) or (NO_EPOCH, [])
            for broker in replicas[place]:
                if broker in image.brokers:
                    whom.setdefault(broker, {})[place] = epoch
        said = await self._log_ends.ask(whom)
        return {
            topic: [logs_of(replicas[topic, one], said.get((topic, one), {})) for one in partitions]
            for topic, partitions in asked.items()
        }


def _answered(error: int, election_type: ElectionType, asked: Body) -> int:
    """Return the error that an election is answered with (DelayedElectLeader). The reply has the
    error of a preferred one for any that could not be written.
    """
    if error in NOT_ELECTED.values():
        return NOT_ELECTED[election_type]
    return in_time(error, asked)


def needed(
    image: ClusterImage, election_type: ElectionType, deprioritized: Sequence[int]
) -> dict[str, list[int]]:
    """Return the partitions of an image by topic that such an election could change.

    An image does not say which of the registered brokers are shutting down: for an unclean election
    the partitions that those lead are not listed, though one that is named is elected for.
    """
    if not len(image):
        return {}
    columns = image.columns
    leader, replicas = columns["leader"], columns["replicas"]
    last = election.deprioritized(replicas, deprioritized)
    preferred = election.preferred_replicas(replicas, last)
    rows = needs_election(election_type, leader, preferred, image.registered(leader))
    topic_of, names = image.topic_of_rows()
    found: dict[str, list[int]] = {}
    for topic, partition in zip(
        topic_of[rows].tolist(), columns["partition"][rows].tolist(), strict=True
    ):
        found.setdefault(names[topic], []).append(partition)
    return found


def _refused(body: Body, error: int) -> list[Body]:
    return [
        {
            "topic": entry["topic"],
            "partition_result": [_result(partition, error) for partition in entry["partitions"]],
        }
        for entry in body["topic_partitions"] or ()
    ]


def _result(partition: int, error: int, message: str | None = None) -> Body:
    return {
        "partition_id": partition,
        "error_code": error,
        "error_message": message or _MESSAGES.get(error),
    }
