"""Which APIs exist, in which versions, by which schemas, and who asks them of whom.

Versions end where Kafka 3.9 ends, the last release with ZooKeeper mode.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from enum import IntEnum

from streaming.wire.errors import UnsupportedApi, UnsupportedVersion
from streaming.wire.reading import ROWS_MAX
from streaming.wire.schema_codec import MessageSchema

KAFKA_PYTHON = "kafka.protocol.schemas.resources"
"""Where kafka-python keeps the schemas it has."""

_OURS = "streaming.wire.schemas"


class ApiKey(IntEnum):
    """The API keys this package can read and write."""

    PRODUCE = 0
    FETCH = 1
    LIST_OFFSETS = 2
    METADATA = 3
    LEADER_AND_ISR = 4
    STOP_REPLICA = 5
    UPDATE_METADATA = 6
    CONTROLLED_SHUTDOWN = 7
    OFFSET_COMMIT = 8
    OFFSET_FETCH = 9
    FIND_COORDINATOR = 10
    JOIN_GROUP = 11
    HEARTBEAT = 12
    LEAVE_GROUP = 13
    SYNC_GROUP = 14
    DESCRIBE_GROUPS = 15
    LIST_GROUPS = 16
    SASL_HANDSHAKE = 17
    API_VERSIONS = 18
    CREATE_TOPICS = 19
    DELETE_TOPICS = 20
    INIT_PRODUCER_ID = 22
    OFFSET_FOR_LEADER_EPOCH = 23
    ADD_PARTITIONS_TO_TXN = 24
    WRITE_TXN_MARKERS = 27
    TXN_OFFSET_COMMIT = 28
    DESCRIBE_ACLS = 29
    CREATE_ACLS = 30
    DELETE_ACLS = 31
    DESCRIBE_CONFIGS = 32
    ALTER_CONFIGS = 33
    DESCRIBE_LOG_DIRS = 35
    SASL_AUTHENTICATE = 36
    CREATE_PARTITIONS = 37
    CREATE_DELEGATION_TOKEN = 38
    RENEW_DELEGATION_TOKEN = 39
    EXPIRE_DELEGATION_TOKEN = 40
    DESCRIBE_DELEGATION_TOKEN = 41
    DELETE_GROUPS = 42
    ELECT_LEADERS = 43
    INCREMENTAL_ALTER_CONFIGS = 44
    ALTER_PARTITION_REASSIGNMENTS = 45
    LIST_PARTITION_REASSIGNMENTS = 46
    OFFSET_DELETE = 47
    DESCRIBE_CLIENT_QUOTAS = 48
    ALTER_CLIENT_QUOTAS = 49
    DESCRIBE_USER_SCRAM_CREDENTIALS = 50
    ALTER_USER_SCRAM_CREDENTIALS = 51
    ALTER_PARTITION = 56
    UPDATE_FEATURES = 57
    DESCRIBE_CLUSTER = 60
    LIST_TRANSACTIONS = 66
    ALLOCATE_PRODUCER_IDS = 67


@dataclass(frozen=True, slots=True)
class Api:
    """One request and response pair and the versions we read and write, both ends included."""

    key: ApiKey
    name: str
    min_version: int
    max_version: int
    package: str

    @property
    def request(self) -> MessageSchema:
        """The request's schema, loaded on first use; those that others send are bounded."""
        most = None if self.key in BROKER_APIS else ROWS_MAX
        return _schema(f"{self.name}Request", self.package, structs_max=most)

    @property
    def response(self) -> MessageSchema:
        """The response's schema, loaded on first use."""
        return _schema(f"{self.name}Response", self.package)


_schema = functools.cache(MessageSchema)

