"""Reads what stands in a partition before our log began, from a broker that follows us.

Who failed is asked last the next time: of several brokers that have the same, one may hang, or have
a disk that cannot be read.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Iterator, Mapping

from state.protocol_errors import ProtocolError, error_text
from streaming.image.brokers import endpoint_on
from streaming.image.cluster_image import ClusterImage
from streaming.offsets.batches import UnreadableBatch, spans
from streaming.offsets.follower import EpochEnd
from streaming.offsets.history_connection import (
    Fetched,
    HistoryConnection,
    HistoryUnreadable,
    NotAnswered,
    Source,
)
from streaming.offsets.leader import OffsetsLeader
from streaming.security.connector import Connector
from streaming.wire.schema_codec import Body

logger = logging.getLogger(__name__)

_NOWHERE = 2**63 - 1  # an offset that no log has: logs part before it
_CHUNK_BYTES = 1024 * 1024
_RETRY_S = 0.1
_NEVER = -1
_TAKES_RACKS, _TELLS_EPOCHS = 11, 12
"""Versions of Fetch in which followers serve consumers, and say where a leader epoch ended."""


class History:
    """Reads partitions through one connection to each follower, one request at a time on each."""

    def __init__(
        self,
        leader: OffsetsLeader,
        image: Callable[[], ClusterImage | None],
        listener: str,
        connector: Connector,
        timeout_s: float,
        *,
        epochs_told: bool = True,
    ) -> None:
        """listener: on which brokers are asked, through the connector; timeout_s: how long one
        answer may take; epochs_told: whether brokers can say where epochs ended.
        """
        self._leader = leader
        self._image = image
        self._listener = listener
        self._connector = connector
        self._timeout_s = timeout_s
        self.epochs_told = epochs_told
        self._connections: dict[Source, tuple[HistoryConnection, asyncio.Lock]] = {}
        # Failures are numbered; of a broker by partition, and of one that does not answer at all.
        self._count = itertools.count()
        self._failed: dict[tuple[int, int], int] = {}
        self._silent: dict[int, int] = {}

    def close(self) -> None:
        """Hang up."""
        for connection, _ in self._connections.values():
            connection.close()
        self._connections.clear()

    async def read(self, partition: int, offset: int, max_bytes: int) -> bytes:
        """Return whole batches from an offset on; b"" when nobody has them to give now."""
        try:
            source = self._holding(partition, offset)
            with self._noting_failure(partition, source):
                found = await self._fetch(source, partition, offset, max_bytes)
                end = max((span.end for span in spans(found.records)), default=0)
        except (HistoryUnreadable, UnreadableBatch) as failure:
            logger.warning("older records of partition %d: %s", partition, failure)
            return b""
        if not end:  # it may not have heard yet that they are safe, but others may have
            self._note_failure(partition, source)
        return found.records[:end]

    async def epoch_end(self, partition: int, last_epoch: int) -> EpochEnd | None:
        """Return the newest leader epoch that is not after the given one, before our log, and
        where it ended; None when all epochs there are older.

        Raises HistoryUnreadable. Source: Partition.readRecords, UnifiedLog.endOffsetForEpoch.
        """
        log, facts = self._leader.logs.get(partition), self._leader.facts.get(partition)
        witnesses = [] if log is None or facts is None else log.witnesses(facts.in_sync)
        source = self._source(partition, witnesses, f"all of partition {partition} before our log")
        with self._noting_failure(partition, source):
            async with self._connection(source) as connection:
                found = await connection.fetch(partition, _NOWHERE, 1, last_epoch)
            if found.error == ProtocolError.OFFSET_OUT_OF_RANGE:
                return None
            if found.error or found.diverging is None:
                raise HistoryUnreadable(
                    f"broker {source.broker_id} about epoch {last_epoch} of partition {partition}:"
                    f" error {error_text(found.error)}"
                )
            return found.diverging

    async def log_ends(self, broker_id: int, epochs: Mapping[int, int]) -> Mapping[int, int]:
        """Return where a broker's logs end, of those partitions (number: leader epoch) that it
        follows under that epoch.

        Raises HistoryUnreadable.
        """
        source = self._broker(broker_id)
        with self._noting_failure(min(epochs), source):
            async with self._connection(source) as connection:
                return await connection.ends(epochs)

    async def is_followed(self, partition: int, epoch: int) -> bool:
        """Return whether all registered brokers in sync follow a partition under a leader epoch, so
        that none of them has heard of a later leader.

        Raises HistoryUnreadable.
        """
        facts = self._leader.facts.get(partition)
        in_sync = [] if facts is None else [*filter(self._registered, facts.in_sync)]
        if not in_sync:
            raise HistoryUnreadable(f"no broker in sync can say who leads partition {partition}")
        for broker in in_sync:
            if partition not in await self.log_ends(broker, {partition: epoch}):
                return False
        return True

    async def committed(self, broker_id: int, partition: int, end: int) -> int:
        """Return a broker's own high watermark of a partition whose log ends there at an offset.

        Raises HistoryUnreadable.
        """
        source = self._broker(broker_id)
        with self._noting_failure(partition, source):
            async with self._connection(source) as connection:
                found = await connection.fetch(partition, end, 1, max_wait_ms=0)
            _check(source, partition, end, found)
        return found.high_watermark

    async def fetched(self, partition: int, offset: int, max_bytes: int, isolation: int) -> Body:
        """Return what a broker in sync says to a consumer of this isolation level that fetches from
        an offset which is safe.

        Raises HistoryUnreadable.
        """
        source = self._holding(partition, offset)
        with self._noting_failure(partition, source):
            async with self._connection(source) as connection:
                found = await connection.fetch(
                    partition, offset, max_bytes, max_wait_ms=0, isolation_level=isolation
                )
        return found.said

    async def offset_at(self, partition: int, timestamp: int) -> Body:
        """Return what a broker in sync says of the first record of a time, or later.

        Raises HistoryUnreadable.
        """
        facts = self._leader.facts.get(partition)
        in_sync = () if facts is None else facts.in_sync
        source = self._source(partition, in_sync, f"partition {partition}")
        with self._noting_failure(partition, source):
            async with self._connection(source) as connection:
                return await connection.offset_at(partition, timestamp)

    async def whole(self, partition: int, end: int) -> AsyncGenerator[bytes]:
        """Yield a partition's whole batches from its beginning up to an offset, in pieces, all of
        one broker: what the cleaner took away of one, another may have.

        Who closes it before its end could not read a piece, and gets another broker's next time.
        Waits while the follower has not heard yet that what it has is safe, but no longer than for
        an answer; what is safe may end before that offset, when the cleaner took the last records
        away. Raises HistoryUnreadable, UnreadableBatch.
        """
        if end <= 0:
            return
        source = self._holding(partition, end - 1)
        with self._noting_failure(partition, source):
            offset = 0
            now_s = asyncio.get_running_loop().time
            waited_until_s = now_s() + self._timeout_s
            while offset < end:
                self._check_holding(partition, end - 1, source)
                found = await self._fetch(source, partition, offset, _CHUNK_BYTES)
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
                        f"partition {partition} from {offset}: broker {source.broker_id} has it up"
                        f" to {end}, but its high watermark stays at {found.high_watermark}"
                    )

    async def _fetch(self, source: Source, partition: int, offset: int, max_bytes: int) -> Fetched:
        """Return what a broker has from an offset on; raises HistoryUnreadable."""
        async with self._connection(source) as connection:
            found = await connection.fetch_from(partition, offset, max_bytes)
        _check(source, partition, offset, found)
        return found

    @contextlib.asynccontextmanager
    async def _connection(self, source: Source) -> AsyncIterator[HistoryConnection]:
        """Hold the connection to a broker; raises NotAnswered when it did not answer who held it
        before.
        """
        if source not in self._connections:
            self._forget_earlier(source.broker_id)
            version = _TELLS_EPOCHS if self.epochs_told else _TAKES_RACKS
            connection = HistoryConnection(source, self._connector, self._timeout_s, version)
            self._connections[source] = (connection, asyncio.Lock())
        connection, lock = self._connections[source]
        before = self._silent.get(source.broker_id, _NEVER)
        async with lock:
            if self._silent.get(source.broker_id, _NEVER) > before:
                raise NotAnswered(f"broker {source.broker_id} did not answer another request")
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

    def _holding(self, partition: int, offset: int) -> Source:
        """Return a broker in sync that has the offset; raises HistoryUnreadable."""
        having = self._having(partition, offset)
        return self._source(partition, having, f"offset {offset} of partition {partition}")

    def _having(self, partition: int, offset: int) -> list[int]:
        log, facts = self._leader.logs.get(partition), self._leader.facts.get(partition)
        if log is None or facts is None:
            return []
        return [one for one in facts.in_sync if log.follower(one).position > offset]

    def _check_holding(self, partition: int, offset: int, source: Source) -> None:
        if source.broker_id not in self._having(partition, offset):
            raise HistoryUnreadable(
                f"broker {source.broker_id} has offset {offset} of partition {partition} no more,"
                " or is not in sync"
            )

    def _source(self, partition: int, brokers: Iterable[int], what: str) -> Source:
        """Return the registered one whose last failure is the oldest; what: why these. Raises
        HistoryUnreadable.
        """
        for broker in sorted(brokers, key=lambda one: self._last_failure(partition, one)):
            if source := self._registered(broker):
                return source
        raise HistoryUnreadable(f"no broker in sync has {what}")

    def _broker(self, broker_id: int) -> Source:
        """Return one broker; raises HistoryUnreadable."""
        if source := self._registered(broker_id):
            return source
        raise HistoryUnreadable(f"broker {broker_id} is not registered on {self._listener}")

    def _registered(self, broker_id: int) -> Source | None:
        image = self._image()
        registered = None if image is None else image.brokers.get(broker_id)
        end = None if registered is None else endpoint_on(registered.node, self._listener)
        return None if end is None else Source(broker_id, end)

    def _last_failure(self, partition: int, broker: int) -> int:
        silent = self._silent.get(broker, _NEVER)
        return max(silent, self._failed.get((partition, broker), _NEVER))

    @contextlib.contextmanager
    def _noting_failure(self, partition: int, source: Source) -> Iterator[None]:
        """Note it when a broker fails, or a generator is closed before it is through."""
        try:
            yield
        except NotAnswered:
            self._silent[source.broker_id] = next(self._count)
            raise
        except (HistoryUnreadable, UnreadableBatch, GeneratorExit):
            self._note_failure(partition, source)
            raise

    def _note_failure(self, partition: int, source: Source) -> None:
        self._failed[partition, source.broker_id] = next(self._count)


def _check(source: Source, partition: int, offset: int, found: Fetched) -> None:
    """Raise HistoryUnreadable if a broker said that it cannot tell."""
    if found.error:
        raise HistoryUnreadable(
            f"broker {source.broker_id} about partition {partition} from {offset}:"
            f" error {error_text(found.error)}"
        )
