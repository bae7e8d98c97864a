"""CreateTopics: what a request says, checked, and one event per topic."""

from __future__ import annotations

import asyncio
import random
import uuid
from collections import Counter
from dataclasses import dataclass
from typing import Any

from state.event_kinds import EventKind
from state.limits import PARTITIONS_MAX
from state.partitions.creation import name_error
from state.protocol_errors import ProtocolError
from state.topic_ids import topic_id_from_text
from streaming.gateway.admin import AdminRequests, in_time
from streaming.gateway.calls import Call, shortened
from streaming.gateway.mutation_quotas import MutationQuotas, Quota, QuotaExceeded, counted
from streaming.gateway.ports import ReplyBody
from streaming.gateway.topic_configs import config_error
from streaming.gateway.topic_policy import TopicPolicy
from streaming.mint_topic_id import mint_topic_id
from streaming.wire import since
from streaming.wire.schema_codec import Body

_DEFAULT = -1
_KRAFT_METADATA_TOPIC = "__cluster_metadata"
_DYNAMIC_TOPIC_CONFIG = 1
_FAULTLESS: Body = {
    "num_partitions": 1,
    "replication_factor": 1,
    "assignments": [],
    "configs": [],
}
"""What is asked of a name alone."""


@dataclass(frozen=True, slots=True)
class TopicDefaults:
    """What -1 means (num.partitions, default.replication.factor), and what the brokers' settings
    say of new topics: whether they have ids, and may have remote storage.
    """

    partitions: int
    replication_factor: int
    have_ids: bool = True
    remote_storage: bool = False


class Refused(Exception):
    """A topic that is not asked for: a protocol error and a sentence for the client."""

    def __init__(self, error: int, message: str | None = None) -> None:
        """Take the error code, and the message if there is one."""
        super().__init__(message)
        self.error = error
        self.message = message


class CreateTopics:
    """Answers CreateTopics (KafkaApis.handleCreateTopicsRequest, ZkAdminManager.createTopics).

    What needs the cluster's state (the name is taken, too few brokers) is decided by the query.
    Topic ids and the placement's random numbers are drawn here and travel in the event.
    """

    def __init__(
        self,
        requests: AdminRequests,
        defaults: TopicDefaults,
        chance: random.Random,
        quotas: MutationQuotas,
        policy: TopicPolicy | None = None,
    ) -> None:
        """Take who has requests decided, what new topics are like, a random source, how many
        partitions who may create, and what says which topics may not be.
        """
        self._requests = requests
        self._defaults = defaults
        self._chance = chance
        self._quotas = quotas
        self._policy = policy

    async def handle(self, call: Call) -> Body:
        """Answer when all topics were decided, in the order asked."""
        times = Counter(topic["name"] for topic in call.body["topics"])
        quota = await self._quotas.of(call, since.CREATE_TOPICS_QUOTA)
        results = await asyncio.gather(
            *(
                self._result(call, topic, times[topic["name"]], quota)
                for topic in call.body["topics"]
            )
        )
        return {"throttle_time_ms": quota.throttle_ms(), "topics": results}

    async def _result(self, call: Call, topic: Body, times: int, quota: Quota) -> Body:
        try:
            reply = await self._create(call, topic, times, quota)
        except (Refused, QuotaExceeded) as refused:
            return _failure(topic, refused.error, refused.message)
        error = in_time(reply["error"], call.body)
        if error != ProtocolError.NONE:
            return _failure(topic, error, reply.get("message"))
        return _success(call, topic, reply)

    async def _create(self, call: Call, topic: Body, times: int, quota: Quota) -> ReplyBody:
        if not self._requests.ready():
            raise Refused(ProtocolError.NOT_CONTROLLER)
        if times > 1:
            raise Refused(
                ProtocolError.INVALID_REQUEST, "the request names this topic more than once"
            )
        try:
            payload = self._payload(topic)
        except Refused:
            if not self._is_taken(topic["name"]):
                raise
            reply = await self._decided(self._payload(topic | _FAULTLESS), validate_only=True)
            if reply["error"] == ProtocolError.NONE:
                raise
            return reply
        dry = call.body["validate_only"]
        if self._policy is not None:
            reply = await self._allowed(payload, self._policy)
            if dry or reply["error"] != ProtocolError.NONE:
                return reply
        none = dry or self._is_taken(topic["name"])
        count = 0 if none else len(payload["assignment"] or ()) or payload["partitions"]
        return await counted(quota, count, lambda: self._decided(payload, validate_only=dry))

    async def _allowed(self, payload: dict[str, Any], policy: TopicPolicy) -> ReplyBody:
        """Return what a dry run is answered; raises Refused when the policy refuses what could be
        created, about which alone it is asked.
        """
        reply = await self._decided(payload, validate_only=True)
        if reply["error"] == ProtocolError.NONE:
            refusal = await policy.refusal(payload)
            if refusal is not None:
                raise Refused(*refusal)
        return reply

    def _is_taken(self, name: str) -> bool:
        """Return whether there is such a topic, which Kafka says before it looks at what else is
        asked (ZkAdminManager.createTopics); one that is being deleted has its name until it is
        gone.
        """
        image = self._requests.view.image()
        return image is not None and (name in image.topic_ids or name in image.deleting)

    async def _decided(self, payload: dict[str, Any], *, validate_only: bool) -> ReplyBody:
        kind = EventKind.CREATE_TOPIC_REQUESTED
        asked = payload | {"validate_only": validate_only}
        return await self._requests.reply(kind, payload["topic"], asked)

    def _payload(self, topic: Body) -> dict[str, Any]:
        _check_name(topic["name"])
        configs = _configs(topic, self._defaults.remote_storage)
        assignment = _assignment(topic)
        partitions, factor = topic["num_partitions"], topic["replication_factor"]
        count = len(assignment) if assignment else partitions
        if count > PARTITIONS_MAX:
            message = f"{count} partitions are more than the {PARTITIONS_MAX} a new topic may have"
            raise Refused(ProtocolError.INVALID_PARTITIONS, message)
        return {
            "topic": topic["name"],
            "topic_id": mint_topic_id() if self._defaults.have_ids else None,
            "partitions": self._defaults.partitions if partitions == _DEFAULT else partitions,
            "replication_factor": self._defaults.replication_factor
            if factor == _DEFAULT
            else factor,
            "assignment": assignment,
            "configs": configs,
            "start_index": self._chance.getrandbits(31),
            "shift": self._chance.getrandbits(31),
        }


