"""Where logs end: what brokers are asked, and who is told of it before an unclean election."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest

from state.event_kinds import EventKind
from state.protocol_errors import ProtocolError
from state.topic_partition import TopicPartition
from streaming.gateway.passing.brokers import Brokers
from streaming.gateway.passing.log_ends import LogEnd, LogEnds
from streaming.gateway.passing.pool import PassingLimits
from streaming.security.connector import Connector
from streaming.wire.apis import ApiKey
from tests.unit.gateway.answering_broker import LISTENER, AnsweringBroker, brokers
from tests.unit.gateway.replica_logs import (
    LEADER_EPOCH,
    LOGS,
    TOPIC,
    Replica,
    broker_with,
    without_leader,
)
from tests.unit.gateway.support import NODE_ID, Rig, running, with_gateway

LIMITS = PassingLimits(answer_timeout_s=5.0)
ELECT = ApiKey.ELECT_LEADERS
PREFERRED, UNCLEAN = 0, 1


def said_by(
    stubs: list[AnsweringBroker], asked: Mapping[int, Mapping[TopicPartition, int]]
) -> dict[TopicPartition, dict[int, LogEnd]]:
    """Ask brokers, and return what they say."""
    found: dict[TopicPartition, dict[int, LogEnd]] = {}

    async def scenario(rig: Rig) -> None:
        async with brokers(rig, *stubs):
            log_ends = LogEnds(Brokers(rig.cluster, NODE_ID, LIMITS, Connector()), LISTENER)
            try:
                found.update(await log_ends.ask(asked))
            finally:
                await log_ends.close()

    with_gateway(scenario)
    return found


@pytest.mark.parametrize(
    ("ends", "leader_epoch", "found"),
    [
        ({0: 10}, 0, LogEnd(0, 10)),
        ({0: 10, 3: 25}, 7, LogEnd(3, 25)),
        ({2: 10, 3: 25, 7: 26}, 7, LogEnd(7, 26)),
        ({2: 10}, 2**31 - 1, LogEnd(2, 10)),
        ({}, 9, LogEnd(-1, 0)),
    ],
    ids=["first epoch", "earlier epochs", "present epoch", "far away", "no record"],
)
def test_the_last_epoch_of_a_log_is_found(
    ends: dict[int, int], leader_epoch: int, found: LogEnd
) -> None:
    stub = broker_with(1, {0: Replica(ends)})
    assert said_by([stub], {1: {(TOPIC, 0): leader_epoch}}) == {(TOPIC, 0): {1: found}}
    assert len(stub.requests) <= 64, "twice the bits of an epoch"


def test_followers_are_asked_as_by_who_debugs_and_never_send_records() -> None:
    stub = broker_with(1, {0: Replica({1: 5})})
    said_by([stub], {1: {(TOPIC, 0): 1}})
    offsets, *fetches = stub.bodies(ApiKey.LIST_OFFSETS, ApiKey.FETCH)
    assert offsets["replica_id"] == -2
    assert {(one["replica_id"], one["max_bytes"]) for one in fetches} == {(-2, 0)}
    (partition,) = fetches[0]["topics"][0]["partitions"]
    assert partition["fetch_offset"] == 2**63 - 1


@pytest.mark.parametrize("last", [0, 1, 5, 96, 99, 100])
def test_a_late_epoch_is_found_soon(last: int) -> None:
    stub = broker_with(1, {0: Replica({last: 5})})
    assert said_by([stub], {1: {(TOPIC, 0): 100}}) == {(TOPIC, 0): {1: LogEnd(last, 5)}}
    assert len(stub.requests) <= (6 if last > 95 else 14)


def test_of_many_partitions_some_are_asked_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("streaming.gateway.passing.log_ends._ASKED_AT_ONCE", 2)
    stub = broker_with(1, dict.fromkeys(range(5), Replica({0: 5})))
    found = said_by([stub], {1: {(TOPIC, one): 0 for one in range(5)}})
    assert found == {(TOPIC, one): {1: LogEnd(0, 5)} for one in range(5)}
    assert [len(one["topics"][0]["partitions"]) for one in stub.bodies(*LOGS)] == [2, 2, 2, 2, 1, 1]


def test_each_broker_says_it_of_many_partitions_at_once() -> None:
    stubs = [
        broker_with(1, {0: Replica({1: 5}), 1: Replica({2: 7}), 2: Replica({})}),
        broker_with(2, {0: Replica({0: 9}), 1: Replica({3: 6})}),
    ]
    asked = {1: {(TOPIC, one): 3 for one in range(3)}, 2: {(TOPIC, 0): 3, (TOPIC, 1): 3}}
    assert said_by(stubs, asked) == {
        (TOPIC, 0): {1: LogEnd(1, 5), 2: LogEnd(0, 9)},
        (TOPIC, 1): {1: LogEnd(2, 7), 2: LogEnd(3, 6)},
        (TOPIC, 2): {1: LogEnd(-1, 0)},
    }
    assert len(stubs[0].requests) == 4, "one for the ends, and three about epochs 3 to 0"


def test_what_a_broker_does_not_know_is_left_out() -> None:
    absent = Replica({1: 5}, error=ProtocolError.UNKNOWN_TOPIC_OR_PARTITION)
    broken = Replica({1: 5}, error_of_fetch=ProtocolError.KAFKA_STORAGE_ERROR)
    stub = broker_with(1, {0: absent, 1: Replica({1: 8}), 2: broken})
    asked = {1: {(TOPIC, one): 3 for one in range(3)}}
    assert said_by([stub], asked) == {(TOPIC, 1): {1: LogEnd(1, 8)}}


def test_a_broker_that_cannot_be_asked_is_left_out(caplog: pytest.LogCaptureFixture) -> None:
    async def hang_up(_: bytes) -> None:
        return None

    stubs = [broker_with(1, {}, answer=hang_up), broker_with(2, {0: Replica({1: 8})})]
    asked = {broker: {(TOPIC, 0): 3} for broker in (1, 2, 3)}
    assert said_by(stubs, asked) == {(TOPIC, 0): {2: LogEnd(1, 8)}}
    assert "logs of broker 1 end" in caplog.text
    assert "logs of broker 3 end" in caplog.text


def test_brokers_that_compare_no_epochs_say_nothing(caplog: pytest.LogCaptureFixture) -> None:
    ranges = LOGS | {ApiKey.FETCH: (0, 11)}
    stub = broker_with(1, {0: Replica({1: 5})}, ranges=ranges)
    assert said_by([stub], {1: {(TOPIC, 0): 3}}) == {}
    assert "share no version of Fetch" in caplog.text


class Known:
    """Says of partition 0 where logs end, and notes whom it was to ask."""

    def __init__(self) -> None:
        self.asked: list[Mapping[int, Mapping[TopicPartition, int]]] = []

    async def ask(
        self, replicas: Mapping[int, Mapping[TopicPartition, int]]
    ) -> dict[TopicPartition, dict[int, LogEnd]]:
        self.asked.append(replicas)
        return {(TOPIC, 0): {1: LogEnd(2, 5), 2: LogEnd(2, 6)}}


def elections(election_type: int) -> tuple[Known, list[dict[str, Any]], dict[str, Any]]:
    """Ask for elections in partitions 0 to 3; return who was asked, the event and the answer."""
    known = Known()
    asked = {
        "election_type": election_type,
        "topic_partitions": [{"topic": TOPIC, "partitions": [0, 1, 2, 3]}],
        "timeout_ms": 30_000,
    }

    async def scenario() -> tuple[list[dict[str, Any]], dict[str, Any]]:
        async with running(log_ends=known) as rig:
            without_leader(rig.cluster, [[1, 2, 7], [7, 8], [3, 9]])
            answer = await rig.ask(ELECT, 2, asked)
            return rig.cluster.payloads(EventKind.ELECT_LEADERS_REQUESTED), answer

    events, answer = asyncio.run(scenario())
    return known, events, answer


def test_before_an_unclean_election_live_replicas_are_asked() -> None:
    known, (event,), answer = elections(UNCLEAN)
    assert event["logs"] == [[[1, 2, 5], [2, 2, 6]], [], [], []]
    (asked,) = known.asked
    places = {broker: [*of_broker] for broker, of_broker in asked.items()}
    assert places == {1: [(TOPIC, 0)], 2: [(TOPIC, 0)], 3: [(TOPIC, 2)]}
    assert {epoch for of_broker in asked.values() for epoch in of_broker.values()} <= {
        LEADER_EPOCH,
        LEADER_EPOCH + 1,
    }
    (topic,) = answer["replica_election_results"]
    errors = {one["partition_id"]: one["error_code"] for one in topic["partition_result"]}
    assert errors == {
        0: ProtocolError.NONE,
        1: ProtocolError.ELIGIBLE_LEADERS_NOT_AVAILABLE,
        2: ProtocolError.NONE,
        3: ProtocolError.UNKNOWN_TOPIC_OR_PARTITION,
    }


def test_nobody_is_asked_before_a_preferred_election() -> None:
    known, (event,), _ = elections(PREFERRED)
    assert known.asked == []
    assert "logs" not in event
