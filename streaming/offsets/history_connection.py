"""What a broker that follows us is asked of a partition, and its answers.

A follower serves consumers that name a rack (Fetch from version 11, KIP-392), before Kafka 2.4 only
those that debug, up to the high watermark that we told it. Which versions it knows it is asked:
those of 2.1 and 2.2 know no racks. From version 12 it says, too, where a leader epoch ended in its
log. Where its log begins and ends it says to who debugs as well.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from state.protocol_errors import ProtocolError, error_text
from streaming.internal_topics import GROUP_TOPIC
from streaming.offsets.follower import UNKNOWN, EpochEnd
from streaming.security.connector import Connector
from streaming.wire.apis import ApiKey
from streaming.wire.asked_versions import ServedVersions, asked_versions
from streaming.wire.endpoints import Endpoint
from streaming.wire.errors import WireError
from streaming.wire.exchange import CLIENT_ID, Exchange, still_open
from streaming.wire.partition_reads import DEBUGGING_REPLICA, EARLIEST, LATEST
from streaming.wire.requests import encode_request
from streaming.wire.responses import decode_response
from streaming.wire.schema_codec import Body

logger = logging.getLogger(__name__)

_LIST_OFFSETS_MAX_VERSION = 4
_ANY_EPOCH = -1
_FETCH_MAX_BYTES = 55 * 1024 * 1024  # what a broker says at most unless configured (KIP-541)
_MAX_WAIT_MS = 100


class HistoryUnreadable(Exception):
    """A follower cannot be reached, or refuses; the message says which and why."""


class NotAnswered(HistoryUnreadable):
    """A follower cannot be reached, or says nothing that is an answer, whatever it is asked."""


@dataclass(frozen=True, slots=True)
class Source:
    """A broker, and where it listens."""

    broker_id: int
    end: Endpoint


@dataclass(frozen=True, slots=True)
class Fetched:
    """What a broker answers about one partition; diverging: what it has up to the last epoch that
    was named, if that is less; said: all of it, as it was said.
    """

    records: bytes
    error: int
    high_watermark: int
    diverging: EpochEnd | None
    said: Body


class HistoryConnection:
    """One connection to a follower; used by one task at a time. Any request may raise NotAnswered,
    which is a HistoryUnreadable.
    """

    def __init__(
        self, source: Source, connector: Connector, timeout_s: float, fetch_max_version: int
    ) -> None:
        """Take the broker, and how long one answer may take; nothing is opened yet."""
        self._source = source
        self._max_versions = {
            ApiKey.FETCH: fetch_max_version,
            ApiKey.LIST_OFFSETS: _LIST_OFFSETS_MAX_VERSION,
        }
        self._served = ServedVersions()
        self._connector = connector
        self._timeout_s = timeout_s
        self._connection: Exchange | None = None

    @property
    def broker_id(self) -> int:
        """Who is asked."""
        return self._source.broker_id

    async def fetch(
        self,
        partition: int,
        offset: int,
        max_bytes: int,
        last_epoch: int = UNKNOWN,
        *,
        max_wait_ms: int = _MAX_WAIT_MS,
        isolation_level: int = 0,
    ) -> Fetched:
        """Return what there is; the first batch may begin before offset. last_epoch: of the record
        before the offset, which versions before 12 do not say.

        Raises HistoryUnreadable.
        """
        # Whoever asks us may want more at once than an answer to us can hold.
        max_bytes = min(max_bytes, _FETCH_MAX_BYTES)
        body: Body = {
            "replica_id": DEBUGGING_REPLICA,
            "max_wait_ms": max_wait_ms,
            "isolation_level": isolation_level,
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
        return Fetched(
            one["records"] or b"", one["error_code"], one["high_watermark"], diverging, one
        )

    async def _fetch(self, body: Body) -> Sequence[Body]:
        """Return what is said of topics. A broker that throttles consumers says nothing of them,
        and how long to be quiet (KIP-219; FetchSession.getThrottledResponse).
        """
        while True:
            answer = await self._ask(ApiKey.FETCH, body)
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
        if found.error == ProtocolError.OFFSET_OUT_OF_RANGE:
            earliest = await self.earliest(partition)
            if earliest > offset:
                return await self.fetch(partition, earliest, max_bytes)
        return found

    async def earliest(self, partition: int) -> int:
        """Return where a partition begins; raises HistoryUnreadable."""
        return int((await self.offset_at(partition, EARLIEST))["offset"])

    async def offset_at(self, partition: int, timestamp: int) -> Body:
        """Return what is said of the first record of a time, or later; raises HistoryUnreadable."""
        (one,) = await self._offsets({partition: _ANY_EPOCH}, timestamp)
        if one["error_code"]:
            error = error_text(one["error_code"])
            raise HistoryUnreadable(
                f"offset at {timestamp} of partition {partition}: error {error}"
            )
        return one

    async def ends(self, epochs: Mapping[int, int]) -> dict[int, int]:
        """Return where the broker's logs end, of those partitions (number: leader epoch) that it
        follows under that epoch; raises HistoryUnreadable.
        """
        said = await self._offsets(epochs, LATEST)
        return {one["partition_index"]: one["offset"] for one in said if not one["error_code"]}

    async def _offsets(self, epochs: Mapping[int, int], timestamp: int) -> list[Body]:
        """Return what is said of each partition; raises HistoryUnreadable."""
        asked = [
            {"partition_index": one, "current_leader_epoch": epoch, "timestamp": timestamp}
            for one, epoch in epochs.items()
        ]
        body: Body = {
            "replica_id": DEBUGGING_REPLICA,
            "topics": [{"name": GROUP_TOPIC, "partitions": asked}],
        }
        answer = await self._ask(ApiKey.LIST_OFFSETS, body)
        said = [one for topic in answer["topics"] for one in topic["partitions"]]
        numbers = [one["partition_index"] for one in said]
        if sorted(numbers) != sorted(epochs):
            raise HistoryUnreadable(f"partitions {[*epochs]}: an answer about {numbers}")
        return said

    async def _ask(self, api: ApiKey, body: Body) -> Body:
        try:
            async with asyncio.timeout(self._timeout_s):
                return await self._exchange(api, body)
        except (OSError, TimeoutError, WireError) as error:
            self.close()
            raise NotAnswered(f"broker {self._source.broker_id}: {error!r}") from error
        except BaseException:
            # An answer that nobody waits for any more would be taken for that to the next request.
            self.close()
            raise

    async def _exchange(self, api: ApiKey, body: Body) -> Body:
        self._connection = still_open(self._connection)
        if self._connection is None:
            self._connection = await self._connector.open(self._source.end)
            self._served = await asked_versions(self._connection)
        version = self._served.at_most(api, self._max_versions[api])
        request = encode_request(api, version, 0, CLIENT_ID, body)
        return decode_response(api, version, await self._connection.ask(request))[1]

    def close(self) -> None:
        """Hang up; the next request connects again."""
        if self._connection is not None:
            self._connection.abort()
            self._connection = None


def _about(partition: int, topics: Sequence[Body]) -> Body:
    """Return what an answer says of the partition that was asked for; raises HistoryUnreadable."""
    said: list[Body] = [one for topic in topics for one in topic["partitions"]]
    numbers = [one["partition_index"] for one in said]
    if numbers != [partition]:
        raise HistoryUnreadable(f"partition {partition}: an answer about {numbers}")
    return said[0]
