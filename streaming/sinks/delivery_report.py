"""What brokers have confirmed: a record in the outcome log, and word to the front for status."""

from __future__ import annotations

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
    ) -> None:
        """Take where outcomes are appended and how a message is sent to the front."""
        self._append_outcome = append_outcome
        self._send = send
        self._confirmed: dict[int, dict[str, int]] = {}

    def record(self, kind: str, body: dict[str, Any]) -> None:
        """Note one outcome about a broker; a front that is away misses it until the next one."""
        self._append_outcome([outcome(kind, body)])
        self._confirmed[body["broker_id"]] = {
            "confirmed": body["end_offset"],
            "at_ms": body["at_ms"],
        }
        try:
            self._send({"type": "delivery", "brokers": self._confirmed})
        except LinkDown:
            return
