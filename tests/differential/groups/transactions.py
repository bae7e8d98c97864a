"""Transactions of which offsets are a part: begun at a broker, which coordinates them."""

from __future__ import annotations

from typing import Any

from streaming.gateway.coordinators import coordinator_partition
from streaming.internal_topics import GROUP_TOPIC
from streaming.wire.apis import ApiKey
from tests.bench.groups.systems import GROUP_PARTITIONS
from tests.fixtures.gateway_client import ask_once
from tests.fixtures.waiting import wait_for

_LONG_MS = 600_000
_START_S = 60.0


def begin(broker_port: int, group_id: str) -> int:
    """Begin a transaction of a group's offsets, and return whose it is; the group's id is its name,
    and somebody else ends it.
    """
    whose: dict[str, Any] = {"transactional_id": group_id}
    asked = {**whose, "transaction_timeout_ms": _LONG_MS, "producer_id": -1, "producer_epoch": -1}

    def initialized() -> bool:
        """Tell whether the transaction coordinator serves, for which a topic is created first."""
        ask_once(broker_port, ApiKey.FIND_COORDINATOR, 2, {"key": group_id, "key_type": 1})
        whose.update(ask_once(broker_port, ApiKey.INIT_PRODUCER_ID, 4, asked))
        return whose["error_code"] == 0

    wait_for("a producer", initialized, _START_S)
    partitions = [coordinator_partition(group_id, GROUP_PARTITIONS)]
    transaction = {
        "transactional_id": group_id,
        "producer_id": whose["producer_id"],
        "producer_epoch": whose["producer_epoch"],
        "verify_only": False,
        "topics": [{"name": GROUP_TOPIC, "partitions": partitions}],
    }
    answer = ask_once(broker_port, ApiKey.ADD_PARTITIONS_TO_TXN, 4, {"transactions": [transaction]})
    assert "'error_code': 0" in str(answer), answer
    return int(whose["producer_id"])
