"""What brokers were sent and have confirmed: records in the outcome log, and word to the front."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from streaming.link.job_side import LinkDown
from streaming.log.api import NewRecord
from streaming.sinks.pipeline import outcome


class DeliveryReport:
    """Keeps the last confirmation of each broker since the job's start."""

    def __init__(
        self,
        append_outcome: Callable[[list[NewRecord]], object],
        send: Callable[[dict[str, Any]], None],
        queue_lengths: Callable[[], dict[int, int]],
    ) -> None:
        """Take where outcomes are appended, how a message is sent to the front, and who says how
        many requests each broker has not answered.
        """
        self._append_outcome = append_outcome
        self._send = send
        self._queue_lengths = queue_lengths
        self._confirmed: dict[int, dict[str, int]] = {}

    def sent(self, broker_id: int, end_offset: int) -> None:
        """Note that everything up to an event offset was handed to the broker's connection."""
        at_ms = time.time_ns() // 1_000_000
        body = {"broker_id": broker_id, "end_offset": end_offset, "at_ms": at_ms}
        self._append_outcome([outcome("delivered", body)])

    def record(self, kind: str, body: dict[str, Any]) -> None:
        """Note one outcome about a broker; a front that is away misses it until the next one."""
        self._append_outcome([outcome(kind, body)])
        self._confirmed[body["broker_id"]] = {
            "confirmed": body["end_offset"],
            "at_ms": body["at_ms"],
        }
        told = {"brokers": self._confirmed, "queue_lengths": self._queue_lengths()}
        try:
            self._send({"type": "delivery", **told})
        except LinkDown:
            return
