"""Reads what stands in a partition before our log began, from a broker that follows us.

A follower serves consumers that name a rack (Fetch version 11, KIP-392) up to the high watermark
that we told it.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass

from streaming.image.brokers import endpoint_on
from streaming.image.cluster_image import ClusterImage
from streaming.internal_topics import GROUP_TOPIC
from streaming.offsets.batches import spans
from streaming.offsets.leader import OffsetsLeader
from streaming.wire.errors import WireError
from streaming.wire.frames import frame
from streaming.wire.messages import ApiKey, decode_response, encode_request
from streaming.wire.schema_codec import Body

logger = logging.getLogger(__name__)

CLIENT_ID = "helmstream"
_FETCH_VERSION = 11
_OFFSET_OUT_OF_RANGE = 1
_LIST_OFFSETS_VERSION = 4
_EARLIEST = -2
_CHUNK_BYTES = 1024 * 1024
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


class HistoryConnection:
    """One connection to a follower; used by one task at a time."""

    def __init__(self, source: Source, timeout_s: float) -> None:
        """Take the broker, and how long one answer may take; nothing is opened yet."""
        self._source = source
        self._timeout_s = timeout_s
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None
        self._correlation_id = 0

    async def fetch(self, partition: int, offset: int, max_bytes: int) -> tuple[bytes, int]:
        """Return (records, error code); the first batch may begin before offset.

        Raises HistoryUnreadable.
        """
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
                            "log_start_offset": -1,
                            "partition_max_bytes": max_bytes,
                        }
                    ],
                }
            ],
        }
        answer = await self._ask(ApiKey.FETCH, _FETCH_VERSION, body)
        one = answer["responses"][0]["partitions"][0]
        return one["records"] or b"", one["error_code"]

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
        one = answer["topics"][0]["partitions"][0]
        if one["error_code"]:
            raise HistoryUnreadable(f"start of partition {partition}: error {one['error_code']}")
        return int(one["offset"])

    async def _ask(self, api: ApiKey, version: int, body: Body) -> Body:
        self._correlation_id += 1
        request = encode_request(api, version, self._correlation_id, CLIENT_ID, body)
        try:
            async with asyncio.timeout(self._timeout_s):
                if self._streams is None:
                    self._streams = await asyncio.open_connection(
                        self._source.host, self._source.port
                    )
                reader, writer = self._streams
                writer.write(frame(request))
                size = int.from_bytes(await reader.readexactly(4), "big")
                answer = await reader.readexactly(size)
            return decode_response(api, version, answer)[1]
        except (OSError, EOFError, TimeoutError, WireError) as error:
            self.close()
            raise HistoryUnreadable(f"broker {self._source.broker_id}: {error!r}") from error

    def close(self) -> None:
        """Hang up; the next request connects again."""
        if self._streams is not None:
            self._streams[1].close()
            self._streams = None


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
            async with self._connection(partition, offset) as connection:
                data, error = await connection.fetch(partition, offset, max_bytes)
        except HistoryUnreadable as failure:
            logger.warning("older records of partition %d: %s", partition, failure)
            return b""
        return b"" if error else data[: max((span.end for span in spans(data)), default=0)]

    async def whole(self, partition: int, end: int) -> AsyncIterator[bytes]:
        """Yield a partition's whole batches from its beginning up to an offset, in pieces.

        Waits while the follower has not heard yet that what it has is safe. Raises
        HistoryUnreadable.
        """
        offset = 0
        while offset < end:
            async with self._connection(partition, end - 1) as connection:
                data, error = await connection.fetch(partition, offset, _CHUNK_BYTES)
                if error == _OFFSET_OUT_OF_RANGE and offset == 0:
                    offset = await connection.earliest(partition)
                    continue
            if error:
                raise HistoryUnreadable(f"partition {partition} from {offset}: error {error}")
            found = list(spans(data))
            if not found:
                await asyncio.sleep(_RETRY_S)
                continue
            offset = found[-1].last_offset + 1
            yield data[: found[-1].end]

    @contextlib.asynccontextmanager
    async def _connection(self, partition: int, offset: int) -> AsyncIterator[HistoryConnection]:
        """Yield a connection to a broker in sync that has the offset; raises HistoryUnreadable."""
        source = self._source(partition, offset)
        if source not in self._connections:
            connection = HistoryConnection(source, self._timeout_s)
            self._connections[source] = (connection, asyncio.Lock())
        connection, lock = self._connections[source]
        async with lock:
            yield connection

    def _source(self, partition: int, offset: int) -> Source:
        log, facts = self._leader.logs.get(partition), self._leader.facts.get(partition)
        image = self._image()
        if log is not None and facts is not None and image is not None:
            for broker in facts.in_sync:
                registered = image.brokers.get(broker)
                end = None if registered is None else endpoint_on(registered.node, self._listener)
                if end is not None and log.follower(broker).position > offset:
                    return Source(broker, end.host, end.port)
        raise HistoryUnreadable(f"no broker in sync has offset {offset} of partition {partition}")
