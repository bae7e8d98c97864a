"""Finds out where the logs of replicas end, for partitions that wait for it to elect a leader.

The machines say which do (ask_log_ends), and elect on what is appended here. What a broker said
holds while it stays registered and the partition has no other leader epoch: nobody appends to a log
whose partition has no leader. Source: KIP-966, Unclean Recovery.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from state.blocks import decode_block
from state.event_kinds import EventKind
from state.topic_partition import TopicPartition
from streaming.front.event_loop import report_failure
from streaming.gateway.passing.log_ends import LogEnd, LogEnds, logs_of, unled
from streaming.image.brokers import RegisteredBroker
from streaming.image.cluster_image import ClusterImage
from streaming.log.api import NewRecord
from streaming.log.events import AppendEvents, event

logger = logging.getLogger(__name__)

_PAUSE_S = 0.25
_BUSY_SHARE = 0.1
"""Of the time that rounds may take, where many partitions wait."""


@dataclass(slots=True)
class _Waiting:
    """A partition that waits until a time on the loop's clock; said: by broker, under which of its
    registrations it said what.
    """

    until_s: float
    leader_epoch: int = -1
    replicas: list[int] = field(default_factory=list)
    said: dict[int, tuple[int, LogEnd]] = field(default_factory=dict)

    def keep(self, brokers: Mapping[int, RegisteredBroker]) -> None:
        """Forget what was said by brokers that are not registered any more as they were then."""
        self.said = {
            broker: (epoch, end)
            for broker, (epoch, end) in self.said.items()
            if broker in brokers and brokers[broker].epoch == epoch
        }

    def logs(self) -> list[list[int]]:
        """Return what was said as events have it."""
        return logs_of(self.replicas, {broker: end for broker, (_, end) in self.said.items()})


class UncleanRecovery:
    """The partitions that wait, and the task that asks for them, on the front's event loop."""

    def __init__(
        self,
        log_ends: LogEnds,
        image: Callable[[], ClusterImage | None],
        append: AppendEvents,
        timeout_s: float,
    ) -> None:
        """timeout_s: how long a partition waits for replicas that do not answer."""
        self._log_ends = log_ends
        self._image = image
        self._append = append
        self._timeout_s = timeout_s
        self._loop = asyncio.get_running_loop()
        self._waiting: dict[TopicPartition, _Waiting] = {}
        self._woken = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    @property
    def waiting(self) -> int:
        """How many partitions wait."""
        return len(self._waiting)

    def ask(self, block: bytes | memoryview) -> None:
        """Take an ask_log_ends decision."""
        columns, extra = decode_block(block)
        until_s = self._loop.time() + self._timeout_s
        for topic, partition in zip(
            columns["topic"].tolist(), columns["partition"].tolist(), strict=True
        ):
            self._waiting.setdefault((extra["topics"][topic], partition), _Waiting(until_s))
        logger.info("%d partitions wait for where logs end", len(self._waiting))
        self._woken.set()

    def forget(self) -> None:
        """Let go of all: we are not the controller any more."""
        self._waiting.clear()

    def start(self, on_failure: Callable[[BaseException], None]) -> None:
        """Begin to ask; on_failure is called with what must not happen."""
        self._task = asyncio.create_task(self._run())
        self._task.add_done_callback(lambda done: report_failure(done, on_failure))

    async def stop(self) -> None:
        """Stop asking, and hang up."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        await self._log_ends.close()

    async def _run(self) -> None:
        while True:
            await self._woken.wait()
            self._woken.clear()
            while self._waiting:
                began_s = self._loop.time()
                await self.look()
                took_s = self._loop.time() - began_s
                await asyncio.sleep(max(_PAUSE_S, took_s * (1 / _BUSY_SHARE - 1)))

    async def look(self) -> None:
        """Ask those that have not answered yet, and append what is known of the partitions of which
        all have, or that have waited long enough.
        """
        image = self._image()
        if image is None:
            return
        asked_of = image.brokers
        said = await self._log_ends.ask(self._unanswered(image))
        registered = (self._image() or image).brokers
        for place, ends in said.items():
            if (one := self._waiting.get(place)) is not None:
                one.said |= {broker: (asked_of[broker].epoch, end) for broker, end in ends.items()}
                one.keep(registered)  # some may have been started again meanwhile
        known = {place: one for place, one in self._waiting.items() if self._is_known(one)}
        if known:
            self._append([*_reports(known)])
        for place in known:
            del self._waiting[place]

    def _unanswered(self, image: ClusterImage) -> dict[int, dict[TopicPartition, int]]:
        """Return whom to ask of what, with its leader epoch; what has a leader waits no more."""
        asked: dict[int, dict[TopicPartition, int]] = {}
        for place, one in list(self._waiting.items()):
            found = unled(image, place)
            if found is None:
                del self._waiting[place]
                continue
            if found.leader_epoch != one.leader_epoch:
                one.said.clear()
            one.leader_epoch, one.replicas = found
            one.keep(image.brokers)
            for broker in one.replicas:
                if broker in image.brokers and broker not in one.said:
                    asked.setdefault(broker, {})[place] = one.leader_epoch
        return asked

    def _is_known(self, one: _Waiting) -> bool:
        if not one.said or not one.replicas:
            return False
        return one.said.keys() >= set(one.replicas) or self._loop.time() >= one.until_s


def _reports(known: dict[TopicPartition, _Waiting]) -> Iterable[NewRecord]:
    """Yield log_ends_reported for each topic."""
    by_topic: dict[str, list[tuple[int, _Waiting]]] = {}
    for (topic, partition), one in known.items():
        by_topic.setdefault(topic, []).append((partition, one))
    for topic, partitions in by_topic.items():
        body = {
            "topic": topic,
            "partitions": [partition for partition, _ in partitions],
            "leader_epochs": [one.leader_epoch for _, one in partitions],
            "logs": [one.logs() for _, one in partitions],
        }
        logger.info("where logs end is known of %d partitions of %s", len(partitions), topic)
        yield event(EventKind.LOG_ENDS_REPORTED, body, topic)
