"""Asks brokers where the logs of their replicas end, leader or not.

ListOffsets of who debugs tells the end of a follower's log. No request tells the leader epoch of
its last record; but Fetch from version 12 compares an epoch that it is told with those of the log
(KIP-595): one later than all of them is out of range, any other diverges, since the offset that we
name is beyond every log. So the epoch is found by trying.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Mapping
from itertools import islice
from typing import NamedTuple

from state.matrix import unpad
from state.protocol_errors import ProtocolError
from state.topic_partition import TopicPartition
from streaming.gateway.passing.brokers import Brokers
from streaming.gateway.passing.pool import BrokerFailed
from streaming.image.cluster_image import ClusterImage
from streaming.wire.apis import ApiKey
from streaming.wire.errors import WireError
from streaming.wire.partition_reads import DEBUGGING_REPLICA, LATEST
from streaming.wire.schema_codec import Body

logger = logging.getLogger(__name__)

NO_EPOCH = -1
_BEYOND_ALL = 2**63 - 1
_COMPARES_EPOCHS = (12, 12)
"""Versions of Fetch; the next one names topics by id."""
_ASKED_AT_ONCE = 500
"""Partitions in one request; to read the answer takes 10 ms, in which nobody else is served."""


class LogEnd(NamedTuple):
    """Where a log ends: the leader epoch of its last record, -1 if it has none, and the offset
    after that record.
    """

    last_epoch: int
    offset: int


class Unled(NamedTuple):
    """The leader epoch and the replicas of a partition that no registered broker leads."""

    leader_epoch: int
    replicas: list[int]


def unled(image: ClusterImage, place: TopicPartition) -> Unled | None:
    """Return what an image says of a partition without a leader, None for others."""
    row = image.row_of(*place)
    if row is None or int(image.columns["leader"][row]) in image.brokers:
        return None
    return Unled(int(image.columns["leader_epoch"][row]), unpad(image.columns["replicas"][row]))


def logs_of(replicas: Iterable[int], said: Mapping[int, LogEnd]) -> list[list[int]]:
    """Return what was said of a partition as events have it, in the order of its replica list."""
    return [[broker, *said[broker]] for broker in replicas if broker in said]


class LogEnds:
    """Asks brokers on one listener; lives on the event loop of the brokers' connections."""

    def __init__(self, brokers: Brokers, listener: str) -> None:
        """Take who asks them, and on which listener."""
        self._brokers = brokers
        self._listener = listener

    async def ask(
        self, replicas: Mapping[int, Mapping[TopicPartition, int]]
    ) -> dict[TopicPartition, dict[int, LogEnd]]:
        """Return of partitions where logs end, by broker.

        replicas: whom to ask of which partitions, with their leader epochs, than which no record
        has a later one. Who does not answer, or of some partitions only, is left out of them.
        """
        said = await asyncio.gather(*(self._of_broker(*one) for one in replicas.items()))
        found: dict[TopicPartition, dict[int, LogEnd]] = {}
        for broker, ends in zip(replicas, said, strict=True):
            for place, end in ends.items():
                found.setdefault(place, {})[broker] = end
        return found

    async def close(self) -> None:
        """Hang up."""
        await self._brokers.close()

    async def _of_broker(
        self, broker: int, leader_epochs: Mapping[TopicPartition, int]
    ) -> dict[TopicPartition, LogEnd]:
        found: dict[TopicPartition, LogEnd] = {}
        places = iter(leader_epochs.items())
        try:
            while some := dict(islice(places, _ASKED_AT_ONCE)):
                offsets = await self._offsets(broker, some)
                epochs = await self._last_epochs(broker, {one: some[one] for one in offsets})
                found |= {place: LogEnd(epoch, offsets[place]) for place, epoch in epochs.items()}
        except (BrokerFailed, WireError) as error:
            logger.warning("where logs of broker %d end is not known: %s", broker, error)
        return found

    async def _offsets(
        self, broker: int, places: Mapping[TopicPartition, int]
    ) -> dict[TopicPartition, int]:
        """Return where logs end, of the partitions of which the broker says it."""
        said = {"current_leader_epoch": -1, "timestamp": LATEST}
        topics = [
            {"name": topic, "partitions": [{"partition_index": one, **said} for one in partitions]}
            for topic, partitions in _by_topic(places).items()
        ]
        body: Body = {"replica_id": DEBUGGING_REPLICA, "isolation_level": 0, "topics": topics}
        answer = await self._brokers.ask(self._listener, ApiKey.LIST_OFFSETS, body, broker)
        return {
            (topic["name"], one["partition_index"]): one["offset"]
            for topic in answer["topics"]
            for one in topic["partitions"]
            if not one["error_code"]
        }

    async def _last_epochs(
        self, broker: int, highest: dict[TopicPartition, int]
    ) -> dict[TopicPartition, int]:
        """Return the last epochs of logs, none later than that given for each. It is mostly one of
        the latest, so the first steps downwards are small.
        """
        lowest = dict.fromkeys(highest, NO_EPOCH)
        step = 0
        while asked := {
            place: _probe(low, highest[place], step)
            for place, low in lowest.items()
            if place in highest and low < highest[place]
        }:
            reach = await self._reach(broker, asked)
            step = 2 * step + 1
            for place, epoch in asked.items():
                if place not in reach:
                    del highest[place]
                elif reach[place]:
                    lowest[place] = epoch
                else:
                    highest[place] = epoch - 1
        return highest

    async def _reach(
        self, broker: int, epochs: Mapping[TopicPartition, int]
    ) -> dict[TopicPartition, bool]:
        """Return whether logs have records of these epochs or later ones, of the partitions of
        which the broker says it.
        """
        said = {"current_leader_epoch": -1, "fetch_offset": _BEYOND_ALL, "log_start_offset": -1}
        topics = [
            {
                "topic": topic,
                "partitions": [
                    {"partition": one, "last_fetched_epoch": epochs[topic, one], **said}
                    | {"partition_max_bytes": 0}
                    for one in partitions
                ],
            }
            for topic, partitions in _by_topic(epochs).items()
        ]
        body: Body = {
            "replica_id": DEBUGGING_REPLICA,
            "max_wait_ms": 0,
            "min_bytes": 0,
            "max_bytes": 0,
            "isolation_level": 0,
            "rack_id": "",
            "topics": topics,
        }
        answer = await self._brokers.ask(
            self._listener, ApiKey.FETCH, body, broker, within=_COMPARES_EPOCHS
        )
        told = {
            (topic["topic"], one["partition_index"]): one
            for topic in answer["responses"]
            for one in topic["partitions"]
        }
        return {
            place: one["error_code"] == 0
            for place, one in told.items()
            if one["error_code"] in (0, ProtocolError.OFFSET_OUT_OF_RANGE)
        }


def _by_topic(places: Mapping[TopicPartition, int]) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for topic, partition in places:
        found.setdefault(topic, []).append(partition)
    return found


def _probe(lowest: int, highest: int, step: int) -> int:
    """Return which epoch to compare with next, above the lowest that it may be."""
    middle = (lowest + highest + 1) // 2
    return middle if lowest > NO_EPOCH else max(middle, highest - step)
