"""Reads what stands in a partition before our log began, from a broker that follows us.

A follower serves consumers that name a rack (Fetch from version 11, KIP-392) up to the high
watermark that we told it. From version 12 it says, too, where a leader epoch ended in its log.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass

from state.protocol_errors import error_text
from streaming.image.brokers import endpoint_on
from streaming.image.cluster_image import ClusterImage
from streaming.internal_topics import GROUP_TOPIC
from streaming.offsets.batches import spans
from streaming.offsets.leader import OffsetsLeader
from streaming.offsets.partition_log import UNKNOWN, EpochEnd
from streaming.wire.apis import ApiKey
from streaming.wire.errors import WireError
from streaming.wire.exchange import CLIENT_ID, Exchange, still_open
from streaming.wire.requests import encode_request
from streaming.wire.responses import decode_response
from streaming.wire.schema_codec import Body

logger = logging.getLogger(__name__)

_FETCH_VERSION = 12
_OFFSET_OUT_OF_RANGE = 1
_LIST_OFFSETS_VERSION = 4
_EARLIEST = -2
_NOWHERE = 2**63 - 1  # an offset that no log has: logs part before it
_CHUNK_BYTES = 1024 * 1024
_FETCH_MAX_BYTES = 55 * 1024 * 1024  # what a broker says at most unless configured (KIP-541)
_MAX_WAIT_MS = 100
_RETRY_S = 0.1
_CONSUMER = -1
_ANY_REPLICA = -2  # org.apache.kafka.common.requests.ListOffsetsRequest.DEBUGGING_REPLICA_ID


class HistoryUnreadable(Exception):
    """A follower cannot be reached, or refuses; the message says which and why."""


@dataclass(frozen=True, slots=True)
class Source:
    """A broker's address."""

    broker_id: int
    host: str
    port: int


@dataclass(frozen=True, slots=True)
class Fetched:
    """What a broker answers about one partition; diverging: what it has up to the last epoch that
    was named, if that is less.
    """

    records: bytes
    error: int
    high_watermark: int
    diverging: EpochEnd | None


