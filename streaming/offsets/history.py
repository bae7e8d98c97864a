"""Reads what stands in a partition before our log began, from a broker that follows us."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Callable, Sequence

from state.protocol_errors import error_text
from streaming.image.brokers import endpoint_on
from streaming.image.cluster_image import ClusterImage
from streaming.offsets.batches import spans
from streaming.offsets.history_connection import HistoryConnection, HistoryUnreadable, Source
from streaming.offsets.leader import OffsetsLeader
from streaming.offsets.partition_log import EpochEnd
from streaming.security.connector import Connector

logger = logging.getLogger(__name__)

_NOWHERE = 2**63 - 1  # an offset that no log has: logs part before it
_CHUNK_BYTES = 1024 * 1024
_RETRY_S = 0.1


class History:
    """Reads partitions through one connection to each follower, one request at a time on each."""

    def __init__(
        self,
        leader: OffsetsLeader,
        image: Callable[[], ClusterImage | None],
        listener: str,
        connector: Connector,
        timeout_s: float,
    ) -> None:
        """listener: on which brokers are asked, through the connector; timeout_s: how long one
        answer may take.
        """
        self._leader = leader
        self._image = image
        self._listener = listener
        self._connector = connector
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

        Waits while the follower has not heard yet that what it has is safe, but no longer than for
        an answer; what is safe may end before that offset, when the cleaner took the last records
        away. Raises HistoryUnreadable.
        """
        offset = 0
        now_s = asyncio.get_running_loop().time
        waited_until_s = now_s() + self._timeout_s
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
                waited_until_s = now_s() + self._timeout_s
            elif found.high_watermark >= end:
                return
            elif now_s() < waited_until_s:
                await asyncio.sleep(_RETRY_S)
            else:
                raise HistoryUnreadable(
                    f"partition {partition} from {offset}: broker {connection.broker_id} has it up"
                    f" to {end}, but its high watermark stays at {found.high_watermark}"
                )

    @contextlib.asynccontextmanager
    async def _connection(self, source: Source) -> AsyncIterator[HistoryConnection]:
        if source not in self._connections:
            self._forget_earlier(source.broker_id)
            connection = HistoryConnection(source, self._connector, self._timeout_s)
            self._connections[source] = (connection, asyncio.Lock())
        connection, lock = self._connections[source]
        async with lock:
            yield connection

    def _forget_earlier(self, broker_id: int) -> None:
        """Hang up on where a broker was before, and on brokers that are gone; a connection that is
        in use may be forgotten another time.
        """
        image = self._image()
        present = () if image is None else image.brokers
        for source, (connection, lock) in list(self._connections.items()):
            is_over = source.broker_id == broker_id or source.broker_id not in present
            if is_over and not lock.locked():
                connection.close()
                del self._connections[source]

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
                return Source(broker, end)
        raise HistoryUnreadable(f"no broker in sync has {what}")
