"""What the coordinator of a transaction is asked, and what its answers are worth."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from state.protocol_errors import ProtocolError
from streaming.gateway.groups.transactions import Producing
from streaming.internal_topics import TRANSACTION_TOPIC
from streaming.offsets.txn_verification import TxnVerification
from streaming.security.connector import Connector
from streaming.wire.apis import ApiKey
from tests.unit.gateway.answering_broker import LISTENER, AnsweringBroker, answering, brokers
from tests.unit.gateway.support import NODE_ID, Rig, with_gateway

VERIFY = ApiKey.ADD_PARTITIONS_TO_TXN
PRODUCING = Producing("x", 9, 1, partition=4, version=4)
ASKED = {
    "transactional_id": "x",
    "producer_id": 9,
    "producer_epoch": 1,
    "verify_only": True,
    "topics": [{"name": "__consumer_offsets", "partitions": [4]}],
}


def coordinator(error: int = 0, of_partition: int = 0, last: int = 5) -> AnsweringBroker:
    """Broker 1, which says this of every partition."""
    partitions = [{"partition_index": 4, "partition_error_code": of_partition}]
    topics = [{"name": "__consumer_offsets", "results_by_partition": partitions}]
    results = [{"transactional_id": "x", "topic_results": topics}]
    answer = answering(VERIFY, error_code=error, results_by_transaction=results)
    return AnsweringBroker(1, ranges={18: (0, 4), VERIFY: (0, last)}, answer=answer)


def verifying(
    stub: AnsweringBroker,
    scenario: Callable[[TxnVerification], Awaitable[None]],
    topic: bool = True,
    listener: str = LISTENER,
) -> None:
    async def run(rig: Rig) -> None:
        async with brokers(rig, stub):
            if topic:
                rig.cluster.create(TRANSACTION_TOPIC, [[1]] * 3)
            verification = TxnVerification(rig.cluster, NODE_ID, listener, Connector())
            try:
                await scenario(verification)
            finally:
                await verification.close()

    with_gateway(run)


@pytest.mark.parametrize(
    ("error", "of_partition", "told"),
    [
        (ProtocolError.NONE, ProtocolError.NONE, ProtocolError.NONE),
        (ProtocolError.NONE, ProtocolError.INVALID_TXN_STATE, ProtocolError.INVALID_TXN_STATE),
        (ProtocolError.NONE, ProtocolError.PRODUCER_FENCED, ProtocolError.INVALID_PRODUCER_EPOCH),
        (
            ProtocolError.NONE,
            ProtocolError.TRANSACTION_ABORTABLE,
            ProtocolError.TRANSACTION_ABORTABLE,
        ),
        (ProtocolError.NONE, 999, ProtocolError.UNKNOWN_SERVER_ERROR),
        (ProtocolError.NOT_COORDINATOR, ProtocolError.NONE, ProtocolError.NOT_COORDINATOR),
        (
            ProtocolError.CLUSTER_AUTHORIZATION_FAILED,
            ProtocolError.NONE,
            ProtocolError.INVALID_TXN_STATE,
        ),
    ],
)
def test_what_the_coordinator_says_is_told_as_producers_know_it(
    error: int, of_partition: int, told: int
) -> None:
    stub = coordinator(error, of_partition)

    async def scenario(verification: TxnVerification) -> None:
        assert await verification.verify(PRODUCING) == told
        (body,) = stub.bodies(VERIFY)
        (transaction,) = body["transactions"]
        assert {key: transaction[key] for key in ASKED} == ASKED

    verifying(stub, scenario)


def test_brokers_with_one_listener_are_asked_where_none_is_named() -> None:
    async def scenario(verification: TxnVerification) -> None:
        assert await verification.verify(PRODUCING) == ProtocolError.NONE

    verifying(stub := coordinator(), scenario, listener="")
    assert len(stub.bodies(VERIFY)) == 1


def test_an_older_producer_is_not_told_that_it_may_abort() -> None:
    async def scenario(verification: TxnVerification) -> None:
        old = Producing("x", 9, 1, partition=4, version=3)
        assert await verification.verify(old) == ProtocolError.INVALID_TXN_STATE

    verifying(coordinator(of_partition=120), scenario)


def test_brokers_that_cannot_be_asked_have_nothing_against_it() -> None:
    stub = coordinator(last=3)

    async def scenario(verification: TxnVerification) -> None:
        assert await verification.verify(PRODUCING) == ProtocolError.NONE
        assert not stub.requests

    verifying(stub, scenario)


def test_a_coordinator_that_hangs_up_or_is_not_there_lets_the_producer_try_again() -> None:
    stub = coordinator()

    async def hang_up(request: bytes) -> None:
        return None

    stub.answer = hang_up

    async def scenario(verification: TxnVerification) -> None:
        assert await verification.verify(PRODUCING) == ProtocolError.NETWORK_EXCEPTION

    async def without_topic(verification: TxnVerification) -> None:
        error = await verification.verify(PRODUCING)
        assert error == ProtocolError.COORDINATOR_NOT_AVAILABLE

    verifying(stub, scenario)
    verifying(coordinator(), without_topic, topic=False)


def test_commits_at_once_are_asked_about_each() -> None:
    stub = coordinator()

    async def scenario(verification: TxnVerification) -> None:
        asking = [verification.verify(PRODUCING) for _ in range(20)]
        assert await asyncio.gather(*asking) == [ProtocolError.NONE] * 20
        assert len(stub.requests) == 20

    verifying(stub, scenario)
