"""Partition rows as the wire tests use them, and the same content as bodies of the schema codec."""

from __future__ import annotations

import re
import uuid
from pathlib import Path
from typing import Any

import numpy as np

from streaming.wire.endpoints import Endpoint, SecurityProtocol
from streaming.wire.partition_rpcs import (
    BrokerNode,
    EncodedBody,
    LiveLeader,
    PartitionRows,
    encode_leader_and_isr,
    encode_stop_replica,
    encode_update_metadata,
)

GOLDEN = Path(__file__).parent / "golden"
CONTROLLER = {"controller_id": 1000, "controller_epoch": 7, "broker_epoch": 0x10000002A}


def end(
    listener: str, host: str, port: int, protocol: SecurityProtocol = SecurityProtocol.PLAINTEXT
) -> Endpoint:
    """A broker's endpoint."""
    return Endpoint(listener=listener, host=host, port=port, security_protocol=protocol)


BROKERS = (
    BrokerNode(
        1,
        "az-a",
        (
            end("CLIENT", "kafka-1", 9092),
            end("INTERNAL", "kafka-1", 9093, SecurityProtocol.SASL_SSL),
        ),
    ),
    BrokerNode(2, None, (end("CLIENT", "kafka-2", 9092),)),
)
LEADERS = (LiveLeader(1, "kafka-1", 9093), LiveLeader(2, "kafka-2", 9094))
VERSIONS = {"LeaderAndIsr": 7, "UpdateMetadata": 8, "StopReplica": 4}
RPC_VERSIONS = [(rpc, v) for rpc, newest in VERSIONS.items() for v in range(newest + 1)]


def ids(*rows: list[int], width: int) -> np.ndarray:
    """Broker ids padded with -1 to one width."""
    padded = [row + [-1] * (width - len(row)) for row in rows]
    return np.array(padded, np.int32).reshape(len(rows), width)


def int32(*values: int) -> np.ndarray:
    return np.array(values, np.int32)


def golden_rows(delete: tuple[bool, bool, bool] = (False, False, True)) -> PartitionRows:
    """Two topics with three partitions, the content of the golden files."""
    topic_id = bytes.fromhex("c5583b2ba2b24ef9b1a6e0fb467a94ff")
    return PartitionRows(
        topic_names=["t", "payments"],
        topic_ids=np.frombuffer(topic_id + bytes(16), np.uint8).reshape(2, 16),
        topic_index=int32(0, 0, 1),
        partition=int32(0, 1, 4),
        controller_epoch=int32(7, 6, 7),
        leader=int32(1, 2, -1),
        leader_epoch=int32(5, 3, 300),
        isr=ids([1, 2, 3], [2], [3], width=3),
        partition_epoch=int32(9, 4, 65536),
        replicas=ids([1, 2, 3], [2, 3], [3, 1, 2], width=3),
        offline_replicas=ids([], [3], [3], width=3),
        adding=ids([], [4], [], width=1),
        removing=ids([], [3], [], width=1),
        is_new=np.array([True, False, False]),
        leader_recovery_state=np.array([0, 1, 0], np.int8),
        delete_partition=np.array(delete),
    )


def golden_bytes(file_name: str) -> dict[int, bytes]:
    """The hex column of a golden file, by version."""
    sections = re.split(r"^\[version (\d+)\]\n", (GOLDEN / file_name).read_text(), flags=re.M)[1:]
    return {
        int(version): bytes.fromhex("".join(line.split()[0] for line in text.splitlines() if line))
        for version, text in zip(sections[::2], sections[1::2], strict=True)
    }


def encode(rpc: str, version: int, rows: PartitionRows) -> EncodedBody:
    """The columns' encoding, with the brokers of the golden files."""
    if rpc == "LeaderAndIsr":
        return encode_leader_and_isr(version, **CONTROLLER, rows=rows, live_leaders=LEADERS)
    if rpc == "UpdateMetadata":
        return encode_update_metadata(version, **CONTROLLER, rows=rows, live_brokers=BROKERS)
    return encode_stop_replica(version, **CONTROLLER, rows=rows)


