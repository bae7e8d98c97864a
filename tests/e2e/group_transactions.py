"""A producer that commits a group's offsets in transactions, and what a fenced one is told."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition

from streaming.wire.apis import ApiKey
from tests.e2e.group_clients import TOPIC
from tests.e2e.waiting import wait_for
from tests.fixtures.gateway_client import ask_once

_PATIENCE_S = 240.0
_TRANSACTION_MS = 600_000
"""A transaction may be open while everything is taken over or given back."""
_COORDINATOR_MOVES = (
    KafkaError.NOT_COORDINATOR,
    KafkaError.COORDINATOR_NOT_AVAILABLE,
    KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
    KafkaError._UNSUPPORTED_FEATURE,
)
"""The last one librdkafka says where its connection to a coordinator is not up yet: it knows no
versions then (rd_kafka_broker_ApiVersion_supported).
"""
_TRANSACTION = 1  # of FindCoordinator
_INVALID_PRODUCER_EPOCH, _TRANSACTION_ABORTABLE = 47, 120


class Transactional:
    """librdkafka's transactional producer, and a consumer that reads committed offsets only."""

    def __init__(self, brokers: Sequence[str], group: str) -> None:
        place = {"bootstrap.servers": ",".join(brokers)}
        self._consumer = Consumer({**place, "group.id": group})
        named = {"transactional.id": group, "transaction.timeout.ms": _TRANSACTION_MS}
        self._producer = Producer({**place, **named})
        self._producer.init_transactions(_PATIENCE_S)

    def begin(self, offset: int) -> None:
        """Commit an offset in a transaction that stays open."""
        self._producer.begin_transaction()
        self._producer.produce(TOPIC, b"x", partition=0)
        at = [TopicPartition(TOPIC, 0, offset)]
        member = self._consumer.consumer_group_metadata()
        wait_for("the group's coordinator", lambda: self._sent(at, member), _PATIENCE_S)

    def _sent(self, at: list[TopicPartition], member: Any) -> bool:
        """Send offsets; False where librdkafka leaves it to its user to try again, as while a
        broker loads the group.
        """
        try:
            self._producer.send_offsets_to_transaction(at, member, _PATIENCE_S)
        except KafkaException as failed:
            if not failed.args[0].retriable():
                raise
            return False
        return True

    def commit(self) -> None:
        """End the transaction: what it committed counts."""
        self._producer.commit_transaction(_PATIENCE_S)

    def abort(self) -> None:
        """End the transaction: what it committed counts for nothing."""
        self._producer.abort_transaction(_PATIENCE_S)

    def committed(self) -> int:
        """Return what is committed, once that is stable and the coordinator has been found."""
        found: list[TopicPartition] = []

        def is_known() -> bool:
            try:
                found[:] = self._consumer.committed([TopicPartition(TOPIC, 0)], _PATIENCE_S)
            except KafkaException as error:
                if error.args[0].code() not in _COORDINATOR_MOVES:
                    raise
            return bool(found)

        wait_for("a committed offset", is_known)
        return int(found[0].offset)

    def close(self) -> None:
        self._consumer.close()


class Fenced:
    """Two producers of one transactional id, of which the later one counts."""

    def __init__(self, broker_port: int, coordinator_port: int) -> None:
        self._broker_port = broker_port
        self._coordinator_port = coordinator_port

    def told(self) -> tuple[int, int]:
        """Return what the earlier one is told when it commits offsets, and what the later one is,
        which has not begun a transaction.
        """
        first, second = self._initialized(), self._initialized()
        assert second["producer_epoch"] > first["producer_epoch"]
        return self._commit(first), self._commit(second)

    def _initialized(self) -> dict[str, Any]:
        """Be the producer of the id, once its transaction's coordinator is there."""
        found: dict[str, Any] = {}

        def is_initialized() -> bool:
            asked = {"key": "fenced", "key_type": _TRANSACTION}
            at = ask_once(self._broker_port, ApiKey.FIND_COORDINATOR, 2, asked)
            if at["error_code"]:
                return False
            body = {"transactional_id": "fenced", "transaction_timeout_ms": 60_000}
            body |= {"producer_id": -1, "producer_epoch": -1}
            found.update(ask_once(at["port"], ApiKey.INIT_PRODUCER_ID, 4, body))
            return not found["error_code"]

        wait_for("a producer id", is_initialized)
        return found

    def _commit(self, producer: dict[str, Any]) -> int:
        offset = {"partition_index": 0, "committed_offset": 1, "committed_leader_epoch": -1}
        body = {
            "transactional_id": "fenced",
            "group_id": "fenced",
            "producer_id": producer["producer_id"],
            "producer_epoch": producer["producer_epoch"],
            "generation_id": -1,
            "member_id": "",
            "group_instance_id": None,
            "topics": [{"name": TOPIC, "partitions": [offset | {"committed_metadata": ""}]}],
        }
        answer = ask_once(self._coordinator_port, ApiKey.TXN_OFFSET_COMMIT, 4, body)
        code: int = answer["topics"][0]["partitions"][0]["error_code"]
        return code


def fences_producers(broker_port: int, coordinator_port: int) -> None:
    """Fail unless a coordinator of groups turns away who may not commit in a transaction."""
    told = Fenced(broker_port, coordinator_port).told()
    assert told == (_INVALID_PRODUCER_EPOCH, _TRANSACTION_ABORTABLE)
