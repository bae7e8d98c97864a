"""Asks a transaction's coordinator whether a producer may commit offsets in it now (KIP-890).

A broker does it before it appends the first offsets of a transaction
(AddPartitionsToTxnManager.verifyTransaction); this node keeps no producer's state and asks each
time. By that a producer that is fenced, or whose transaction is over, is found out before anything
is written.
"""

from __future__ import annotations

import logging

from state.protocol_errors import ProtocolError, error_of
from streaming.gateway.coordinators import leader_of
from streaming.gateway.groups.transactions import Producing
from streaming.gateway.nodes import NO_NODE_ID
from streaming.gateway.passing.brokers import Brokers
from streaming.gateway.passing.pool import BrokerFailed, PassingLimits
from streaming.gateway.ports import PartitionsView
from streaming.internal_topics import GROUP_TOPIC, TRANSACTION_TOPIC
from streaming.security.connector import Connector
from streaming.wire.apis import ApiKey
from streaming.wire.errors import WireError
from streaming.wire.schema_codec import Body

logger = logging.getLogger(__name__)

_VERIFY_SINCE = 4  # before it only clients send AddPartitionsToTxn
_ABORTABLE_SINCE = 4  # of TxnOffsetCommit
_LIMITS = PassingLimits(answer_timeout_s=4.0)
"""Within the time a client is answered in: see Transactions."""


class TxnVerification:
    """Asks brokers on the listener for controller requests; lives on the front's event loop."""

    def __init__(
        self,
        view: PartitionsView,
        node_id: int,
        listener: str,
        connector: Connector,
    ) -> None:
        """Take what is known of the cluster, and where and how its brokers are asked."""
        self._view = view
        self._listener = listener
        self._brokers = Brokers(view, node_id, _LIMITS, connector)

    async def verify(self, producing: Producing) -> int:
        """Return the error code that stands against a commit, 0 if none does.

        Brokers before 3.6 cannot be asked; then nothing stands against it, as with Kafka.
        """
        leader = leader_of(self._view, TRANSACTION_TOPIC, producing.transactional_id)
        ranges = await self._brokers.common_versions(self._listener)
        if leader == NO_NODE_ID or not ranges:
            return ProtocolError.COORDINATOR_NOT_AVAILABLE
        if ranges.get(ApiKey.ADD_PARTITIONS_TO_TXN, (0, 0))[1] < _VERIFY_SINCE:
            return ProtocolError.NONE
        try:
            answer = await self._brokers.ask(
                self._listener, ApiKey.ADD_PARTITIONS_TO_TXN, _question(producing), leader
            )
        except (BrokerFailed, WireError) as error:
            logger.warning("transaction of %r: %s", producing.transactional_id, error)
            return ProtocolError.NETWORK_EXCEPTION
        return _told(_error_in(answer), producing.version)

    async def close(self) -> None:
        """Hang up."""
        await self._brokers.close()


def _question(producing: Producing) -> Body:
    return {
        "transactions": [
            {
                "transactional_id": producing.transactional_id,
                "producer_id": producing.producer_id,
                "producer_epoch": producing.producer_epoch,
                "verify_only": True,
                "topics": [{"name": GROUP_TOPIC, "partitions": [producing.partition]}],
            }
        ]
    }


def _error_in(answer: Body) -> int:
    if answer["error_code"] == ProtocolError.CLUSTER_AUTHORIZATION_FAILED:
        return ProtocolError.INVALID_TXN_STATE  # clients are not told what we may not do
    errors = [
        partition["partition_error_code"]
        for result in answer["results_by_transaction"]
        for topic in result["topic_results"]
        for partition in topic["results_by_partition"]
    ]
    return int(next(filter(None, [answer["error_code"], *errors]), ProtocolError.NONE))


def _told(error: int, version: int) -> int:
    """Return an error as producers that speak this version of TxnOffsetCommit know it."""
    if error == ProtocolError.PRODUCER_FENCED:
        return ProtocolError.INVALID_PRODUCER_EPOCH
    if error == ProtocolError.TRANSACTION_ABORTABLE and version < _ABORTABLE_SINCE:
        return ProtocolError.INVALID_TXN_STATE
    return error_of(error)
