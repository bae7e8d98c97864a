"""Requests with flipped bytes: whatever they decode to, no handler fails, every event is readable.

The made-up cluster parses and folds every event as the job does, and fails when a machine sets one
aside.
"""

from __future__ import annotations

import asyncio
import random
import uuid
from contextlib import suppress
from typing import Any

import pytest

from streaming.wire.apis import APIS, GATEWAY_APIS, ApiKey
from streaming.wire.frames import frame
from streaming.wire.requests import encode_request
from tests.unit.gateway.support import Rig, with_gateway

SEEDS = range(40)
TOPIC_ID = uuid.UUID(bytes=b"t" * 16)
BODIES: dict[ApiKey, dict[str, Any]] = {
    ApiKey.PRODUCE: {
        "acks": -1,
        "topic_data": [{"name": "t", "partition_data": [{"index": 0, "records": b"x"}]}],
    },
    ApiKey.FETCH: {"topics": [{"topic": "t", "partitions": [{"partition": 0}]}]},
    ApiKey.LIST_OFFSETS: {
        "topics": [{"name": "t", "partitions": [{"partition_index": 0, "timestamp": -1}]}]
    },
    ApiKey.METADATA: {"topics": [{"name": "t", "topic_id": None}]},
    ApiKey.CONTROLLED_SHUTDOWN: {"broker_id": 1, "broker_epoch": 101},
    ApiKey.FIND_COORDINATOR: {"key": "a", "key_type": 0, "coordinator_keys": ["a"]},
    ApiKey.SASL_HANDSHAKE: {"mechanism": "PLAIN"},
    ApiKey.SASL_AUTHENTICATE: {"auth_bytes": b"\0a\0b"},
    ApiKey.API_VERSIONS: {"client_software_name": "a", "client_software_version": "1"},
    ApiKey.CREATE_TOPICS: {
        "topics": [
            {
                "name": "new",
                "num_partitions": -1,
                "replication_factor": -1,
                "assignments": [{"partition_index": 0, "broker_ids": [1, 2]}],
                "configs": [{"name": "retention.ms", "value": "1"}],
            }
        ],
        "timeout_ms": 1000,
    },
    ApiKey.DELETE_TOPICS: {
        "topics": [{"name": "t", "topic_id": None}],
        "topic_names": ["t"],
        "timeout_ms": 1000,
    },
    ApiKey.CREATE_PARTITIONS: {
        "topics": [{"name": "t", "count": 3, "assignments": [{"broker_ids": [1, 2]}]}],
        "timeout_ms": 1000,
        "validate_only": False,
    },
    ApiKey.ELECT_LEADERS: {
        "election_type": 0,
        "topic_partitions": [{"topic": "t", "partitions": [0, 1]}],
        "timeout_ms": 1000,
    },
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: {
        "timeout_ms": 1000,
        "topics": [{"name": "t", "partitions": [{"partition_index": 0, "replicas": [2, 1]}]}],
    },
    ApiKey.LIST_PARTITION_REASSIGNMENTS: {
        "timeout_ms": 1000,
        "topics": [{"name": "t", "partition_indexes": [0]}],
    },
    ApiKey.INIT_PRODUCER_ID: {"transactional_id": None, "transaction_timeout_ms": 1},
    ApiKey.ALTER_PARTITION: {
        "broker_id": 1,
        "broker_epoch": 101,
        "topics": [
            {
                "topic_name": "t",
                "topic_id": TOPIC_ID,
                "partitions": [
                    {
                        "partition_index": 0,
                        "leader_epoch": 0,
                        "partition_epoch": 0,
                        "new_isr": [1, 2],
                        "new_isr_with_epochs": [{"broker_id": 1, "broker_epoch": 101}],
                    }
                ],
            }
        ],
    },
    ApiKey.LIST_GROUPS: {"states_filter": ["Stable"], "types_filter": ["classic"]},
    ApiKey.DESCRIBE_CONFIGS: {
        "resources": [
            {"resource_type": 4, "resource_name": "1000", "configuration_keys": ["a"]},
            {"resource_type": 4, "resource_name": "7", "configuration_keys": None},
        ]
    },
    ApiKey.ALTER_CONFIGS: {
        "resources": [
            {
                "resource_type": 4,
                "resource_name": "1000",
                "configs": [{"name": "a", "value": "b"}],
            }
        ]
    },
    ApiKey.INCREMENTAL_ALTER_CONFIGS: {
        "resources": [
            {
                "resource_type": 4,
                "resource_name": "1000",
                "configs": [{"name": "a", "config_operation": 1, "value": None}],
            }
        ]
    },
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS: {
        "deletions": [{"name": "u", "mechanism": 1}],
        "upsertions": [
            {
                "name": "v",
                "mechanism": 2,
                "iterations": 4096,
                "salt": b"s",
                "salted_password": b"p",
            }
        ],
    },
    ApiKey.DESCRIBE_LOG_DIRS: {"topics": [{"topic": "t", "partitions": [0]}]},
    ApiKey.LIST_TRANSACTIONS: {"state_filters": ["Ongoing"], "producer_id_filters": [1]},
    ApiKey.UPDATE_FEATURES: {"feature_updates": [{"feature": "x", "max_version_level": 1}]},
    ApiKey.DESCRIBE_CLUSTER: {"include_cluster_authorized_operations": True},
    ApiKey.ALLOCATE_PRODUCER_IDS: {"broker_id": 1, "broker_epoch": 101},
}
HEADER_BYTES = 8


