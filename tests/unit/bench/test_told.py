"""The comparison of two controllers sees what one of them told and the other did not."""

from __future__ import annotations

import uuid
from pathlib import Path

import numpy as np
import pytest

from streaming.wire.apis import ApiKey
from streaming.wire.requests import encode_request
from tests.bench.controller.measure import Result, differences
from tests.bench.stub_answers import read_header
from tests.bench.told import Kept, write_told

EPOCHS = {1: 4_000_000_001, 2: 4_000_000_002}
CORRELATION_ID = 77
TOPIC_ID = uuid.UUID(int=7)


def told(folder: Path, name: str, leaders: dict[int, int]) -> Path:
    """Write what two brokers hear: partition 0 is led by 1, then by the broker given."""
    kept = []
    for broker_id, leader in leaders.items():
        for at_ns, said in enumerate((1, leader)):
            request = update_metadata(broker_id, said)
            api, _, _, start = read_header(request)
            kept.append(Kept(at_ns, broker_id, api, request, start))
    path = folder / name
    write_told(kept, EPOCHS, path)
    return path


def update_metadata(broker_id: int, leader: int) -> bytes:
    state = {
        "partition_index": 0,
        "controller_epoch": 1,
        "leader": leader,
        "leader_epoch": 5,
        "isr": [1, 2],
        "zk_version": 3,
        "replicas": [1, 2],
        "offline_replicas": [],
    }
    body = {
        "controller_id": 0,
        "is_k_raft_controller": False,
        "type": 0,
        "controller_epoch": 1,
        "broker_epoch": EPOCHS[broker_id],
        "topic_states": [
            {"topic_name": "t", "topic_id": TOPIC_ID, "partition_states": [state]},
        ],
        "live_brokers": [],
    }
    correlation_id = CORRELATION_ID + broker_id
    return encode_request(ApiKey.UPDATE_METADATA, 8, correlation_id, "bench", body)


def result(path: Path, leader: int = 1, topic: bytes = b"") -> Result:
    return Result({}, np.array([leader]), np.array([[1, 2, -1]]), [topic], path)


def test_equal_controllers_do_not_differ(tmp_path: Path) -> None:
    one = told(tmp_path, "one", {1: 2, 2: 2})
    other = told(tmp_path, "other", {1: 2, 2: 2})
    assert differences(result(one), result(other)) == {
        "znodes_differ": 0,
        "topics_differ": 0,
        "told_differ": 0,
        "told_examples": [],
    }


@pytest.mark.parametrize("leaders", [{1: 2, 2: 1}, {1: 2}])
def test_a_broker_that_was_told_otherwise_or_nothing_is_seen(
    tmp_path: Path, leaders: dict[int, int]
) -> None:
    one = told(tmp_path, "one", {1: 2, 2: 2})
    other = told(tmp_path, "other", leaders)
    found = differences(result(one), result(other))
    assert found["told_differ"] == 1
    assert found["told_examples"][0][:2] == ["2", "UPDATE_METADATA"]


def test_other_leaders_in_zookeeper_are_seen(tmp_path: Path) -> None:
    path = told(tmp_path, "told", {1: 2})
    assert differences(result(path), result(path, leader=2))["znodes_differ"] == 1


def test_other_replicas_in_zookeeper_are_seen(tmp_path: Path) -> None:
    path = told(tmp_path, "told", {1: 2})
    assert differences(result(path), result(path, topic=b"moved"))["topics_differ"] == 1
