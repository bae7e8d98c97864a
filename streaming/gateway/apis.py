"""What the gateway serves, by API key: the handlers of the controller's APIs, put together with the
other three tables.

Those are of APIs about groups (`groups/apis.py`), with Fetch, ListOffsets,
OffsetForLeaderEpoch and WriteTxnMarkers of `__consumer_offsets` beside them
(streaming.front.groups.assembly), and of APIs that brokers answer (`passing/apis.py`).
"""

from __future__ import annotations

import random
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from state.protocol_errors import ProtocolError
from streaming.gateway import not_leader
from streaming.gateway.admin import AdminRequests
from streaming.gateway.alter_partition import AlterPartition
from streaming.gateway.broker_requests import AllocateProducerIds, ControlledShutdown
from streaming.gateway.calls import Apis, AtOnce, Handler, WithoutTask
from streaming.gateway.cluster_requests import ClusterRequests
from streaming.gateway.configs import ConfigRequests
from streaming.gateway.coordinators import FindCoordinator
from streaming.gateway.create_partitions import CreatePartitions
from streaming.gateway.create_topics import CreateTopics, TopicDefaults
from streaming.gateway.delegation_tokens import DelegationTokens, TokenTerms
from streaming.gateway.delete_topics import DeleteTopics
from streaming.gateway.describe_cluster import DescribeCluster
from streaming.gateway.elect_leaders import ElectLeaders
from streaming.gateway.empty_answers import DescribeLogDirs, list_groups, list_transactions
from streaming.gateway.features import UpdateFeatures
from streaming.gateway.login import late_authenticate, late_handshake
from streaming.gateway.metadata import Metadata
from streaming.gateway.mutation_quotas import MutationQuotas, MutationRates
from streaming.gateway.nodes import Nodes
from streaming.gateway.passing.apis import OFFSETS_IN_ZOOKEEPER, PASSED_VERSIONS, Passing
from streaming.gateway.passing.brokers import Brokers
from streaming.gateway.passing.creation import AutoCreation
from streaming.gateway.passing.log_ends import LogEnds
from streaming.gateway.passing.pool import PassingLimits
from streaming.gateway.passing.versions import our_range
from streaming.gateway.passing.without_role import WithoutRole
from streaming.gateway.ports import ClusterView, DecisionClient, StoredTokens, UserConfigs
from streaming.gateway.producer_ids import InitProducerId, ProducerIds
from streaming.gateway.reassignments import (
    AlterPartitionReassignments,
    ListPartitionReassignments,
)
from streaming.gateway.scram import AlterUserScramCredentials
from streaming.gateway.topic_policy import TopicPolicy
from streaming.gateway.versions import Versions
from streaming.process.wall_clock import wall_clock_ms
from streaming.security.connector import Connector
from streaming.wire.apis import PASSED_APIS, ApiKey

_PASSED_WITHOUT_ROLE = (ApiKey.METADATA, ApiKey.DESCRIBE_CLUSTER, ApiKey.FIND_COORDINATOR)


@dataclass(frozen=True, slots=True)
class NodeConfig:
    """What the answers of the controller node depend on.

    request_timeout_s is the longest wait for a decision, configs are what tools may read of it by
    name, secret_configs the names of those whose values nobody may read, users where their
    configurations are kept, token_terms and tokens what delegation tokens are granted and where
    they are kept, mutation_rates and quota_burst_s how many partitions who may create and delete
    (`MutationQuotas`), connector what connects to brokers, log_ends who asks them where logs end
    before an unclean election (None: nobody), topic_policy what says which topics may not be
    created, chance where placement takes its random numbers from.
    """

    node_id: int
    defaults: TopicDefaults
    request_timeout_s: float
    configs: Mapping[str, str]
    users: UserConfigs
    token_terms: TokenTerms
    tokens: StoredTokens
    mutation_rates: MutationRates
    quota_burst_s: float
    secret_configs: Collection[str] = ()
    announced_topic: str | None = None
    passing: PassingLimits = field(default_factory=PassingLimits)
    connector: Connector = field(default_factory=Connector)
    log_ends: LogEnds | None = None
    topic_policy: TopicPolicy | None = None
    chance: random.Random = field(default_factory=random.SystemRandom)


