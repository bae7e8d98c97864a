"""The benchmark's stub brokers answer what a controller can read."""

from __future__ import annotations

import numpy as np
import pytest

from streaming.wire.apis import APIS, ApiKey
from streaming.wire.partition_rows import PartitionRows
from streaming.wire.partition_rpcs import (
    encode_leader_and_isr,
    encode_stop_replica,
    encode_update_metadata,
)
from streaming.wire.requests import encode_request, encode_request_header
from streaming.wire.responses import decode_response
from tests.bench.stub_answers import VERSIONS, answer, read_header

TOPICS = {"a": [0, 1, 2], "long-topic-name": [7]}
COMMON = {"controller_id": 1000, "controller_epoch": 3, "broker_epoch": 44}


def rows() -> PartitionRows:
    partitions = [p for of_topic in TOPICS.values() for p in of_topic]
    count = len(partitions)
    replicas = np.array([[1, 2, 3], [2, 3, -1], [3, -1, -1], [1, 2, 3]], dtype=np.int32)
    none = np.full((count, 1), -1, dtype=np.int32)
    zeros = np.zeros(count, dtype=np.int32)
    return PartitionRows(
        topic_names=list(TOPICS),
        topic_ids=np.array([[1] * 16, [2] * 16], dtype=np.uint8),
        topic_index=np.array([0, 0, 0, 1], dtype=np.int32),
        partition=np.array(partitions, dtype=np.int32),
        controller_epoch=zeros,
        leader=replicas[:, 0],
        leader_epoch=zeros,
        isr=replicas[:, :2],
        partition_epoch=zeros,
        replicas=replicas,
        offline_replicas=none,
        adding=none,
        removing=none,
        is_new=zeros.astype(bool),
        leader_recovery_state=zeros.astype(np.int8),
        delete_partition=zeros.astype(bool),
    )


def answered(api: ApiKey, version: int, body: bytes) -> dict:
    request = encode_request_header(api, version, 5, "helmstream") + body
    found = read_header(request)
    assert found[:3] == (api, version, 5)
    correlation_id, response = decode_response(api, version, answer(*found[:3], request, found[3]))
    assert correlation_id == 5
    assert response["error_code"] == 0
    return response


@pytest.mark.parametrize("version", range(5, 8))
def test_leader_and_isr_is_answered_with_every_partition(version: int) -> None:
    body = encode_leader_and_isr(version, **COMMON, rows=rows(), live_leaders=[])
    response = answered(ApiKey.LEADER_AND_ISR, version, b"".join(body.parts(44)))
    assert {
        topic["topic_id"].bytes[0]: [
            (one["partition_index"], one["error_code"]) for one in topic["partition_errors"]
        ]
        for topic in response["topics"]
    } == {1: [(0, 0), (1, 0), (2, 0)], 2: [(7, 0)]}


@pytest.mark.parametrize("version", range(9))
def test_update_metadata(version: int) -> None:
    body = encode_update_metadata(version, **COMMON, rows=rows(), live_brokers=[])
    answered(ApiKey.UPDATE_METADATA, version, b"".join(body.parts(44)))


@pytest.mark.parametrize("version", range(5))
def test_stop_replica(version: int) -> None:
    body = encode_stop_replica(version, **COMMON, rows=rows())
    answered(ApiKey.STOP_REPLICA, version, b"".join(body.parts(44)))


@pytest.mark.parametrize("version", range(5))
def test_api_versions_lists_what_stubs_answer(version: int) -> None:
    request = encode_request(ApiKey.API_VERSIONS, version, 5, "helmstream", {})
    api, asked, correlation_id, start = read_header(request)
    _, response = decode_response(api, asked, answer(api, asked, correlation_id, request, start))
    listed = {e["api_key"]: (e["min_version"], e["max_version"]) for e in response["api_keys"]}
    assert listed == {int(key): versions for key, versions in VERSIONS.items()}
    assert all(last <= APIS[key].max_version for key, (_, last) in listed.items())
