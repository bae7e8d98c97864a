"""Produce, Fetch, ListOffsets and OffsetForLeaderEpoch: this node leads no partition, and says so
for each one asked.

A broker answers the same for partitions that it does not lead (KafkaApis, ReplicaManager). Clients
that judge a cluster by the APIs of the node they bootstrap at need them to be served.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from state.protocol_errors import ProtocolError
from streaming.gateway.calls import Call, HangUp
from streaming.wire.schema_codec import Body

_NO_ACKS = 0
_NOT_LEADER = int(ProtocolError.NOT_LEADER_OR_FOLLOWER)
_NOTHING = -1


async def produce(call: Call) -> Body:
    """Refuse every record batch.

    Raises HangUp for acks=0, which has no response: a broker closes the connection too.
    """
    if call.body["acks"] == _NO_ACKS:
        raise HangUp("produce with acks=0 to partitions that this node does not lead")
    responses = [
        {
            "name": topic["name"],
            "partition_responses": [
                {"index": one["index"], "error_code": _NOT_LEADER, "base_offset": _NOTHING}
                for one in topic["partition_data"]
            ],
        }
        for topic in call.body["topic_data"]
    ]
    return {"responses": responses}


async def fetch(call: Call) -> Body:
    """Refuse every partition; no fetch session is made."""
    responses = [
        {
            "topic": topic["topic"],
            "topic_id": topic["topic_id"],
            "partitions": [
                {
                    "partition_index": one["partition"],
                    "error_code": _NOT_LEADER,
                    "high_watermark": _NOTHING,
                    "records": b"",
                }
                for one in topic["partitions"]
            ],
        }
        for topic in call.body["topics"]
    ]
    return {"responses": responses}


async def list_offsets(call: Call) -> Body:
    """Refuse every partition."""
    return {"topics": [_refused_offsets(topic) for topic in call.body["topics"]]}


async def offsets_for_leader_epoch(call: Call) -> Body:
    """Refuse every partition."""
    return {
        "topics": [
            {
                "topic": topic["topic"],
                "partitions": [
                    {"partition": one["partition"], "error_code": _NOT_LEADER}
                    for one in topic["partitions"]
                ],
            }
            for topic in call.body["topics"]
        ]
    }


def _refused_offsets(topic: Mapping[str, Any]) -> Body:
    return {
        "name": topic["name"],
        "partitions": [
            {"partition_index": one["partition_index"], "error_code": _NOT_LEADER}
            for one in topic["partitions"]
        ],
    }