APIS: dict[int, Api] = {
    api.key: api
    for api in (
        Api(ApiKey.PRODUCE, "Produce", 3, 9, KAFKA_PYTHON),
        Api(ApiKey.FETCH, "Fetch", 4, 17, KAFKA_PYTHON),
        Api(ApiKey.LIST_OFFSETS, "ListOffsets", 1, 9, KAFKA_PYTHON),
        Api(ApiKey.METADATA, "Metadata", 0, 12, KAFKA_PYTHON),
        Api(ApiKey.LEADER_AND_ISR, "LeaderAndIsr", 0, 7, _OURS),
        Api(ApiKey.STOP_REPLICA, "StopReplica", 0, 4, _OURS),
        Api(ApiKey.UPDATE_METADATA, "UpdateMetadata", 0, 8, _OURS),
        Api(ApiKey.CONTROLLED_SHUTDOWN, "ControlledShutdown", 0, 3, _OURS),
        Api(ApiKey.OFFSET_COMMIT, "OffsetCommit", 1, 9, _OURS),
        Api(ApiKey.OFFSET_FETCH, "OffsetFetch", 1, 9, KAFKA_PYTHON),
        Api(ApiKey.FIND_COORDINATOR, "FindCoordinator", 0, 6, KAFKA_PYTHON),
        Api(ApiKey.JOIN_GROUP, "JoinGroup", 0, 9, KAFKA_PYTHON),
        Api(ApiKey.HEARTBEAT, "Heartbeat", 0, 4, KAFKA_PYTHON),
        Api(ApiKey.LEAVE_GROUP, "LeaveGroup", 0, 5, KAFKA_PYTHON),
        Api(ApiKey.SYNC_GROUP, "SyncGroup", 0, 5, KAFKA_PYTHON),
        Api(ApiKey.DESCRIBE_GROUPS, "DescribeGroups", 0, 5, KAFKA_PYTHON),
        Api(ApiKey.LIST_GROUPS, "ListGroups", 0, 5, KAFKA_PYTHON),
        Api(ApiKey.SASL_HANDSHAKE, "SaslHandshake", 0, 1, KAFKA_PYTHON),
        Api(ApiKey.API_VERSIONS, "ApiVersions", 0, 4, KAFKA_PYTHON),
        Api(ApiKey.CREATE_TOPICS, "CreateTopics", 0, 7, KAFKA_PYTHON),
        Api(ApiKey.DELETE_TOPICS, "DeleteTopics", 0, 6, KAFKA_PYTHON),
        Api(ApiKey.INIT_PRODUCER_ID, "InitProducerId", 0, 5, KAFKA_PYTHON),
        Api(ApiKey.OFFSET_FOR_LEADER_EPOCH, "OffsetForLeaderEpoch", 2, 4, KAFKA_PYTHON),
        Api(ApiKey.ADD_PARTITIONS_TO_TXN, "AddPartitionsToTxn", 4, 5, KAFKA_PYTHON),
        Api(ApiKey.WRITE_TXN_MARKERS, "WriteTxnMarkers", 0, 1, KAFKA_PYTHON),
        Api(ApiKey.TXN_OFFSET_COMMIT, "TxnOffsetCommit", 0, 4, KAFKA_PYTHON),
        Api(ApiKey.DESCRIBE_ACLS, "DescribeAcls", 1, 3, KAFKA_PYTHON),
        Api(ApiKey.CREATE_ACLS, "CreateAcls", 1, 3, KAFKA_PYTHON),
        Api(ApiKey.DELETE_ACLS, "DeleteAcls", 1, 3, KAFKA_PYTHON),
        Api(ApiKey.DESCRIBE_CONFIGS, "DescribeConfigs", 0, 4, KAFKA_PYTHON),
        Api(ApiKey.ALTER_CONFIGS, "AlterConfigs", 0, 2, KAFKA_PYTHON),
        Api(ApiKey.DESCRIBE_LOG_DIRS, "DescribeLogDirs", 0, 4, KAFKA_PYTHON),
        Api(ApiKey.SASL_AUTHENTICATE, "SaslAuthenticate", 0, 2, KAFKA_PYTHON),
        Api(ApiKey.CREATE_PARTITIONS, "CreatePartitions", 0, 3, KAFKA_PYTHON),
        Api(ApiKey.CREATE_DELEGATION_TOKEN, "CreateDelegationToken", 0, 3, _OURS),
        Api(ApiKey.RENEW_DELEGATION_TOKEN, "RenewDelegationToken", 0, 2, _OURS),
        Api(ApiKey.EXPIRE_DELEGATION_TOKEN, "ExpireDelegationToken", 0, 2, _OURS),
        Api(ApiKey.DESCRIBE_DELEGATION_TOKEN, "DescribeDelegationToken", 0, 3, _OURS),
        Api(ApiKey.DELETE_GROUPS, "DeleteGroups", 0, 2, KAFKA_PYTHON),
        Api(ApiKey.ELECT_LEADERS, "ElectLeaders", 0, 2, KAFKA_PYTHON),
        Api(
            ApiKey.INCREMENTAL_ALTER_CONFIGS,
            "IncrementalAlterConfigs",
            0,
            1,
            KAFKA_PYTHON,
        ),
        Api(
            ApiKey.ALTER_PARTITION_REASSIGNMENTS,
            "AlterPartitionReassignments",
            0,
            0,
            KAFKA_PYTHON,
        ),
        Api(ApiKey.LIST_PARTITION_REASSIGNMENTS, "ListPartitionReassignments", 0, 0, KAFKA_PYTHON),
        Api(ApiKey.OFFSET_DELETE, "OffsetDelete", 0, 0, KAFKA_PYTHON),
        Api(ApiKey.DESCRIBE_CLIENT_QUOTAS, "DescribeClientQuotas", 0, 1, KAFKA_PYTHON),
        Api(ApiKey.ALTER_CLIENT_QUOTAS, "AlterClientQuotas", 0, 1, KAFKA_PYTHON),
        Api(
            ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS,
            "DescribeUserScramCredentials",
            0,
            0,
            KAFKA_PYTHON,
        ),
        Api(ApiKey.ALTER_USER_SCRAM_CREDENTIALS, "AlterUserScramCredentials", 0, 0, KAFKA_PYTHON),
        Api(ApiKey.ALTER_PARTITION, "AlterPartition", 0, 3, _OURS),
        Api(ApiKey.UPDATE_FEATURES, "UpdateFeatures", 0, 1, KAFKA_PYTHON),
        Api(ApiKey.DESCRIBE_CLUSTER, "DescribeCluster", 0, 1, KAFKA_PYTHON),
        Api(ApiKey.LIST_TRANSACTIONS, "ListTransactions", 0, 1, KAFKA_PYTHON),
        Api(ApiKey.ALLOCATE_PRODUCER_IDS, "AllocateProducerIds", 0, 0, _OURS),
    )
}

