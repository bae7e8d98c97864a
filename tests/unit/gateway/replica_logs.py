"""Brokers that say of logs what Kafka's brokers say, and a topic without a leader."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from state.protocol_errors import ProtocolError
from streaming.wire.apis import ApiKey
from streaming.wire.requests import decode_request
from streaming.wire.responses import encode_response
from tests.fixtures.states import stored
from tests.unit.gateway.answering_broker import AnsweringBroker
from tests.unit.gateway.support import FakeCluster

TOPIC = "t"
LEADER_EPOCH = 21
LOGS = {ApiKey.API_VERSIONS: (0, 4), ApiKey.LIST_OFFSETS: (0, 9), ApiKey.FETCH: (0, 17)}


@dataclass(frozen=True)
class Replica:
    """A log: where each leader epoch ends in it, and the error that is answered in its place."""

    ends: Mapping[int, int]
    error: int = 0
    error_of_fetch: int = 0

    @property
    def end(self) -> int:
        return max(self.ends.values(), default=0)

    def fetched(self, asked: dict[str, Any]) -> dict[str, Any]:
        """Answer Fetch (Partition.readRecords, LeaderEpochFileCache.endOffsetFor)."""
        epoch = asked["last_fetched_epoch"]
        answer: dict[str, Any] = {"partition_index": asked["partition"], "error_code": 0}
        if self.error_of_fetch:
            return answer | {"error_code": self.error_of_fetch}
        if epoch > max(self.ends, default=-1):
            return answer | {"error_code": ProtocolError.OFFSET_OUT_OF_RANGE}
        known = max((one for one in self.ends if one <= epoch), default=-1)
        return answer | {"diverging_epoch": {"epoch": known, "end_offset": self.ends.get(known, 0)}}


def broker_with(id_: int, replicas: Mapping[int, Replica], **more: Any) -> AnsweringBroker:
    """Return a broker with these partitions of TOPIC."""

    async def answer(request: bytes) -> bytes:
        asked = decode_request(request, (ApiKey.LIST_OFFSETS, ApiKey.FETCH))
        head = asked.header
        (topic,) = asked.body["topics"]
        made = _ends if head.api_key == ApiKey.LIST_OFFSETS else _fetched
        body = made(topic["partitions"], replicas)
        return encode_response(head.api_key, head.api_version, head.correlation_id, body)

    return AnsweringBroker(id_, **({"ranges": dict(LOGS), "answer": answer} | more))


def _ends(asked: list[dict[str, Any]], replicas: Mapping[int, Replica]) -> dict[str, Any]:
    said = [
        {
            "partition_index": one["partition_index"],
            "error_code": replicas[one["partition_index"]].error,
            "offset": replicas[one["partition_index"]].end,
        }
        for one in asked
    ]
    return {"topics": [{"name": TOPIC, "partitions": said}]}


def _fetched(asked: list[dict[str, Any]], replicas: Mapping[int, Replica]) -> dict[str, Any]:
    said = [replicas[one["partition"]].fetched(one) for one in asked]
    return {"error_code": 0, "responses": [{"topic": TOPIC, "partitions": said}]}


def without_leader(cluster: FakeCluster, replicas: list[list[int]]) -> None:
    """Have partitions of TOPIC of which only broker 9, which is not there, was in sync."""
    body = {
        "topic": TOPIC,
        "partitions": [*range(len(replicas))],
        "replicas": replicas,
        "states": [stored(-1, [9], leader_epoch=LEADER_EPOCH)] * len(replicas),
    }
    cluster.happen("topic_observed", TOPIC, body)