def build_apis(
    view: ClusterView,
    decision_client: DecisionClient,
    node: NodeConfig,
    groups: Mapping[int, Handler | AtOnce | WithoutTask] = MappingProxyType({}),
) -> Apis:
    """Return all APIs of the controller node, those of `groups` in place of others or beside them;
    call on the gateway's event loop.
    """
    brokers = Brokers(view, node.node_id, node.passing, node.connector)
    producer_ids = ProducerIds(decision_client, node.node_id, node.request_timeout_s)

    async def close() -> None:
        await producer_ids.close()
        await brokers.close()

    own: dict[str, str | None] = {**dict.fromkeys(node.secret_configs), **node.configs}
    configs = ConfigRequests(brokers, node.node_id, own)
    shared: dict[int, Handler] = {
        ApiKey.DESCRIBE_CONFIGS: configs.describe,
        ApiKey.ALTER_CONFIGS: configs.alter,
        ApiKey.INCREMENTAL_ALTER_CONFIGS: configs.alter,
    }
    creation = AutoCreation(brokers)
    served = _served_here(view, decision_client, node, producer_ids, creation)
    served |= _waited_for(groups)
    without_role = WithoutRole(view, brokers)
    for key in (ApiKey.METADATA, ApiKey.DESCRIBE_CLUSTER):
        served[key] = without_role.around(served[key])
    served[ApiKey.FIND_COORDINATOR] = without_role.around_coordinators(
        served[ApiKey.FIND_COORDINATOR], node.announced_topic
    )
    with_brokers = dict(PASSED_VERSIONS)
    with_brokers |= {key: our_range(key) for key in (*shared, *_PASSED_WITHOUT_ROLE)}
    passed_versions = {key: one for key, one in OFFSETS_IN_ZOOKEEPER.items() if key in groups}
    here = _ranges((*served, *groups, ApiKey.API_VERSIONS), passed_versions)
    versions = Versions(here, with_brokers, brokers)
    return Apis(
        handlers=served | shared | {ApiKey.API_VERSIONS: versions.handle},
        passed=PASSED_APIS,
        pass_on=Passing(brokers).handle,
        close=close,
        at_once={key: one.answer for key, one in groups.items() if isinstance(one, AtOnce)},
        without_task={
            key: one.try_answer for key, one in groups.items() if isinstance(one, WithoutTask)
        },
        passed_versions=passed_versions,
    )


def _waited_for(groups: Mapping[int, Handler | AtOnce | WithoutTask]) -> dict[int, Handler]:
    """Return the handlers of APIs about groups that answer in a task, always or at times."""
    found: dict[int, Handler] = {}
    for key, one in groups.items():
        handler = one.otherwise if isinstance(one, WithoutTask) else one
        if handler is not None and not isinstance(handler, AtOnce):
            found[key] = handler
    return found


def _ranges(here: Iterable[int], passed: Mapping[int, int]) -> dict[int, tuple[int, int]]:
    """Return the served versions by key; passed: the one below ours that brokers answer."""
    ranges = {key: our_range(key) for key in here}
    return ranges | {key: (first, ranges[key][1]) for key, first in passed.items()}


def _served_here(
    view: ClusterView,
    decision_client: DecisionClient,
    node: NodeConfig,
    producer_ids: ProducerIds,
    creation: AutoCreation,
) -> dict[int, Handler]:
    nodes = Nodes(view, node.node_id)
    requests = ClusterRequests(decision_client, node.request_timeout_s)
    refused_in_a_pause = ProtocolError.POLICY_VIOLATION
    admin = AdminRequests(
        view, ClusterRequests(decision_client, node.request_timeout_s, refused_in_a_pause)
    )
    quotas = MutationQuotas(node.mutation_rates, node.quota_burst_s)
    tokens = DelegationTokens(node.token_terms, node.tokens, wall_clock_ms)
    return {
        ApiKey.PRODUCE: not_leader.produce,
        ApiKey.FETCH: not_leader.fetch,
        ApiKey.LIST_OFFSETS: not_leader.list_offsets,
        ApiKey.OFFSET_FOR_LEADER_EPOCH: not_leader.offsets_for_leader_epoch,
        ApiKey.METADATA: Metadata(view, nodes, creation, node.announced_topic).handle,
        ApiKey.CONTROLLED_SHUTDOWN: ControlledShutdown(requests).handle,
        ApiKey.SASL_HANDSHAKE: late_handshake,
        ApiKey.SASL_AUTHENTICATE: late_authenticate,
        ApiKey.FIND_COORDINATOR: FindCoordinator(
            view, nodes, creation, node.announced_topic
        ).handle,
        ApiKey.LIST_GROUPS: list_groups,
        ApiKey.CREATE_TOPICS: CreateTopics(
            admin, node.defaults, node.chance, quotas, node.topic_policy
        ).handle,
        ApiKey.DELETE_TOPICS: DeleteTopics(admin, quotas).handle,
        ApiKey.INIT_PRODUCER_ID: InitProducerId(producer_ids).handle,
        ApiKey.DESCRIBE_LOG_DIRS: DescribeLogDirs(node.configs["data.dir"]).handle,
        ApiKey.CREATE_PARTITIONS: CreatePartitions(admin, quotas).handle,
        ApiKey.CREATE_DELEGATION_TOKEN: tokens.create,
        ApiKey.RENEW_DELEGATION_TOKEN: tokens.renew,
        ApiKey.EXPIRE_DELEGATION_TOKEN: tokens.expire,
        ApiKey.DESCRIBE_DELEGATION_TOKEN: tokens.describe,
        ApiKey.ELECT_LEADERS: ElectLeaders(admin, node.log_ends).handle,
        ApiKey.ALTER_PARTITION_REASSIGNMENTS: AlterPartitionReassignments(admin).handle,
        ApiKey.LIST_PARTITION_REASSIGNMENTS: ListPartitionReassignments(admin).handle,
        ApiKey.ALTER_USER_SCRAM_CREDENTIALS: AlterUserScramCredentials(admin, node.users).handle,
        ApiKey.ALTER_PARTITION: AlterPartition(view, requests).handle,
        ApiKey.UPDATE_FEATURES: UpdateFeatures(admin).handle,
        ApiKey.DESCRIBE_CLUSTER: DescribeCluster(view, nodes).handle,
        ApiKey.LIST_TRANSACTIONS: list_transactions,
        ApiKey.ALLOCATE_PRODUCER_IDS: AllocateProducerIds(requests).handle,
    }
