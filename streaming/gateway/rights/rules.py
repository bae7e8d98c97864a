"""Which rule each API has: the table of who may ask what."""

from __future__ import annotations

from collections.abc import Mapping

from streaming.gateway.rights import cluster, groups, metadata, tokens, topics
from streaming.gateway.rights.asked import Rule
from streaming.security.acls import Operation
from streaming.wire.apis import ApiKey

RULES: Mapping[int, Rule] = {
    ApiKey.FETCH: topics.fetch,
    ApiKey.LIST_OFFSETS: topics.list_offsets,
    ApiKey.METADATA: metadata.metadata,
    ApiKey.CONTROLLED_SHUTDOWN: cluster.needs(
        Operation.CLUSTER_ACTION, cluster.refused_at_once(remaining_partitions=[])
    ),
    ApiKey.OFFSET_COMMIT: groups.offset_commit,
    ApiKey.OFFSET_FETCH: groups.offset_fetch,
    ApiKey.FIND_COORDINATOR: groups.find_coordinator,
    ApiKey.JOIN_GROUP: groups.join,
    ApiKey.HEARTBEAT: groups.member(),
    ApiKey.LEAVE_GROUP: groups.member(members=[]),
    ApiKey.SYNC_GROUP: groups.member(protocol_type=None, protocol_name=None, assignment=b""),
    ApiKey.DESCRIBE_GROUPS: groups.describe_groups,
    ApiKey.LIST_GROUPS: groups.list_groups,
    ApiKey.CREATE_TOPICS: topics.create_topics,
    ApiKey.DELETE_TOPICS: topics.delete_topics,
    ApiKey.INIT_PRODUCER_ID: cluster.init_producer_id,
    ApiKey.OFFSET_FOR_LEADER_EPOCH: topics.offsets_for_leader_epoch,
    ApiKey.WRITE_TXN_MARKERS: cluster.needs(
        Operation.CLUSTER_ACTION, cluster.each_marker, or_else=Operation.ALTER
    ),
    ApiKey.TXN_OFFSET_COMMIT: groups.txn_offset_commit,
    ApiKey.DESCRIBE_ACLS: cluster.needs(Operation.DESCRIBE, cluster.refused_in_words(resources=[])),
    ApiKey.CREATE_ACLS: cluster.needs(Operation.ALTER, cluster.each_creation),
    ApiKey.DELETE_ACLS: cluster.needs(Operation.ALTER, cluster.each_filter),
    ApiKey.DESCRIBE_CONFIGS: topics.configs(Operation.DESCRIBE_CONFIGS, "results"),
    ApiKey.ALTER_CONFIGS: topics.configs(Operation.ALTER_CONFIGS, "responses"),
    ApiKey.DESCRIBE_LOG_DIRS: cluster.needs(
        Operation.DESCRIBE, cluster.refused_at_once(results=[])
    ),
    ApiKey.CREATE_PARTITIONS: topics.create_partitions,
    ApiKey.CREATE_DELEGATION_TOKEN: tokens.create,
    ApiKey.DESCRIBE_DELEGATION_TOKEN: tokens.describe,
    ApiKey.DELETE_GROUPS: groups.delete_groups,
    ApiKey.ELECT_LEADERS: cluster.needs(Operation.ALTER, cluster.each_election),
    ApiKey.INCREMENTAL_ALTER_CONFIGS: topics.configs(Operation.ALTER_CONFIGS, "responses"),
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: cluster.needs(Operation.ALTER, cluster.each_reassignment),
    ApiKey.LIST_PARTITION_REASSIGNMENTS: cluster.needs(
        Operation.DESCRIBE, cluster.refused_in_words(topics=[])
    ),
    ApiKey.OFFSET_DELETE: groups.offset_delete,
    ApiKey.DESCRIBE_CLIENT_QUOTAS: cluster.needs(
        Operation.DESCRIBE_CONFIGS, cluster.refused_in_words(entries=None)
    ),
    ApiKey.ALTER_CLIENT_QUOTAS: cluster.needs(Operation.ALTER_CONFIGS, cluster.each_entry),
    ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS: cluster.needs(
        Operation.DESCRIBE, cluster.refused_in_words(results=[])
    ),
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS: cluster.needs(Operation.ALTER, cluster.each_user),
    ApiKey.ALTER_PARTITION: cluster.needs(
        Operation.CLUSTER_ACTION, cluster.refused_at_once(topics=[])
    ),
    ApiKey.UPDATE_FEATURES: cluster.needs(Operation.ALTER, cluster.refused_in_words(results=[])),
    ApiKey.DESCRIBE_CLUSTER: cluster.describe_cluster,
    ApiKey.ALLOCATE_PRODUCER_IDS: cluster.needs(
        Operation.CLUSTER_ACTION, cluster.refused_at_once()
    ),
}

FREE = frozenset(
    {
        ApiKey.PRODUCE,
        ApiKey.SASL_HANDSHAKE,
        ApiKey.API_VERSIONS,
        ApiKey.SASL_AUTHENTICATE,
        ApiKey.LIST_TRANSACTIONS,
        ApiKey.RENEW_DELEGATION_TOKEN,
        ApiKey.EXPIRE_DELEGATION_TOKEN,
    }
)
"""What all may ask: nothing is done or told, but who else to ask, or to who has a token's proof."""
