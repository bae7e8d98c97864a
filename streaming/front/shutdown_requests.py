"""Controlled shutdowns that the safety check refuses: brokers give up asking, so operators hear."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

from state.event_kinds import EventKind
from streaming.gateway.ports import DecisionClient, ReplyBody
from streaming.process.counters import Counters

logger = logging.getLogger(__name__)

_NAMED = 5
"""Partitions that a warning names."""


class ShutdownRequests:
    """Passes requests on, and warns of each controlled shutdown that is refused (a DecisionClient).

    Counts refused_shutdowns.
    """

    def __init__(self, decision_client: DecisionClient, counters: Counters) -> None:
        """Take who has requests decided, and where to count."""
        self._decision_client = decision_client
        self._counters = counters

    async def submit(
        self, kind: EventKind, key: str, payload: dict[str, Any], timeout_s: float
    ) -> ReplyBody:
        """Return the reply, as DecisionClient says."""
        reply = await self._decision_client.submit(kind, key, payload, timeout_s)
        if kind is EventKind.CONTROLLED_SHUTDOWN_REQUESTED and reply.get("refused"):
            self._counters["refused_shutdowns"] += 1
            _warn(payload["broker_id"], reply["remaining"])
        return reply


def _warn(broker_id: int, at_risk: Sequence[tuple[str, int]]) -> None:
    names = [f"{topic}-{partition}" for topic, partition in at_risk[:_NAMED]]
    more = " ..." if len(at_risk) > _NAMED else ""
    logger.warning(
        "the controlled shutdown of broker %d is refused: without it %d partitions have fewer "
        "replicas in sync than min.insync.replicas (%s%s). It asks "
        "controlled.shutdown.max.retries times, and then stops uncleanly; to let it go before: "
        "helmstream allow-shutdown %d",
        broker_id,
        len(at_risk),
        ", ".join(names),
        more,
        broker_id,
    )
