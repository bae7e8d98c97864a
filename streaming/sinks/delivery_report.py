"""What brokers were sent and have confirmed: records in the outcome log, and word to the front."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from streaming.link.from_job import Delivered, by_broker
from streaming.link.job_side import LinkDown
from streaming.log.api import NewRecord
from streaming.process.wall_clock import wall_clock_ms
from streaming.sinks.outcome_log import outcome


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
        self._by_broker: dict[int, dict[str, int]] = {}
        self._append_outcome = append_outcome
        self._send = send
        self._queue_lengths = queue_lengths
        self._untold: set[int] = set()

    def sent(self, broker_id: int, end_offset: int) -> None:
        """Note that everything up to an event offset was handed to the broker's connection."""
        at_ms = wall_clock_ms()
        self._append("delivered", broker_id, end_offset, at_ms)

    def confirmed(self, broker_id: int, end_offset: int, at_ms: int) -> None:
        """Note that a broker has answered everything up to an event offset."""
        self._append("confirmed", broker_id, end_offset, at_ms)
        self._by_broker[broker_id] = {"confirmed": end_offset, "at_ms": at_ms}
        self._untold.add(broker_id)

    def refused(self, broker_id: int, topic: str, errors: Mapping[int, int]) -> None:
        """Note that a broker has answered error codes for replicas of a topic, by partition."""
        body = {"broker_id": broker_id, "at_ms": wall_clock_ms(), "topic": topic}
        self._append_outcome([outcome("refused", {**body, "errors": [*errors.items()]})])

    def tell(self) -> None:
        """Tell the front what was confirmed since the last time; one that is away hears of it when
        it is back.
        """
        news = {broker: self._by_broker[broker] for broker in sorted(self._untold)}
        self._untold.clear()
        try:
            self._send(self._message(news).head())
        except LinkDown:
            return

    def so_far(self) -> Delivered:
        """Return what a front that comes is told of all brokers."""
        # A copy: answers come on another thread.
        return self._message(self._by_broker.copy())

    def _message(self, brokers: dict[int, dict[str, int]]) -> Delivered:
        return Delivered(by_broker(brokers), by_broker(self._queue_lengths()))

    def _append(self, kind: str, broker_id: int, end_offset: int, at_ms: int) -> None:
        body = {"broker_id": broker_id, "end_offset": end_offset, "at_ms": at_ms}
        self._append_outcome([outcome(kind, body)])
