"""Looks at a cluster until what differs has differed for a while, or does not any more.

Brokers hear of a change after ZooKeeper has it, and ZooKeeper is not read in one moment: one look
finds what is under way, too. What counts is what a broker has otherwise in two looks in a row while
ZooKeeper's value stayed as it was.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field

from streaming.image.brokers import endpoint_on
from streaming.internal_topics import GROUP_TOPIC
from streaming.security.connector import Connector
from streaming.verification.asking import Broker, connected
from streaming.verification.cluster import Cluster, Topic
from streaming.verification.differences import (
    Difference,
    metadata_differences,
    replica_differences,
)
from streaming.wire.endpoints import Endpoint
from streaming.wire.errors import WireError

LOOKS_MAX = 6
"""What changes from each look to the next for so long is not compared."""
_AT_ONCE = 4
"""Brokers that are asked at the same time: an answer of all partitions takes much memory."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What was compared of a broker: topics and partitions that it tells of, replicas of its own;
    what differs, and what it did not tell.
    """

    broker: int
    topics: int = 0
    partitions: int = 0
    replicas: int = 0
    differences: Sequence[Difference] = ()
    gaps: Sequence[str] = ()


@dataclass(slots=True)
class Found:
    """What was found so far: of each broker by the last look at it. moving: what differs, and was
    not yet so in the look before.
    """

    asked: dict[int, Asked] = field(default_factory=dict)
    confirmed: dict[int, list[Difference]] = field(default_factory=dict)
    moving: dict[int, list[Difference]] = field(default_factory=dict)
    cluster_gaps: list[str] = field(default_factory=list)

    @property
    def differences(self) -> list[Difference]:
        """What differs, by broker."""
        return [one for id_ in sorted(self.confirmed) for one in self.confirmed[id_]]

    @property
    def gaps(self) -> list[str]:
        """What was not compared, and why."""
        of_brokers = [
            f"broker {id_}: {gap}" for id_, one in sorted(self.asked.items()) for gap in one.gaps
        ]
        changing = [
            f"broker {id_}: {len(some)} things changed from each look to the next"
            for id_, some in sorted(self.moving.items())
            if some
        ]
        return [*self.cluster_gaps, *of_brokers, *changing]


class Looks:
    """Looks at one cluster, on one listener of its brokers."""

    def __init__(
        self, read: Callable[[], Cluster], connector: Connector, listener: str, timeout_s: float
    ) -> None:
        """Take how ZooKeeper is read and brokers are reached, and how long an answer may take."""
        self._read = read
        self._connector = connector
        self._listener = listener
        self._timeout_s = timeout_s

    async def verify(self, settle_s: float) -> Found:
        """Return what differs for as long as settle_s, and what could not be compared; raises what
        reading does.
        """
        found = Found()
        brokers: Collection[int] | None = None
        for look in range(LOOKS_MAX):
            if look:
                await asyncio.sleep(settle_s)
            cluster = self._read()
            for asked in await self._ask(cluster, found, brokers):
                _take(found, asked)
            for gone in found.asked.keys() - cluster.brokers.keys():
                del found.asked[gone], found.confirmed[gone], found.moving[gone]
            brokers = [id_ for id_, some in found.moving.items() if some]
            if not brokers:
                break
        return found

    async def _ask(
        self, cluster: Cluster, found: Found, brokers: Collection[int] | None
    ) -> list[Asked]:
        """Ask brokers, all of them by default."""
        reached = {
            id_: end
            for id_, node in cluster.brokers.items()
            if (end := endpoint_on(node, self._listener)) is not None
        }
        found.cluster_gaps = [*cluster.unread]
        controller_id = cluster.controller_id
        if controller_id is not None and await self._leads_groups(controller_id, cluster, reached):
            cluster = cluster.with_groups_led_by(controller_id)
        turns = asyncio.Semaphore(_AT_ONCE)
        asked = cluster.brokers.keys() if brokers is None else brokers & cluster.brokers.keys()
        return await asyncio.gather(
            *(self._of_broker(id_, cluster, reached, turns) for id_ in sorted(asked))
        )

    async def _leads_groups(
        self, controller_id: int, cluster: Cluster, reached: Mapping[int, Endpoint]
    ) -> bool:
        """Return whether the controller leads the topic of groups, which ZooKeeper does not say: by
        what it says itself, or the first broker that answers.
        """
        if controller_id not in reached or GROUP_TOPIC not in cluster.topics:
            return False
        for id_ in sorted(reached, key=lambda id_: (id_ != controller_id, id_)):
            try:
                async with self._connected(reached[id_]) as broker:
                    told, _ = await broker.named([GROUP_TOPIC])
            except (OSError, WireError):  # TimeoutError is one; it is told when all are asked
                continue
            return _led_beside_replicas(told.get(GROUP_TOPIC), controller_id)
        return False

    async def _of_broker(
        self,
        id_: int,
        cluster: Cluster,
        reached: Mapping[int, Endpoint],
        turns: asyncio.Semaphore,
    ) -> Asked:
        end = reached.get(id_)
        if end is None:
            where = f"listener {self._listener!r}" if self._listener else "its only listener"
            return Asked(id_, gaps=[f"it has no address on {where} (inter.broker.listener.name)"])
        async with turns:
            try:
                async with self._connected(end) as broker:
                    return await _compared(broker, id_, cluster, frozenset(reached))
            except (OSError, WireError) as error:  # TimeoutError is one
                return Asked(id_, gaps=[f"at {end.host}:{end.port}: {error!r}"])

    def _connected(self, end: Endpoint) -> AbstractAsyncContextManager[Broker]:
        return connected(self._connector, end, self._timeout_s)


async def _compared(broker: Broker, id_: int, cluster: Cluster, reached: frozenset[int]) -> Asked:
    expected = [name for name, topic in cluster.topics.items() if any(topic.partitions.values())]
    told = await broker.metadata(expected)
    own = [one for one in cluster.replicas_of(id_) if one[1].leader in reached]
    said = await broker.replicas(own, id_)
    differences = [
        *metadata_differences(cluster, id_, reached, told),
        *replica_differences(cluster, id_, said),
    ]
    partitions = sum(len(topic.partitions) for topic in told.topics.values())
    return Asked(id_, len(told.topics), partitions, len(own), differences, broker.refused)


def _led_beside_replicas(topic: Topic | None, node_id: int) -> bool:
    """Return whether a node leads partitions of which it has no replica."""
    held = () if topic is None else topic.partitions.values()
    return any(one is not None and one.leader == node_id not in one.replicas for one in held)


def _take(found: Found, asked: Asked) -> None:
    """Take what a look at a broker found."""
    id_ = asked.broker
    before = found.asked[id_].differences if id_ in found.asked else ()
    values = {one.subject: one.zookeeper for one in before}
    found.confirmed[id_], found.moving[id_] = [], []
    for one in asked.differences:
        same = one.subject in values and values[one.subject] == one.zookeeper
        (found.confirmed if same else found.moving)[id_].append(one)
    found.asked[id_] = asked
