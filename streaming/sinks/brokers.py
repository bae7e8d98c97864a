"""Delivers requests to all registered brokers, each through a channel of its own, on one asyncio
thread.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future
from typing import Any

from streaming.image.brokers import RegisteredBroker, endpoint_on
from streaming.security.connector import Connector
from streaming.sinks.channel import Answer, BrokerChannel, Queued, Timing
from streaming.sinks.plan import Plan
from streaming.wire.endpoints import Endpoint

logger = logging.getLogger(__name__)


class BrokerSink:
    """The channels of the registered brokers.

    Calls may come from one thread; channels run on another. A broker that is no longer registered,
    or is so under another epoch, loses its channel and with it everything that waited for it. One
    that only has another address keeps what waits.
    """

    def __init__(
        self,
        listener: str,
        connector: Connector,
        timing: Timing,
        *,
        on_answer: Callable[[Answer], None],
        on_sent: Callable[[int, int], None],
        on_confirmed: Callable[[int, int], None],
    ) -> None:
        """Take the listener on which brokers hear the controller; start the thread."""
        self._listener = listener
        self._connector = connector
        self._timing = timing
        self._on_answer = on_answer
        self._on_sent = on_sent
        self._on_confirmed = on_confirmed
        self._channels: dict[int, tuple[BrokerChannel, asyncio.Task[None]]] = {}
        self._untold: dict[int, int] = {}  # epochs of the brokers that have no address for us
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="brokers", daemon=True)
        self._thread.start()

    def deliver(
        self, brokers: Mapping[int, RegisteredBroker], plan: Plan, end_offset: int
    ) -> list[int]:
        """Make the channels those of `brokers` and queue the plan's requests; returns at once which
        brokers should `catch_up` with everything.
        """
        found: list[int] = self._on_loop(lambda: self._deliver(brokers, plan, end_offset))
        return found

    def catch_up(self, everything: Plan, end_offset: int) -> None:
        """Replace what waits for brokers by requests that tell everything; returns at once."""
        self._on_loop(lambda: self._catch_up(everything, end_offset))

    def queue_lengths(self) -> dict[int, int]:
        """Return how many requests each broker has not answered yet; from any thread, at once."""
        # A copy: channels come and go on the other thread.
        return {id_: len(one) for id_, (one, _) in self._channels.copy().items()}

    def close(self) -> None:
        """Drop all channels and stop the thread."""
        asyncio.run_coroutine_threadsafe(self._end(), self._loop).result(timeout=30)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(timeout=5)
        self._loop.close()

    async def _end(self) -> None:
        tasks = [task for _, task in self._channels.values()]
        self._deliver({}, {}, 0)
        await asyncio.gather(*tasks, return_exceptions=True)
        await asyncio.sleep(0)  # transports close in the loop's next turn

    def _on_loop(self, work: Callable[[], Any]) -> Any:
        done: Future[Any] = Future()

        def call() -> None:
            try:
                done.set_result(work())
            except Exception as error:  # noqa: BLE001 - raised again in the caller's thread
                done.set_exception(error)

        self._loop.call_soon_threadsafe(call)
        return done.result(timeout=30)

    def _deliver(
        self, brokers: Mapping[int, RegisteredBroker], plan: Plan, end_offset: int
    ) -> list[int]:
        waiting: dict[int, Iterable[Queued]] = {}
        for broker_id, (channel, task) in list(self._channels.items()):
            registered = brokers.get(broker_id)
            if registered is None or not self._is_for(channel, registered):
                task.cancel()
                del self._channels[broker_id]
                if registered is not None and channel.broker_epoch == registered.epoch:
                    waiting[broker_id] = channel.waiting
        untold, self._untold = self._untold, {}
        for broker_id, registered in brokers.items():
            if broker_id in self._channels:
                continue
            if (end := endpoint_on(registered.node, self._listener)) is not None:
                self._open(registered, end, waiting.get(broker_id, ()))
                continue
            self._untold[broker_id] = registered.epoch
            if untold.get(broker_id) != registered.epoch:
                told = "broker %s has no listener %r: nothing can be told to it"
                logger.error(told, broker_id, self._listener)
        for broker_id, requests in plan.items():
            if broker_id in self._channels:
                channel = self._channels[broker_id][0]
                for request in requests:
                    channel.put(Queued(request, end_offset))
        return [id_ for id_, (channel, _) in self._channels.items() if channel.crowded]

    def _catch_up(self, everything: Plan, end_offset: int) -> None:
        for broker_id, requests in everything.items():
            if broker_id in self._channels:
                logger.warning("broker %s is far behind: it is told everything", broker_id)
                self._channels[broker_id][0].catch_up(requests, end_offset)

    def _is_for(self, channel: BrokerChannel, registered: RegisteredBroker) -> bool:
        end = endpoint_on(registered.node, self._listener)
        return end == channel.end and channel.broker_epoch == registered.epoch

    def _open(self, registered: RegisteredBroker, end: Endpoint, waiting: Iterable[Queued]) -> None:
        channel = BrokerChannel(
            registered.node.id,
            registered.epoch,
            end,
            connector=self._connector,
            timing=self._timing,
            on_answer=self._on_answer,
            on_sent=self._on_sent,
            on_confirmed=self._on_confirmed,
        )
        for queued in waiting:
            channel.put(queued)
        task = self._loop.create_task(channel.run())
        self._channels[registered.node.id] = (channel, task)
