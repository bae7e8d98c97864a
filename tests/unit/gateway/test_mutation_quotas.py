"""Who may create and delete how many partitions, and what becomes of who wants more."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest

from state.protocol_errors import ProtocolError
from streaming.gateway.connection import Limits
from streaming.gateway.mutation_quotas import MutationQuota, QuotaExceeded, TokenBucket, counted
from streaming.wire.apis import ApiKey
from tests.unit.gateway.support import BURST_S, Rig, with_gateway

RATE = 5.0
BURST = round(BURST_S * RATE)


class Clock:
    now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


def bucket(clock: Clock) -> TokenBucket:
    return TokenBucket(BURST_S, clock)


def test_a_bucket_is_full_and_fills_up_to_no_more() -> None:
    clock = Clock()
    one = bucket(clock)
    assert one.refill(RATE) == BURST
    one.take(BURST + 20)
    assert (one.refill(RATE), one.is_full) == (-20, False)
    clock.now_s += 3
    assert one.refill(RATE) == -5
    clock.now_s += 1_000
    assert one.is_full
    assert one.refill(RATE) == BURST
    one.take(-7)
    assert one.refill(RATE) == BURST


def test_a_rate_that_changes_counts_from_then_on() -> None:
    clock = Clock()
    one = bucket(clock)
    one.refill(RATE)
    one.take(BURST + 20)
    assert one.refill(2 * RATE) == -20
    clock.now_s += 1
    assert one.refill(2 * RATE) == -10


def test_who_knows_of_refusals_is_refused_once_it_is_overdrawn() -> None:
    clock = Clock()
    one = bucket(clock)
    quota = MutationQuota(one, RATE, strict=True)
    quota.take(BURST + 10)  # however many
    assert quota.throttle_ms() == 0
    with pytest.raises(QuotaExceeded):
        quota.take(1)
    assert quota.throttle_ms() == 2_000
    clock.now_s += 0.5
    assert quota.throttle_ms() == 1_500
    clock.now_s += 1.5
    again = MutationQuota(one, RATE, strict=True)
    again.take(1)
    assert again.throttle_ms() == 0


def test_who_does_not_is_told_to_wait() -> None:
    quota = MutationQuota(bucket(Clock()), RATE, strict=False)
    quota.take(BURST)
    assert quota.throttle_ms() == 0
    quota.take(5)
    quota.take(5)
    assert quota.throttle_ms() == 2_000


def test_without_a_rate_the_next_one_waits_for_ever() -> None:
    quota = MutationQuota(bucket(Clock()), 0.0, strict=True)
    quota.take(1)
    with pytest.raises(QuotaExceeded):
        quota.take(1)
    assert quota.throttle_ms() == 2**31 - 1


@pytest.mark.parametrize(
    ("error", "left"),
    [("NONE", BURST - 8), ("REQUEST_TIMED_OUT", BURST - 8), ("INVALID_PARTITIONS", BURST)],
)
def test_what_nothing_came_of_does_not_count(error: str, left: float) -> None:
    one = bucket(Clock())

    async def decide() -> dict[str, Any]:
        return {"error": ProtocolError[error]}

    asyncio.run(counted(MutationQuota(one, RATE, strict=True), 8, decide))
    assert one.refill(RATE) == left


def topics(**partitions: int) -> dict[str, Any]:
    listed = [
        {
            "name": name,
            "num_partitions": count,
            "replication_factor": 1,
            "assignments": [],
            "configs": [],
        }
        for name, count in partitions.items()
    ]
    return {"topics": listed, "timeout_ms": 1_000, "validate_only": False}


def errors(results: list[dict[str, Any]]) -> list[str]:
    return [ProtocolError(one["error_code"]).name for one in results]


def test_topics_are_created_until_it_is_too_much() -> None:
    async def scenario(rig: Rig) -> None:
        rig.cluster.per_s = RATE
        asked = topics(a=BURST, b=1, c=1, d=1)
        answer = await rig.ask(ApiKey.CREATE_TOPICS, 7, asked)
        exceeded = "THROTTLING_QUOTA_EXCEEDED"
        assert errors(answer["topics"]) == ["NONE", "NONE", exceeded, exceeded]
        assert 0 < answer["throttle_time_ms"] <= 1_000 / RATE
        assert "quota has been exceeded" in answer["topics"][2]["error_message"]
        created = rig.cluster.payloads("create_topic_requested")
        assert [one["topic"] for one in created] == ["a", "b"]

    with_gateway(scenario)


def test_a_dry_run_and_what_is_there_count_for_nothing() -> None:
    async def scenario(rig: Rig) -> None:
        rig.cluster.create("there", [[1]])
        rig.cluster.per_s = 0.1
        for asked in (
            topics(a=100) | {"validate_only": True},
            topics(there=100),
            topics(**{"..": 100}),
        ):
            answer = await rig.ask(ApiKey.CREATE_TOPICS, 7, asked)
            assert answer["throttle_time_ms"] == 0
        answer = await rig.ask(ApiKey.CREATE_TOPICS, 7, topics(b=1))
        assert errors(answer["topics"]) == ["NONE"]

    with_gateway(scenario)


def test_growth_and_deletion_count_by_their_partitions() -> None:
    async def scenario(rig: Rig) -> None:
        rig.cluster.create("t", [[1]] * 4)
        rig.cluster.per_s = 0.2  # two at once
        grown = {"name": "t", "count": 7, "assignments": None}
        asked = {"topics": [grown], "timeout_ms": 1_000, "validate_only": False}
        answer = await rig.ask(ApiKey.CREATE_PARTITIONS, 3, asked)
        assert (errors(answer["results"]), answer["throttle_time_ms"]) == (["NONE"], 0)
        asked["topics"] = [grown | {"count": 8}]
        answer = await rig.ask(ApiKey.CREATE_PARTITIONS, 3, asked)
        assert errors(answer["results"]) == ["THROTTLING_QUOTA_EXCEEDED"]
        assert 4_000 < answer["throttle_time_ms"] <= 5_000
        asked = {"topics": [{"name": "t", "topic_id": None}], "timeout_ms": 1_000}
        answer = await rig.ask(ApiKey.DELETE_TOPICS, 6, asked)
        assert errors(answer["responses"]) == ["THROTTLING_QUOTA_EXCEEDED"]
        assert rig.cluster.payloads("delete_topic_requested") == []

    with_gateway(scenario)


def test_old_clients_are_answered_and_then_kept_waiting() -> None:
    async def scenario(rig: Rig) -> None:
        rig.cluster.per_s = RATE
        client = await rig.client()
        began_s = time.monotonic()
        answer = await client.ask(ApiKey.CREATE_TOPICS, 5, topics(a=BURST, b=2))
        assert errors(answer["topics"]) == ["NONE", "NONE"]
        wait_s = answer["throttle_time_ms"] / 1_000
        assert 0 < wait_s <= 2 / RATE
        assert time.monotonic() - began_s < wait_s
        await client.ask(ApiKey.METADATA, 12, {"topics": None})
        assert time.monotonic() - began_s >= wait_s

    with_gateway(scenario)


def test_who_leaves_instead_of_waiting_gives_its_place_free() -> None:
    async def scenario(rig: Rig) -> None:
        rig.cluster.per_s = 0.0
        ways = {
            "a": lambda client: client.writer.write_eof(),
            "b": lambda client: client.writer.transport.abort(),
        }
        for topic, leave in ways.items():
            client = await rig.client()
            answer = await client.ask(ApiKey.CREATE_TOPICS, 5, topics(**{topic: 1}))
            assert answer["throttle_time_ms"] == 2**31 - 1
            await rig.counted("connections_open", 1)
            leave(client)
            await rig.counted("connections_open", 0)
        assert rig.gateway.counters["clients_throttled"] == 2

    with_gateway(scenario)


def test_who_waits_for_longer_than_it_may_be_silent_is_idle() -> None:
    async def scenario(rig: Rig) -> None:
        rig.cluster.per_s = 0.0
        client = await rig.client()
        await client.ask(ApiKey.CREATE_TOPICS, 5, topics(a=1))
        client.write(ApiKey.METADATA, 12, {"topics": None})
        await client.wait_closed()
        counters = rig.gateway.counters
        assert (counters["closed_idle"], counters["requests_Metadata"]) == (1, 0)

    with_gateway(scenario, limits=Limits(idle_max_ms=200))


def test_who_is_not_limited_waits_for_nothing() -> None:
    async def scenario(rig: Rig) -> None:
        answer = await rig.ask(ApiKey.CREATE_TOPICS, 7, topics(a=40_000))
        assert (errors(answer["topics"]), answer["throttle_time_ms"]) == (["NONE"], 0)

    with_gateway(scenario)
