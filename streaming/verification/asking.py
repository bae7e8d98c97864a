"""Asks one broker what it tells clients, and which replicas it has; changes nothing there."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Collection, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from state.protocol_errors import ProtocolError, error_text
from state.topic_ids import topic_id_to_text
from state.topic_partition import TopicPartition
from streaming.security.connector import Connector
from streaming.verification.cluster import Leadership, Topic
from streaming.verification.differences import Metadata, Replicas
from streaming.wire.apis import APIS, ApiKey
from streaming.wire.asked_versions import ServedVersions, Unsupported, asked_versions
from streaming.wire.endpoints import Endpoint
from streaming.wire.exchange import CLIENT_ID, Exchange
from streaming.wire.partition_reads import DEBUGGING_REPLICA, LATEST
from streaming.wire.requests import encode_request
from streaming.wire.responses import decode_response
from streaming.wire.schema_codec import Body

_METADATA_LEADER_EPOCHS = 7
_METADATA_TOPIC_IDS = 10
_LIST_OFFSETS_LEADER_EPOCHS = 4
"""Versions since which they are there; brokers of 2.1 have the first and the last."""
_CONSUMER = -1
"""Who asks as this one is answered by leaders only."""
_MAY_NOT_ASK = "we may not ask"
_ASKED_AT_ONCE = 1000
"""Replicas in one request: a broker is not kept busy by it for long."""


@dataclass(slots=True)
class Broker:
    """A connection to a broker, for one question at a time; refused: what it does not tell us."""

    connection: Exchange
    versions: ServedVersions
    timeout_s: float
    refused: list[str] = field(default_factory=list)

    async def metadata(self, expected: Iterable[str]) -> Metadata:
        """Return what it tells clients; expected: topics that it must know.

        An answer of all topics leaves out those that we may not see: of the expected ones it is
        asked by name. Raises OSError, TimeoutError, WireError.
        """
        answer = await self._metadata(None)
        topics = {one["name"]: _topic(one) for one in answer["topics"]}
        hidden = frozenset[str]()
        if missing := sorted(set(expected) - topics.keys()):
            named, hidden = await self.named(missing)
            topics |= named
        return Metadata(
            answer["controller_id"],
            frozenset(one["node_id"] for one in answer["brokers"]),
            topics,
            hidden,
            self.versions.at_most(ApiKey.METADATA, _METADATA_TOPIC_IDS) == _METADATA_TOPIC_IDS,
        )

    async def named(self, names: Iterable[str]) -> tuple[dict[str, Topic], frozenset[str]]:
        """Return those of some topics that it knows, and those that it does not show us; raises as
        `metadata`.
        """
        answer = await self._metadata([{"topic_id": None, "name": name} for name in names])
        codes = {one["name"]: one["error_code"] for one in answer["topics"]}
        known = {one["name"]: _topic(one) for one in answer["topics"] if not one["error_code"]}
        return known, self._hidden(codes)

    async def replicas(
        self, own: Sequence[tuple[TopicPartition, Leadership]], broker_id: int
    ) -> Replicas:
        """Return what it says of its own replicas, under the leader epochs that it is to have
        heard; raises as `metadata`.
        """
        codes: dict[TopicPartition, int] = {}
        for leads, who in ((True, _CONSUMER), (False, DEBUGGING_REPLICA)):
            of_kind = [one for one in own if (one[1].leader == broker_id) == leads]
            for start in range(0, len(of_kind), _ASKED_AT_ONCE):
                codes |= await self._codes(of_kind[start : start + _ASKED_AT_ONCE], who)
        hidden = self._hidden({topic: code for (topic, _), code in codes.items()})
        seen = {place: code for place, code in codes.items() if place[0] not in hidden}
        folders, failed = await self._folders()
        return Replicas(seen, folders, failed)

    async def _codes(
        self, some: Sequence[tuple[TopicPartition, Leadership]], who: int
    ) -> dict[TopicPartition, int]:
        """Return an error code for each replica."""
        topics: dict[str, list[Body]] = {}
        for (topic, partition), held in some:
            said = {"partition_index": partition, "current_leader_epoch": held.leader_epoch}
            topics.setdefault(topic, []).append(said | {"timestamp": LATEST})
        answer = await self.ask(
            ApiKey.LIST_OFFSETS,
            {
                "replica_id": who,
                "isolation_level": 0,
                "topics": [{"name": name, "partitions": rows} for name, rows in topics.items()],
            },
            _LIST_OFFSETS_LEADER_EPOCHS,
        )
        return {
            (topic["name"], one["partition_index"]): one["error_code"]
            for topic in answer["topics"]
            for one in topic["partitions"]
        }

    async def _folders(self) -> tuple[dict[TopicPartition, str], dict[str, str]]:
        """Return the folder of each replica on its disks, and the disks that failed, with the
        reason. Copies that are to move to another disk are not told.
        """
        answer = await self.ask(ApiKey.DESCRIBE_LOG_DIRS, {"topics": None})
        disks = answer["results"]
        if not disks:  # before version 3 it does not say that we may not ask
            self.refused.append(f"its disks: {_MAY_NOT_ASK} (DESCRIBE on the cluster)")
        failed = {one["log_dir"]: error_text(code) for one in disks if (code := one["error_code"])}
        found = {
            (topic["name"], one["partition_index"]): disk["log_dir"]
            for disk in disks
            for topic in disk["topics"]
            for one in topic["partitions"]
            if not one["is_future_key"]
        }
        return found, failed

    async def _metadata(self, topics: Collection[Body] | None) -> Body:
        body = {
            "topics": topics,
            "allow_auto_topic_creation": False,
            "include_cluster_authorized_operations": False,
            "include_topic_authorized_operations": False,
        }
        return await self.ask(ApiKey.METADATA, body, _METADATA_LEADER_EPOCHS)

    async def ask(self, api: ApiKey, body: Body, since: int = 0) -> Body:
        """Return the answer to a question; since: the oldest version that will do."""
        version = self.versions.at_most(api, APIS[api].max_version)
        if version < since:
            raise Unsupported(f"the broker serves {APIS[api].name} up to version {version} only")
        request = encode_request(api, version, 0, CLIENT_ID, body)
        async with asyncio.timeout(self.timeout_s):
            answer = await self.connection.ask(request)
        return decode_response(api, version, answer)[1]

    def _hidden(self, codes: Mapping[str, int]) -> frozenset[str]:
        """Return the topics that we may not see, after noting it."""
        refusal = ProtocolError.TOPIC_AUTHORIZATION_FAILED
        hidden = sorted(topic for topic, code in codes.items() if code == refusal)
        if hidden:
            more = f" and {len(hidden) - 1} more" if len(hidden) > 1 else ""
            self.refused.append(f"topic {hidden[0]}{more}: {_MAY_NOT_ASK} (DESCRIBE on it)")
        return frozenset(hidden)


@asynccontextmanager
async def connected(connector: Connector, end: Endpoint, timeout_s: float) -> AsyncIterator[Broker]:
    """Give a broker that can be asked, each question for at most so long.

    Raises OSError, TimeoutError, WireError.
    """
    async with asyncio.timeout(timeout_s):
        connection = await connector.open(end)
    try:
        async with asyncio.timeout(timeout_s):
            versions = await asked_versions(connection)
        yield Broker(connection, versions, timeout_s)
    finally:
        connection.abort()


def _topic(said: Body) -> Topic:
    partitions = {one["partition_index"]: _leadership(one) for one in said["partitions"]}
    id_ = said.get("topic_id")
    return Topic(None if id_ is None else topic_id_to_text(id_.bytes), partitions)


def _leadership(said: Body) -> Leadership:
    return Leadership(
        said["leader_id"],
        said["leader_epoch"],
        tuple(sorted(said["isr_nodes"])),
        tuple(said["replica_nodes"]),
    )
