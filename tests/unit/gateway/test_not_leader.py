"""Produce, Fetch and ListOffsets are refused partition by partition, at every version."""

from __future__ import annotations

import uuid

import pytest

from streaming.wire.apis import APIS, ApiKey
from streaming.wire.frames import frame
from streaming.wire.requests import encode_request
from tests.unit.gateway.support import Rig, with_gateway

NOT_LEADER_OR_FOLLOWER = 6
TOPIC_ID = uuid.UUID("c55aca52-e14a-4b3b-9ab5-0b0ebe1a3e0c")


def versions(key: ApiKey) -> range:
    return range(APIS[key].min_version, APIS[key].max_version + 1)


@pytest.mark.parametrize("version", versions(ApiKey.PRODUCE))
def test_produce_is_refused_for_each_partition(version: int) -> None:
    async def scenario(rig: Rig) -> None:
        partitions = [{"index": index, "records": b"x"} for index in (0, 7)]
        body = {"acks": -1, "topic_data": [{"name": "t", "partition_data": partitions}]}
        answer = await rig.ask(ApiKey.PRODUCE, version, body)
        (topic,) = answer["responses"]
        assert topic["name"] == "t"
        assert [(p["index"], p["error_code"]) for p in topic["partition_responses"]] == [
            (0, NOT_LEADER_OR_FOLLOWER),
            (7, NOT_LEADER_OR_FOLLOWER),
        ]

    with_gateway(scenario)


@pytest.mark.parametrize("version", versions(ApiKey.FETCH))
def test_fetch_is_refused_for_each_partition(version: int) -> None:
    async def scenario(rig: Rig) -> None:
        topic = {"topic": "t"} if version < 13 else {"topic_id": TOPIC_ID}
        body = {"topics": [topic | {"partitions": [{"partition": 3}]}]}
        answer = await rig.ask(ApiKey.FETCH, version, body)
        (told,) = answer["responses"]
        assert {name: told[name] for name in topic} == topic
        assert [(p["partition_index"], p["error_code"]) for p in told["partitions"]] == [
            (3, NOT_LEADER_OR_FOLLOWER)
        ]

    with_gateway(scenario)


@pytest.mark.parametrize("version", versions(ApiKey.LIST_OFFSETS))
def test_list_offsets_is_refused_for_each_partition(version: int) -> None:
    async def scenario(rig: Rig) -> None:
        partitions = [{"partition_index": 1, "timestamp": -1}]
        body = {"topics": [{"name": "t", "partitions": partitions}]}
        answer = await rig.ask(ApiKey.LIST_OFFSETS, version, body)
        (topic,) = answer["topics"]
        assert [(p["partition_index"], p["error_code"]) for p in topic["partitions"]] == [
            (1, NOT_LEADER_OR_FOLLOWER)
        ]

    with_gateway(scenario)


@pytest.mark.parametrize("version", versions(ApiKey.OFFSET_FOR_LEADER_EPOCH))
def test_where_an_epoch_ended_is_refused_for_each_partition(version: int) -> None:
    async def scenario(rig: Rig) -> None:
        body = {"topics": [{"topic": "t", "partitions": [{"partition": 1, "leader_epoch": 2}]}]}
        answer = await rig.ask(ApiKey.OFFSET_FOR_LEADER_EPOCH, version, body)
        (topic,) = answer["topics"]
        assert topic["topic"] == "t"
        assert [(p["partition"], p["error_code"]) for p in topic["partitions"]] == [
            (1, NOT_LEADER_OR_FOLLOWER)
        ]

    with_gateway(scenario)


def test_produce_without_acks_closes_the_connection() -> None:
    async def scenario(rig: Rig) -> None:
        client = await rig.client()
        body = {"acks": 0, "topic_data": []}
        client.writer.write(frame(encode_request(ApiKey.PRODUCE, 9, 1, "c", body)))
        await client.wait_closed()
        assert rig.gateway.counters["closed_refused"] == 1

    with_gateway(scenario)