BROKER_APIS = frozenset(
    {
        ApiKey.LEADER_AND_ISR,
        ApiKey.STOP_REPLICA,
        ApiKey.UPDATE_METADATA,
        ApiKey.ADD_PARTITIONS_TO_TXN,
    }
)
"""What a controller, or a coordinator of groups, asks of brokers."""

GROUP_APIS = frozenset(
    {
        ApiKey.OFFSET_COMMIT,
        ApiKey.OFFSET_FETCH,
        ApiKey.JOIN_GROUP,
        ApiKey.HEARTBEAT,
        ApiKey.LEAVE_GROUP,
        ApiKey.SYNC_GROUP,
        ApiKey.DESCRIBE_GROUPS,
        ApiKey.WRITE_TXN_MARKERS,
        ApiKey.TXN_OFFSET_COMMIT,
        ApiKey.DELETE_GROUPS,
        ApiKey.OFFSET_DELETE,
    }
)
"""What the gateway answers beside that while it coordinates groups."""

PASSED_APIS = frozenset(
    {
        ApiKey.DESCRIBE_ACLS,
        ApiKey.CREATE_ACLS,
        ApiKey.DELETE_ACLS,
        ApiKey.DESCRIBE_CLIENT_QUOTAS,
        ApiKey.ALTER_CLIENT_QUOTAS,
        ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS,
    }
)
"""What any broker answers, whoever the controller is."""

GATEWAY_APIS = frozenset(ApiKey(key) for key in APIS) - BROKER_APIS - GROUP_APIS - PASSED_APIS
"""What the gateway always answers itself."""


def api_in_version(api_key: int, version: int, correlation_id: int) -> Api:
    """Return an API that is known in this version.

    Raises UnsupportedApi and UnsupportedVersion, which name the request they are about.
    """
    api = APIS.get(api_key)
    if api is None:
        raise UnsupportedApi(api_key, version, correlation_id)
    if not api.min_version <= version <= api.max_version:
        raise UnsupportedVersion(api_key, version, api.min_version, api.max_version, correlation_id)
    return api
