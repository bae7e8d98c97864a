"""A broker on a real socket that believes something of a cluster, and answers by it."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from state.protocol_errors import ProtocolError
from state.topic_ids import topic_id_from_text
from state.topic_partition import TopicPartition
from streaming.verification.cluster import Cluster, Leadership, Topic
from streaming.wire.apis import ApiKey
from streaming.wire.requests import Request, decode_request
from streaming.wire.responses import encode_response
from tests.unit.gateway.answering_broker import AnsweringBroker

ASKED = (ApiKey.METADATA, ApiKey.LIST_OFFSETS, ApiKey.DESCRIBE_LOG_DIRS)
RANGES = {
    int(ApiKey.API_VERSIONS): (0, 4),
    int(ApiKey.METADATA): (0, 12),
    int(ApiKey.LIST_OFFSETS): (0, 9),
    int(ApiKey.DESCRIBE_LOG_DIRS): (0, 4),
}
FOLDER = "/data"


@dataclass
class Believer:
    """What a broker believes; hidden: topics that it does not show us; codes: of its replicas."""

    believes: Cluster
    hidden: frozenset[str] = frozenset()
    codes: dict[TopicPartition, int] = field(default_factory=dict)
    folders: list[dict[str, Any]] = field(default_factory=list)

    async def answer(self, request: bytes) -> bytes:
        asked = decode_request(request, ASKED)
        head = asked.header
        made = {
            ApiKey.METADATA: self._metadata,
            ApiKey.LIST_OFFSETS: self._offsets,
            ApiKey.DESCRIBE_LOG_DIRS: self._disks,
        }[head.api_key](asked)
        return encode_response(head.api_key, head.api_version, head.correlation_id, made)

    def _metadata(self, asked: Request) -> dict[str, Any]:
        assert asked.body["topics"] is None or not asked.body["allow_auto_topic_creation"]
        named = asked.body["topics"]
        shown = self.believes.topics.keys() - self.hidden
        names = sorted(shown) if named is None else [one["name"] for one in named]
        nodes = [
            {"node_id": id_, "host": "h", "port": 1, "rack": None} for id_ in self.believes.brokers
        ]
        return {
            "throttle_time_ms": 0,
            "brokers": nodes,
            "cluster_id": "c",
            "controller_id": self.believes.controller_id,
            "topics": [self._topic(name) for name in names],
        }

    def _topic(self, name: str) -> dict[str, Any]:
        topic = None if name in self.hidden else self.believes.topics.get(name)
        refusal = ProtocolError.UNKNOWN_TOPIC_OR_PARTITION
        if name in self.hidden:
            refusal = ProtocolError.TOPIC_AUTHORIZATION_FAILED
        said = Topic(None, {}) if topic is None else topic
        return {
            "error_code": refusal if topic is None else ProtocolError.NONE,
            "name": name,
            "topic_id": uuid.UUID(bytes=topic_id_from_text(said.topic_id)),
            "is_internal": False,
            "partitions": [
                _partition(number, held) for number, held in said.partitions.items() if held
            ],
        }

    def _offsets(self, asked: Request) -> dict[str, Any]:
        return {
            "throttle_time_ms": 0,
            "topics": [
                {
                    "name": topic["name"],
                    "partitions": [self._offset(topic["name"], one) for one in topic["partitions"]],
                }
                for topic in asked.body["topics"]
            ],
        }

    def _offset(self, topic: str, asked: Mapping[str, Any]) -> dict[str, Any]:
        number = asked["partition_index"]
        code = self.codes.get((topic, number), ProtocolError.NONE)
        if topic in self.hidden:
            code = ProtocolError.TOPIC_AUTHORIZATION_FAILED
        return {
            "partition_index": number,
            "error_code": code,
            "timestamp": -1,
            "offset": 0,
            "leader_epoch": asked["current_leader_epoch"],
        }

    def _disks(self, asked: Request) -> dict[str, Any]:
        assert asked.body["topics"] is None
        return {"throttle_time_ms": 0, "error_code": 0, "results": self.folders}


def disk(
    folder: str, replicas: Mapping[TopicPartition, bool], error_code: int = 0
) -> dict[str, Any]:
    """Return what is said of a disk; replicas: whether each is to move here from another one."""
    topics = [
        {
            "name": topic,
            "partitions": [
                {
                    "partition_index": partition,
                    "partition_size": 1,
                    "offset_lag": 0,
                    "is_future_key": future,
                }
            ],
        }
        for (topic, partition), future in replicas.items()
    ]
    return {"error_code": error_code, "log_dir": folder, "topics": topics}


def broker_of(id_: int, believer: Believer, **more: Any) -> AnsweringBroker:
    """Return a broker on a socket that answers as one believes, not started yet."""
    fields = {"ranges": dict(RANGES), "answer": believer.answer} | more
    return AnsweringBroker(id_, **fields)


def _partition(number: int, held: Leadership) -> dict[str, Any]:
    return {
        "error_code": 0,
        "partition_index": number,
        "leader_id": held.leader,
        "leader_epoch": held.leader_epoch,
        "replica_nodes": list(held.replicas),
        "isr_nodes": list(held.isr),
        "offline_replicas": [],
    }