class HistoryConnection:
    """One connection to a follower; used by one task at a time."""

    def __init__(self, source: Source, timeout_s: float) -> None:
        """Take the broker, and how long one answer may take; nothing is opened yet."""
        self._source = source
        self._timeout_s = timeout_s
        self._connection: Exchange | None = None

    async def fetch(
        self, partition: int, offset: int, max_bytes: int, last_epoch: int = UNKNOWN
    ) -> Fetched:
        """Return what there is; the first batch may begin before offset. last_epoch: of the record
        before the offset.

        Raises HistoryUnreadable.
        """
        # Whoever asks us may want more at once than an answer to us can hold.
        max_bytes = min(max_bytes, _FETCH_MAX_BYTES)
        body: Body = {
            "replica_id": _CONSUMER,
            "max_wait_ms": _MAX_WAIT_MS,
            "min_bytes": 1,
            "max_bytes": max_bytes,
            "rack_id": CLIENT_ID,
            "topics": [
                {
                    "topic": GROUP_TOPIC,
                    "partitions": [
                        {
                            "partition": partition,
                            "current_leader_epoch": -1,
                            "fetch_offset": offset,
                            "last_fetched_epoch": last_epoch,
                            "log_start_offset": -1,
                            "partition_max_bytes": max_bytes,
                        }
                    ],
                }
            ],
        }
        one = _about(partition, await self._fetch(body))
        parts = one["diverging_epoch"]
        diverging = None if parts is None else EpochEnd(parts["epoch"], parts["end_offset"])
        return Fetched(one["records"] or b"", one["error_code"], one["high_watermark"], diverging)

    async def _fetch(self, body: Body) -> Sequence[Body]:
        """Return what is said of topics. A broker that throttles consumers says nothing of them,
        and how long to be quiet (KIP-219; FetchSession.getThrottledResponse).
        """
        while True:
            answer = await self._ask(ApiKey.FETCH, _FETCH_VERSION, body)
            if error := answer["error_code"]:
                said = f"broker {self._source.broker_id}: error {error_text(error)}"
                raise HistoryUnreadable(said)
            topics: Sequence[Body] = answer["responses"]
            throttled_s = min(answer["throttle_time_ms"] / 1000, self._timeout_s)
            if topics or throttled_s <= 0:
                return topics
            logger.info("broker %d throttles us for %g s", self._source.broker_id, throttled_s)
            await asyncio.sleep(throttled_s)

    async def fetch_from(self, partition: int, offset: int, max_bytes: int) -> Fetched:
        """Return what there is as `fetch` does, from the partition's beginning if that is later.

        Raises HistoryUnreadable.
        """
        found = await self.fetch(partition, offset, max_bytes)
        if found.error == _OFFSET_OUT_OF_RANGE:
            earliest = await self.earliest(partition)
            if earliest > offset:
                return await self.fetch(partition, earliest, max_bytes)
        return found

    async def earliest(self, partition: int) -> int:
        """Return where a partition begins; raises HistoryUnreadable."""
        body: Body = {
            "replica_id": _ANY_REPLICA,
            "topics": [
                {
                    "name": GROUP_TOPIC,
                    "partitions": [{"partition_index": partition, "timestamp": _EARLIEST}],
                }
            ],
        }
        answer = await self._ask(ApiKey.LIST_OFFSETS, _LIST_OFFSETS_VERSION, body)
        one = _about(partition, answer["topics"])
        if one["error_code"]:
            error = error_text(one["error_code"])
            raise HistoryUnreadable(f"start of partition {partition}: error {error}")
        return int(one["offset"])

    async def _ask(self, api: ApiKey, version: int, body: Body) -> Body:
        try:
            async with asyncio.timeout(self._timeout_s):
                return await self._exchange(api, version, body)
        except (OSError, TimeoutError, WireError) as error:
            self.close()
            raise HistoryUnreadable(f"broker {self._source.broker_id}: {error!r}") from error
        except BaseException:
            # An answer that nobody waits for any more would be taken for that to the next request.
            self.close()
            raise

    async def _exchange(self, api: ApiKey, version: int, body: Body) -> Body:
        self._connection = still_open(self._connection)
        if self._connection is None:
            source = self._source
            self._connection = Exchange(*await asyncio.open_connection(source.host, source.port))
        request = encode_request(api, version, 0, CLIENT_ID, body)
        return decode_response(api, version, await self._connection.ask(request))[1]

    def close(self) -> None:
        """Hang up; the next request connects again."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None


def _about(partition: int, topics: Sequence[Body]) -> Body:
    """Return what an answer says of the partition that was asked for; raises HistoryUnreadable."""
    said: list[Body] = [one for topic in topics for one in topic["partitions"]]
    numbers = [one["partition_index"] for one in said]
    if numbers != [partition]:
        raise HistoryUnreadable(f"partition {partition}: an answer about {numbers}")
    return said[0]


class History:
    """Reads partitions through one connection to each follower, one request at a time on each."""

    def __init__(
        self,
        leader: OffsetsLeader,
        image: Callable[[], ClusterImage | None],
        listener: str,
        timeout_s: float,
    ) -> None:
        """listener: on which brokers are asked; timeout_s: how long one answer may take."""
        self._leader = leader
        self._image = image
        self._listener = listener
        self._timeout_s = timeout_s
        self._connections: dict[Source, tuple[HistoryConnection, asyncio.Lock]] = {}

    def close(self) -> None:
        """Hang up."""
        for connection, _ in self._connections.values():
            connection.close()
        self._connections.clear()

    async def read(self, partition: int, offset: int, max_bytes: int) -> bytes:
        """Return whole batches from an offset on; b"" when nobody has them to give now."""
        try:
            async with self._holding(partition, offset) as connection:
                found = await connection.fetch_from(partition, offset, max_bytes)
        except HistoryUnreadable as failure:
            logger.warning("older records of partition %d: %s", partition, failure)
            return b""
        if found.error:
            error = error_text(found.error)
            logger.warning("older records of partition %d: error %s", partition, error)
            return b""
        return found.records[: max((span.end for span in spans(found.records)), default=0)]

    async def epoch_end(self, partition: int, last_epoch: int) -> EpochEnd:
        """Return the newest leader epoch that is not after the given one, before our log, and
        where it ended.

        Raises HistoryUnreadable.
        """
        log, facts = self._leader.logs.get(partition), self._leader.facts.get(partition)
        witnesses = [] if log is None or facts is None else log.witnesses(facts.in_sync)
        source = self._source(witnesses, f"all of partition {partition} before our log")
        async with self._connection(source) as connection:
            found = await connection.fetch(partition, _NOWHERE, 1, last_epoch)
        if found.error or found.diverging is None:
            raise HistoryUnreadable(
                f"broker {source.broker_id} about epoch {last_epoch} of partition {partition}:"
                f" error {error_text(found.error)}"
            )
        return found.diverging

    async def whole(self, partition: int, end: int) -> AsyncIterator[bytes]:
        """Yield a partition's whole batches from its beginning up to an offset, in pieces.

        Waits while the follower has not heard yet that what it has is safe; what is safe may end
        before that offset, when the cleaner took the last records away. Raises HistoryUnreadable.
        """
        offset = 0
        while offset < end:
            async with self._holding(partition, end - 1) as connection:
                found = await connection.fetch_from(partition, offset, _CHUNK_BYTES)
            if found.error:
                error = error_text(found.error)
                raise HistoryUnreadable(f"partition {partition} from {offset}: error {error}")
            batches = list(spans(found.records))
            if batches:
                offset = batches[-1].last_offset + 1
                yield found.records[: batches[-1].end]
            elif found.high_watermark >= end:
                return
            else:
                await asyncio.sleep(_RETRY_S)

    @contextlib.asynccontextmanager
    async def _connection(self, source: Source) -> AsyncIterator[HistoryConnection]:
        if source not in self._connections:
            connection = HistoryConnection(source, self._timeout_s)
            self._connections[source] = (connection, asyncio.Lock())
        connection, lock = self._connections[source]
        async with lock:
            yield connection

    def _holding(
        self, partition: int, offset: int
    ) -> contextlib.AbstractAsyncContextManager[HistoryConnection]:
        """Return a connection to a broker in sync that has the offset; raises HistoryUnreadable."""
        log, facts = self._leader.logs.get(partition), self._leader.facts.get(partition)
        in_sync = () if log is None or facts is None else facts.in_sync
        having = [one for one in in_sync if log and log.follower(one).position > offset]
        return self._connection(self._source(having, f"offset {offset} of partition {partition}"))

    def _source(self, brokers: Sequence[int], what: str) -> Source:
        """Return the first that is registered; what: why these. Raises HistoryUnreadable."""
        image = self._image()
        for broker in brokers:
            registered = None if image is None else image.brokers.get(broker)
            end = None if registered is None else endpoint_on(registered.node, self._listener)
            if end is not None:
                return Source(broker, end.host, end.port)
        raise HistoryUnreadable(f"no broker in sync has {what}")