def _check_name(name: str) -> None:
    if name == _KRAFT_METADATA_TOPIC:
        message = f"topic {name} is KRaft's own and cannot be created"
        raise Refused(ProtocolError.INVALID_REQUEST, message)
    if (error := name_error(name)) is not None:
        raise Refused(ProtocolError.INVALID_TOPIC_EXCEPTION, error)


def _configs(topic: Body, remote_storage: bool) -> dict[str, str]:
    nulls = sorted(config["name"] for config in topic["configs"] if config["value"] is None)
    if nulls:
        message = f"topic configs without a value: {', '.join(nulls)}"
        raise Refused(ProtocolError.INVALID_CONFIG, message)
    configs = {config["name"]: config["value"] for config in topic["configs"]}
    if (error := config_error(configs, remote_storage)) is not None:
        raise Refused(ProtocolError.INVALID_CONFIG, error)
    return configs


def _assignment(topic: Body) -> dict[str, list[int]] | None:
    if not topic["assignments"]:
        return None
    if (topic["num_partitions"], topic["replication_factor"]) != (_DEFAULT, _DEFAULT):
        message = "a replica assignment cannot go with a partition count or a replication factor"
        raise Refused(ProtocolError.INVALID_REQUEST, message)
    return {str(entry["partition_index"]): entry["broker_ids"] for entry in topic["assignments"]}


def _failure(topic: Body, error: int, message: str | None) -> Body:
    return {
        "name": topic["name"],
        "error_code": error,
        "error_message": message and shortened(message),
        "num_partitions": _DEFAULT,
        "replication_factor": _DEFAULT,
        "configs": [],
    }


def _success(call: Call, topic: Body, reply: dict[str, Any]) -> Body:
    """Return a created topic's result; a dry run has no topic id yet, and configs are those that
    were set, without the brokers' defaults.
    """
    created = None if call.body["validate_only"] else reply["topic_id"]
    return {
        "name": topic["name"],
        "topic_id": None if created is None else uuid.UUID(bytes=topic_id_from_text(created)),
        "error_code": ProtocolError.NONE,
        "error_message": None,
        "num_partitions": reply["partitions"],
        "replication_factor": reply["replication_factor"],
        "configs": [
            {
                "name": name,
                "value": value,
                "read_only": False,
                "config_source": _DYNAMIC_TOPIC_CONFIG,
                "is_sensitive": False,
            }
            for name, value in sorted(reply["configs"].items())
        ],
    }