def damaged(api_key: ApiKey, version: int, seed: int) -> bytes:
    """A request with one to three bytes behind the header's fixed part set to others."""
    chance = random.Random(f"{api_key} {version} {seed}")
    request = bytearray(encode_request(api_key, version, seed, "c", BODIES[api_key]))
    for _ in range(chance.randint(1, 3)):
        request[chance.randrange(HEADER_BYTES, len(request))] = chance.choice(
            [0, 1, 2, 0x7F, 0x80, 0xFF, chance.randrange(256)]
        )
    return frame(bytes(request))


async def ask(rig: Rig, request: bytes) -> None:
    client = await rig.client()
    client.writer.write(request)
    client.writer.write_eof()
    async with asyncio.timeout(20):
        with suppress(ConnectionError):  # closed before our end of the stream came
            await client.reader.read()
    await client.close()


def with_texts(value: Any, text: str) -> Any:
    """A body, all of whose strings are others."""
    if isinstance(value, dict):
        return {name: with_texts(one, text) for name, one in value.items()}
    if isinstance(value, list):
        return [with_texts(one, text) for one in value]
    return text if isinstance(value, str) else value


@pytest.mark.parametrize("api_key", sorted(GATEWAY_APIS), ids=lambda key: ApiKey(key).name)
def test_the_longest_names_are_answered(api_key: ApiKey) -> None:
    """Answers repeat them, perhaps in a sentence."""

    async def scenario(rig: Rig) -> None:
        api = APIS[api_key]
        for version in {api.min_version, api.max_version}:
            for text in ("n" * 0x7FFF, "9" * 0x7FFF, "\0" * 0x7FFF):
                body = with_texts(BODIES[api_key], text)
                await ask(rig, frame(encode_request(api_key, version, 1, "c", body)))
        counters = rig.gateway.counters
        assert counters["closed_failed"] == counters["closed_malformed"] == 0
        assert counters[f"requests_{api.name}"] > 0

    with_gateway(scenario)


@pytest.mark.parametrize("api_key", sorted(GATEWAY_APIS), ids=lambda key: ApiKey(key).name)
def test_damaged_requests_are_answered_or_close_their_connection(api_key: ApiKey) -> None:
    async def scenario(rig: Rig) -> None:
        rig.cluster.create("t", [[1, 2]], "dHR0dHR0dHR0dHR0dHR0dA")
        api = APIS[api_key]
        for version in range(api.min_version, api.max_version + 1):
            await asyncio.gather(*(ask(rig, damaged(api_key, version, seed)) for seed in SEEDS))
        counters = rig.gateway.counters
        assert counters["closed_failed"] == 0
        answered = counters[f"requests_{api.name}"] + counters["closed_malformed"]
        assert answered == len(SEEDS) * (api.max_version - api.min_version + 1)

    with_gateway(scenario)
