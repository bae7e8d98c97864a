"""A cluster whose group topic this node leads, as image and as a topic of rows."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from state.topic_ids import topic_id_from_text
from streaming.gateway.calls import BoundListener, Call
from streaming.internal_topics import GROUP_TOPIC
from streaming.offsets.batches import BatchRecord, encode_batch
from streaming.offsets.consumer_reads import ConsumerReads
from streaming.offsets.history_connection import HistoryUnreadable
from streaming.offsets.leader import OffsetsLeader
from streaming.security.principals import STRANGER
from streaming.wire.apis import ApiKey
from streaming.wire.requests import RequestHeader
from tests.unit.gateway.support import FakeCluster

BATCH = encode_batch([BatchRecord(1, b"k", b"v")])
FETCH_VERSION = 17
EPOCHS_VERSION = 3
_REPLICA_STATE_SINCE = 15
OLDER = 0
"""A leader epoch before ours."""


class Followers:
    """What brokers in sync say to consumers. said: (partition, offset, bytes, isolation level),
    (partition, timestamp) and (partition, epoch) that were asked.
    """

    def __init__(self) -> None:
        self.asked: list[tuple[int, ...]] = []
        self.records = b""
        self.error = 0
        self.stable = 7
        self.offset = 3
        self.follow = True
        self.unreadable = False

    async def is_followed(self, partition: int, epoch: int) -> bool:
        self._note(partition, epoch)
        return self.follow

    async def fetched(
        self, partition: int, offset: int, max_bytes: int, isolation: int
    ) -> dict[str, Any]:
        self._note(partition, offset, max_bytes, isolation)
        return {
            "error_code": self.error,
            "last_stable_offset": self.stable,
            "log_start_offset": 1,
            "aborted_transactions": None,
            "records": self.records,
        }

    async def offset_at(self, partition: int, timestamp: int) -> dict[str, Any]:
        self._note(partition, timestamp)
        offset = {"offset": self.offset, "timestamp": timestamp, "leader_epoch": OLDER}
        return {"error_code": 0, **offset}

    def _note(self, *asked: int) -> None:
        self.asked.append(asked)
        if self.unreadable:
            raise HistoryUnreadable("no broker in sync has it")


class Led:
    """Two partitions on brokers 1, 2 and 3, taken over; now_s is the clock."""

    def __init__(self) -> None:
        self.now_s = 0.0
        self.min_insync_replicas: int | None = 1
        self.cluster = FakeCluster()
        topic_id = self.cluster.create(GROUP_TOPIC, [[1, 2, 3], [2, 3, 1]])
        self.topic_id = topic_id_from_text(topic_id)
        self.leader = OffsetsLeader(lambda: self.now_s, lambda: self.min_insync_replicas)
        self.followers = Followers()
        self.consumers = ConsumerReads(self.leader, self.cluster.image, self.followers)
        self.look()
        self.lead()

    def lead(self) -> None:
        """Begin a term."""
        self.leader.lead([0, 1])
        self.raise_epochs()

    def raise_epochs(self) -> None:
        body = {"request_id": "r", "topic": GROUP_TOPIC}
        self.cluster.happen("raise_leader_epochs_requested", GROUP_TOPIC, body)
        self.look()

    def delete(self) -> None:
        body = {"request_id": "r", "topic": GROUP_TOPIC}
        self.cluster.happen("delete_topic_requested", GROUP_TOPIC, body)
        self.look()

    def look(self) -> None:
        self.leader.look_at(self.cluster.known, self.cluster.partition_count(GROUP_TOPIC))

    def fetch(self, broker: int, offset: int, partition: int = 0, epoch: int = OLDER) -> None:
        """A broker says how far it is, and of which leader epoch its last record is."""
        self.leader.fetched(self.leader.logs[partition], broker, offset, epoch)

    def begin(self, offset: int = 0) -> None:
        """All brokers agree about partition 0."""
        for broker in (1, 2, 3):
            self.fetch(broker, offset)

    def asked(
        self, partition: dict[str, Any], version: int = FETCH_VERSION, broker: int = 2
    ) -> Call:
        """A Fetch of one partition; what is not said has the value of a follower in step."""
        log = self.leader.logs[0]
        one = {
            "partition": 0,
            "current_leader_epoch": log.epoch,
            "fetch_offset": max(log.end, 0),
            "last_fetched_epoch": log.epochs[-1][0] if log.epochs else OLDER,
            "partition_max_bytes": 1_000_000,
        }
        named = {"topic": GROUP_TOPIC, "topic_id": UUID(bytes=self.topic_id)}
        topic = {**named, "partitions": [one | partition]}
        header = RequestHeader(ApiKey.FETCH, version, 1, "broker")
        since = version >= _REPLICA_STATE_SINCE
        state = {"replica_id": broker, "replica_epoch": -1} if since else None
        body = {"replica_id": -1 if since else broker, "replica_state": state}
        body |= {"max_wait_ms": 20, "topics": [topic]}
        return _call(header, body)

    def asked_about_epochs(
        self,
        partition: dict[str, Any],
        broker: int = 2,
        *,
        version: int = EPOCHS_VERSION,
        client: str = "broker",
    ) -> Call:
        """An OffsetForLeaderEpoch of one partition."""
        topic = {"topic": GROUP_TOPIC, "partitions": [partition]}
        header = RequestHeader(ApiKey.OFFSET_FOR_LEADER_EPOCH, version, 1, client)
        return _call(header, {"replica_id": broker, "topics": [topic]})


def _call(header: RequestHeader, body: dict[str, Any]) -> Call:
    return Call(header, body, BoundListener("INTERNAL", "127.0.0.1", 0), b"", STRANGER)