def as_body(rows: PartitionRows) -> dict[str, dict[str, Any]]:
    """The same request as a body for the schema codec, one partition at a time, for each RPC."""
    topics: dict[int, dict[str, Any]] = {}
    for row, topic in enumerate(rows.topic_index.tolist()):
        fields = _topic_fields(rows, topic)
        topics.setdefault(topic, fields)["states"].append(_partition_fields(rows, row))
    states = [state for topic in topics.values() for state in topic["states"]]
    return {
        "LeaderAndIsr": CONTROLLER
        | {
            "ungrouped_partition_states": [_only(s, LEADER_AND_ISR_FIELDS) for s in states],
            "topic_states": _topic_states(topics, LEADER_AND_ISR_FIELDS, topic_id=True),
            "live_leaders": [
                {"broker_id": leader.id, "host_name": leader.host, "port": leader.port}
                for leader in LEADERS
            ],
        },
        "UpdateMetadata": CONTROLLER
        | {
            "ungrouped_partition_states": [_only(s, UPDATE_METADATA_FIELDS) for s in states],
            "topic_states": _topic_states(topics, UPDATE_METADATA_FIELDS, topic_id=True),
            "live_brokers": [_broker_fields(broker) for broker in BROKERS],
        },
        "StopReplica": CONTROLLER
        | {
            "delete_partitions": any(state["delete_partition"] for state in states),
            "ungrouped_partitions": [_only(s, ["topic_name", "partition_index"]) for s in states],
            "topics": [
                {
                    "name": topic["topic_name"],
                    "partition_indexes": [s["partition_index"] for s in topic["states"]],
                }
                for topic in topics.values()
            ],
            "topic_states": _topic_states(topics, STOP_REPLICA_FIELDS, topic_id=False),
        },
    }


COMMON_FIELDS = [
    "topic_name", "partition_index", "controller_epoch", "leader", "leader_epoch", "isr",
    "replicas",
]  # fmt: skip
LEADER_AND_ISR_FIELDS = [
    *COMMON_FIELDS, "partition_epoch", "adding_replicas", "removing_replicas", "is_new",
    "leader_recovery_state",
]  # fmt: skip
UPDATE_METADATA_FIELDS = [*COMMON_FIELDS, "zk_version", "offline_replicas"]
STOP_REPLICA_FIELDS = ["partition_index", "leader_epoch", "delete_partition"]


def _only(fields: dict[str, Any], names: list[str]) -> dict[str, Any]:
    return {name: fields[name] for name in names}


def _topic_states(
    topics: dict[int, dict[str, Any]], names: list[str], *, topic_id: bool
) -> list[dict[str, Any]]:
    return [
        {"topic_name": topic["topic_name"]}
        | ({"topic_id": topic["topic_id"]} if topic_id else {})
        | {"partition_states": [_only(state, names) for state in topic["states"]]}
        for topic in topics.values()
    ]


def _topic_fields(rows: PartitionRows, topic: int) -> dict[str, Any]:
    topic_id = uuid.UUID(bytes=rows.topic_ids[topic].tobytes())
    return {"topic_name": rows.topic_names[topic], "topic_id": topic_id, "states": []}


def _partition_fields(rows: PartitionRows, row: int) -> dict[str, Any]:
    def unpadded(column: np.ndarray) -> list[int]:
        return [broker for broker in column[row].tolist() if broker != -1]

    return {
        "topic_name": rows.topic_names[rows.topic_index[row]],
        "partition_index": int(rows.partition[row]),
        "controller_epoch": int(rows.controller_epoch[row]),
        "leader": int(rows.leader[row]),
        "leader_epoch": int(rows.leader_epoch[row]),
        "isr": unpadded(rows.isr),
        "partition_epoch": int(rows.partition_epoch[row]),
        "zk_version": int(rows.partition_epoch[row]),
        "replicas": unpadded(rows.replicas),
        "offline_replicas": unpadded(rows.offline_replicas),
        "adding_replicas": unpadded(rows.adding),
        "removing_replicas": unpadded(rows.removing),
        "is_new": bool(rows.is_new[row]),
        "leader_recovery_state": int(rows.leader_recovery_state[row]),
        "delete_partition": bool(rows.delete_partition[row]),
    }


def _broker_fields(broker: BrokerNode) -> dict[str, Any]:
    return {
        "id": broker.id,
        "v0_host": broker.endpoints[0].host,
        "v0_port": broker.endpoints[0].port,
        "rack": broker.rack,
        "endpoints": [
            {
                "port": endpoint.port,
                "host": endpoint.host,
                "listener": endpoint.listener,
                "security_protocol": endpoint.security_protocol,
            }
            for endpoint in broker.endpoints
        ],
    }
