"""A request of each API that the gateway serves."""

from __future__ import annotations

import uuid
from typing import Any

from streaming.wire.apis import ApiKey

TOPIC_ID = uuid.UUID(bytes=b"t" * 16)
BODIES: dict[ApiKey, dict[str, Any]] = {
    ApiKey.PRODUCE: {
        "acks": -1,
        "topic_data": [{"name": "t", "partition_data": [{"index": 0, "records": b"x"}]}],
    },
    ApiKey.FETCH: {"topics": [{"topic": "t", "partitions": [{"partition": 0}]}]},
    ApiKey.LIST_OFFSETS: {
        "topics": [{"name": "t", "partitions": [{"partition_index": 0, "timestamp": -1}]}]
    },
    ApiKey.OFFSET_FOR_LEADER_EPOCH: {
        "topics": [{"topic": "t", "partitions": [{"partition": 0, "leader_epoch": 1}]}]
    },
    ApiKey.METADATA: {"topics": [{"name": "t", "topic_id": None}]},
    ApiKey.CONTROLLED_SHUTDOWN: {"broker_id": 1, "broker_epoch": 101},
    ApiKey.FIND_COORDINATOR: {"key": "a", "key_type": 0, "coordinator_keys": ["a"]},
    ApiKey.SASL_HANDSHAKE: {"mechanism": "PLAIN"},
    ApiKey.SASL_AUTHENTICATE: {"auth_bytes": b"\0a\0b"},
    ApiKey.API_VERSIONS: {"client_software_name": "a", "client_software_version": "1"},
    ApiKey.CREATE_TOPICS: {
        "topics": [
            {
                "name": "new",
                "num_partitions": -1,
                "replication_factor": -1,
                "assignments": [{"partition_index": 0, "broker_ids": [1, 2]}],
                "configs": [{"name": "retention.ms", "value": "1"}],
            }
        ],
        "timeout_ms": 1000,
    },
    ApiKey.DELETE_TOPICS: {
        "topics": [{"name": "t", "topic_id": None}],
        "topic_names": ["t"],
        "timeout_ms": 1000,
    },
    ApiKey.CREATE_PARTITIONS: {
        "topics": [{"name": "t", "count": 3, "assignments": [{"broker_ids": [1, 2]}]}],
        "timeout_ms": 1000,
        "validate_only": False,
    },
    ApiKey.CREATE_DELEGATION_TOKEN: {
        "owner_principal_type": "User",
        "owner_principal_name": "bob",
        "renewers": [{"principal_type": "User", "principal_name": "carol"}],
        "max_lifetime_ms": -1,
    },
    ApiKey.RENEW_DELEGATION_TOKEN: {"hmac": b"proof", "renew_period_ms": -1},
    ApiKey.EXPIRE_DELEGATION_TOKEN: {"hmac": b"proof", "expiry_time_period_ms": -1},
    ApiKey.DESCRIBE_DELEGATION_TOKEN: {
        "owners": [{"principal_type": "User", "principal_name": "bob"}]
    },
    ApiKey.ELECT_LEADERS: {
        "election_type": 0,
        "topic_partitions": [{"topic": "t", "partitions": [0, 1]}],
        "timeout_ms": 1000,
    },
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: {
        "timeout_ms": 1000,
        "topics": [{"name": "t", "partitions": [{"partition_index": 0, "replicas": [2, 1]}]}],
    },
    ApiKey.LIST_PARTITION_REASSIGNMENTS: {
        "timeout_ms": 1000,
        "topics": [{"name": "t", "partition_indexes": [0]}],
    },
    ApiKey.INIT_PRODUCER_ID: {"transactional_id": None, "transaction_timeout_ms": 1},
    ApiKey.ALTER_PARTITION: {
        "broker_id": 1,
        "broker_epoch": 101,
        "topics": [
            {
                "topic_name": "t",
                "topic_id": TOPIC_ID,
                "partitions": [
                    {
                        "partition_index": 0,
                        "leader_epoch": 0,
                        "partition_epoch": 0,
                        "new_isr": [1, 2],
                        "new_isr_with_epochs": [{"broker_id": 1, "broker_epoch": 101}],
                    }
                ],
            }
        ],
    },
    ApiKey.LIST_GROUPS: {"states_filter": ["Stable"], "types_filter": ["classic"]},
    ApiKey.DESCRIBE_CONFIGS: {
        "resources": [
            {"resource_type": 4, "resource_name": "1000", "configuration_keys": ["a"]},
            {"resource_type": 4, "resource_name": "7", "configuration_keys": None},
        ]
    },
    ApiKey.ALTER_CONFIGS: {
        "resources": [
            {
                "resource_type": 4,
                "resource_name": "1000",
                "configs": [{"name": "a", "value": "b"}],
            }
        ]
    },
    ApiKey.INCREMENTAL_ALTER_CONFIGS: {
        "resources": [
            {
                "resource_type": 4,
                "resource_name": "1000",
                "configs": [{"name": "a", "config_operation": 1, "value": None}],
            }
        ]
    },
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS: {
        "deletions": [{"name": "u", "mechanism": 1}],
        "upsertions": [
            {
                "name": "v",
                "mechanism": 2,
                "iterations": 4096,
                "salt": b"s",
                "salted_password": b"p",
            }
        ],
    },
    ApiKey.DESCRIBE_LOG_DIRS: {"topics": [{"topic": "t", "partitions": [0]}]},
    ApiKey.LIST_TRANSACTIONS: {"state_filters": ["Ongoing"], "producer_id_filters": [1]},
    ApiKey.UPDATE_FEATURES: {"feature_updates": [{"feature": "x", "max_version_level": 1}]},
    ApiKey.DESCRIBE_CLUSTER: {"include_cluster_authorized_operations": True},
    ApiKey.ALLOCATE_PRODUCER_IDS: {"broker_id": 1, "broker_epoch": 101},
    ApiKey.OFFSET_COMMIT: {
        "group_id": "g",
        "generation_id_or_member_epoch": 1,
        "member_id": "m",
        "topics": [
            {"name": "t", "partitions": [{"partition_index": 0, "committed_offset": 1}]},
        ],
    },
    ApiKey.OFFSET_FETCH: {
        "group_id": "g",
        "topics": [{"name": "t", "partition_indexes": [0]}],
        "groups": [{"group_id": "g", "topics": [{"name": "t", "partition_indexes": [0]}]}],
    },
    ApiKey.JOIN_GROUP: {
        "group_id": "g",
        "session_timeout_ms": 10_000,
        "rebalance_timeout_ms": 10_000,
        "member_id": "",
        "protocol_type": "consumer",
        "protocols": [{"name": "range", "metadata": b"m"}],
    },
    ApiKey.HEARTBEAT: {"group_id": "g", "generation_id": 1, "member_id": "m"},
    ApiKey.LEAVE_GROUP: {"group_id": "g", "member_id": "m", "members": [{"member_id": "m"}]},
    ApiKey.SYNC_GROUP: {
        "group_id": "g",
        "generation_id": 1,
        "member_id": "m",
        "protocol_type": "consumer",
        "protocol_name": "range",
        "assignments": [{"member_id": "m", "assignment": b"a"}],
    },
    ApiKey.DESCRIBE_GROUPS: {"groups": ["g"], "include_authorized_operations": True},
    ApiKey.DELETE_GROUPS: {"groups_names": ["g"]},
    ApiKey.WRITE_TXN_MARKERS: {
        "markers": [
            {
                "producer_id": 1,
                "producer_epoch": 0,
                "transaction_result": True,
                "topics": [{"name": "t", "partition_indexes": [0]}],
                "coordinator_epoch": 0,
            }
        ]
    },
    ApiKey.TXN_OFFSET_COMMIT: {
        "transactional_id": "x",
        "group_id": "g",
        "producer_id": 1,
        "producer_epoch": 0,
        "topics": [{"name": "t", "partitions": [{"partition_index": 0, "committed_offset": 1}]}],
    },
    ApiKey.OFFSET_DELETE: {
        "group_id": "g",
        "topics": [{"name": "t", "partitions": [{"partition_index": 0}]}],
    },
    ApiKey.DESCRIBE_ACLS: {
        "resource_type_filter": 1,
        "pattern_type_filter": 1,
        "operation": 1,
        "permission_type": 1,
    },
    ApiKey.CREATE_ACLS: {
        "creations": [
            {
                "resource_type": 2,
                "resource_name": "t",
                "resource_pattern_type": 3,
                "principal": "User:eve",
                "host": "*",
                "operation": 2,
                "permission_type": 3,
            }
        ]
    },
    ApiKey.DELETE_ACLS: {
        "filters": [
            {
                "resource_type_filter": 1,
                "pattern_type_filter": 1,
                "operation": 1,
                "permission_type": 1,
            }
        ]
    },
    ApiKey.DESCRIBE_CLIENT_QUOTAS: {"components": [], "strict": False},
    ApiKey.ALTER_CLIENT_QUOTAS: {
        "entries": [
            {
                "entity": [{"entity_type": "user", "entity_name": "eve"}],
                "ops": [{"key": "producer_byte_rate", "value": 1.0, "remove": False}],
            }
        ],
        "validate_only": False,
    },
    ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS: {"users": [{"name": "eve"}]},
}
