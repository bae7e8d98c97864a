"""What the sinks' tests share: waiting, channels with notes, and ZooKeeper as Kafka leaves it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

from streaming.image.brokers import RegisteredBroker, broker_node
from streaming.sinks.brokers import BrokerSink
from streaming.sinks.channel import Answer, Timing
from streaming.sinks.plan import SharedRequest
from streaming.sinks.rows import NO_ROWS
from streaming.wire.messages import ApiKey
from tests.fixtures.story import LISTENER, OURSELVES, endpoints

WAIT_S = 20.0


def wait_for(what: str, true: Callable[[], Any]) -> Any:
    """Return the first true value; fails after WAIT_S."""
    deadline = time.monotonic() + WAIT_S
    while not (found := true()):
        assert time.monotonic() < deadline, f"{what} did not come; last found: {found!r}"
        time.sleep(0.005)
    return found


def registered(broker_id: int, port: int, epoch: int | None = None) -> RegisteredBroker:
    body = {"id": broker_id, "rack": None, "endpoints": endpoints(port)}
    return RegisteredBroker(broker_node(body), 100 + broker_id if epoch is None else epoch)


def numbered(number: int, api: ApiKey = ApiKey.UPDATE_METADATA) -> SharedRequest:
    """A request that can be told from others: by its controller epoch."""
    return SharedRequest(api, OURSELVES, number, NO_ROWS)


class Notes:
    """A BrokerSink that keeps what it is told."""

    def __init__(self, *, timeout_ms: int = 10_000, backoff_ms: int = 5) -> None:
        self.answers: list[Answer] = []
        self.confirmed: list[tuple[int, int]] = []
        self.changed = threading.Event()
        self.sink = BrokerSink(
            LISTENER,
            Timing(timeout_ms, backoff_ms),
            on_answer=self.answers.append,
            on_confirmed=lambda broker, end: self.confirmed.append((broker, end)),
        )

    def wait_confirmed(self, *pairs: tuple[int, int]) -> None:
        wait_for(f"confirmations {pairs}", lambda: set(pairs) <= set(self.confirmed))
