"""The one table of what the gateway serves: API key -> handler."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass

from streaming.gateway import not_leader
from streaming.gateway.admin import AdminRequests
from streaming.gateway.alter_partition import AlterPartition
from streaming.gateway.broker_requests import AllocateProducerIds, ControlledShutdown, Deciding
from streaming.gateway.calls import Handler
from streaming.gateway.coordinators import FindCoordinator
from streaming.gateway.create_partitions import CreatePartitions
from streaming.gateway.create_topics import CreateTopics, TopicDefaults
from streaming.gateway.delete_topics import DeleteTopics
from streaming.gateway.describe_cluster import DescribeCluster
from streaming.gateway.elect_leaders import ElectLeaders
from streaming.gateway.metadata import Metadata
from streaming.gateway.nodes import Nodes
from streaming.gateway.ports import ClusterView, Decider
from streaming.gateway.producer_ids import InitProducerId, ProducerIds
from streaming.gateway.reassignments import (
    AlterPartitionReassignments,
    ListPartitionReassignments,
)
from streaming.gateway.versions import Versions
from streaming.wire.messages import ApiKey


@dataclass(frozen=True, slots=True)
class Apis:
    """Handlers by API key, which are advertised and nothing else, and what to await at the end."""

    handlers: Mapping[int, Handler]
    close: Callable[[], Awaitable[None]]


def build_apis(
    view: ClusterView,
    decider: Decider,
    *,
    node_id: int,
    defaults: TopicDefaults,
    request_timeout_s: float,
    chance: random.Random | None = None,
) -> Apis:
    """Return all APIs of the controller node; call on the gateway's event loop.

    node_id is controller.id, request_timeout_s the longest wait for a decision, chance where
    placement takes its random numbers from (the system's, unless given).
    """
    nodes = Nodes(view, node_id)
    deciding = Deciding(decider, request_timeout_s)
    producer_ids = ProducerIds(decider, node_id, request_timeout_s)
    create_topics = CreateTopics(
        view, decider, defaults, request_timeout_s, chance or random.SystemRandom()
    )
    admin = AdminRequests(view, decider, request_timeout_s)
    handlers: dict[int, Handler] = {
        ApiKey.PRODUCE: not_leader.produce,
        ApiKey.FETCH: not_leader.fetch,
        ApiKey.LIST_OFFSETS: not_leader.list_offsets,
        ApiKey.METADATA: Metadata(view, nodes).handle,
        ApiKey.CONTROLLED_SHUTDOWN: ControlledShutdown(deciding).handle,
        ApiKey.FIND_COORDINATOR: FindCoordinator(view, nodes).handle,
        ApiKey.CREATE_TOPICS: create_topics.handle,
        ApiKey.DELETE_TOPICS: DeleteTopics(admin).handle,
        ApiKey.INIT_PRODUCER_ID: InitProducerId(producer_ids).handle,
        ApiKey.CREATE_PARTITIONS: CreatePartitions(admin).handle,
        ApiKey.ELECT_LEADERS: ElectLeaders(admin).handle,
        ApiKey.ALTER_PARTITION_REASSIGNMENTS: AlterPartitionReassignments(admin).handle,
        ApiKey.LIST_PARTITION_REASSIGNMENTS: ListPartitionReassignments(admin).handle,
        ApiKey.ALTER_PARTITION: AlterPartition(view, deciding).handle,
        ApiKey.DESCRIBE_CLUSTER: DescribeCluster(view, nodes).handle,
        ApiKey.ALLOCATE_PRODUCER_IDS: AllocateProducerIds(deciding).handle,
    }
    handlers[ApiKey.API_VERSIONS] = Versions([*handlers, ApiKey.API_VERSIONS]).handle
    return Apis(handlers, producer_ids.close)
