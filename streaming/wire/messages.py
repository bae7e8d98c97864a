"""Requests and responses as bytes: which APIs exist, in which versions, behind which header.

Versions end where Kafka 3.9 ends, the last release with ZooKeeper mode.
"""

from __future__ import annotations

import functools
import struct
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from enum import IntEnum

from state.protocol_errors import ProtocolError
from streaming.wire.errors import MalformedFrame, UnsupportedApi, UnsupportedVersion, WireError
from streaming.wire.joining import decode_join_group, decode_sync_group
from streaming.wire.offset_commits import decode_offset_commit
from streaming.wire.reading import ROWS_MAX
from streaming.wire.schema_codec import Body, MessageSchema

_KAFKA_PYTHON = "kafka.protocol.schemas.resources"
_OURS = "streaming.wire.schemas"
_REQUEST_PREFIX = struct.Struct(">hhi")
_CORRELATION_ID = struct.Struct(">i")
_NO_TAGS = b"\0"
_ERROR_CODE = struct.Struct(">h")


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
    API_VERSIONS = 18
    CREATE_TOPICS = 19
    DELETE_TOPICS = 20
    INIT_PRODUCER_ID = 22
    ADD_PARTITIONS_TO_TXN = 24
    WRITE_TXN_MARKERS = 27
    TXN_OFFSET_COMMIT = 28
    DESCRIBE_CONFIGS = 32
    ALTER_CONFIGS = 33
    DESCRIBE_LOG_DIRS = 35
    CREATE_PARTITIONS = 37
    DELETE_GROUPS = 42
    ELECT_LEADERS = 43
    INCREMENTAL_ALTER_CONFIGS = 44
    ALTER_PARTITION_REASSIGNMENTS = 45
    LIST_PARTITION_REASSIGNMENTS = 46
    OFFSET_DELETE = 47
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
_request_header = functools.cache(
    lambda: MessageSchema("RequestHeader", _KAFKA_PYTHON, compact_lengths=False)
)
_response_header = functools.cache(lambda: MessageSchema("ResponseHeader", _KAFKA_PYTHON))

APIS: dict[int, Api] = {
    api.key: api
    for api in (
        Api(ApiKey.PRODUCE, "Produce", 3, 9, _KAFKA_PYTHON),
        Api(ApiKey.FETCH, "Fetch", 4, 17, _KAFKA_PYTHON),
        Api(ApiKey.LIST_OFFSETS, "ListOffsets", 1, 9, _KAFKA_PYTHON),
        Api(ApiKey.METADATA, "Metadata", 0, 12, _KAFKA_PYTHON),
        Api(ApiKey.LEADER_AND_ISR, "LeaderAndIsr", 0, 7, _OURS),
        Api(ApiKey.STOP_REPLICA, "StopReplica", 0, 4, _OURS),
        Api(ApiKey.UPDATE_METADATA, "UpdateMetadata", 0, 8, _OURS),
        Api(ApiKey.CONTROLLED_SHUTDOWN, "ControlledShutdown", 0, 3, _OURS),
        Api(ApiKey.OFFSET_COMMIT, "OffsetCommit", 2, 9, _KAFKA_PYTHON),
        Api(ApiKey.OFFSET_FETCH, "OffsetFetch", 1, 9, _KAFKA_PYTHON),
        Api(ApiKey.FIND_COORDINATOR, "FindCoordinator", 0, 6, _KAFKA_PYTHON),
        Api(ApiKey.JOIN_GROUP, "JoinGroup", 0, 9, _KAFKA_PYTHON),
        Api(ApiKey.HEARTBEAT, "Heartbeat", 0, 4, _KAFKA_PYTHON),
        Api(ApiKey.LEAVE_GROUP, "LeaveGroup", 0, 5, _KAFKA_PYTHON),
        Api(ApiKey.SYNC_GROUP, "SyncGroup", 0, 5, _KAFKA_PYTHON),
        Api(ApiKey.DESCRIBE_GROUPS, "DescribeGroups", 0, 5, _KAFKA_PYTHON),
        Api(ApiKey.LIST_GROUPS, "ListGroups", 0, 5, _KAFKA_PYTHON),
        Api(ApiKey.API_VERSIONS, "ApiVersions", 0, 4, _KAFKA_PYTHON),
        Api(ApiKey.CREATE_TOPICS, "CreateTopics", 0, 7, _KAFKA_PYTHON),
        Api(ApiKey.DELETE_TOPICS, "DeleteTopics", 0, 6, _KAFKA_PYTHON),
        Api(ApiKey.INIT_PRODUCER_ID, "InitProducerId", 0, 5, _KAFKA_PYTHON),
        Api(ApiKey.ADD_PARTITIONS_TO_TXN, "AddPartitionsToTxn", 4, 5, _KAFKA_PYTHON),
        Api(ApiKey.WRITE_TXN_MARKERS, "WriteTxnMarkers", 0, 1, _KAFKA_PYTHON),
        Api(ApiKey.TXN_OFFSET_COMMIT, "TxnOffsetCommit", 0, 4, _KAFKA_PYTHON),
        Api(ApiKey.DESCRIBE_CONFIGS, "DescribeConfigs", 0, 4, _KAFKA_PYTHON),
        Api(ApiKey.ALTER_CONFIGS, "AlterConfigs", 0, 2, _KAFKA_PYTHON),
        Api(ApiKey.DESCRIBE_LOG_DIRS, "DescribeLogDirs", 0, 4, _KAFKA_PYTHON),
        Api(ApiKey.CREATE_PARTITIONS, "CreatePartitions", 0, 3, _KAFKA_PYTHON),
        Api(ApiKey.DELETE_GROUPS, "DeleteGroups", 0, 2, _KAFKA_PYTHON),
        Api(ApiKey.ELECT_LEADERS, "ElectLeaders", 0, 2, _KAFKA_PYTHON),
        Api(
            ApiKey.INCREMENTAL_ALTER_CONFIGS,
            "IncrementalAlterConfigs",
            0,
            1,
            _KAFKA_PYTHON,
        ),
        Api(
            ApiKey.ALTER_PARTITION_REASSIGNMENTS,
            "AlterPartitionReassignments",
            0,
            0,
            _KAFKA_PYTHON,
        ),
        Api(ApiKey.LIST_PARTITION_REASSIGNMENTS, "ListPartitionReassignments", 0, 0, _KAFKA_PYTHON),
        Api(ApiKey.OFFSET_DELETE, "OffsetDelete", 0, 0, _KAFKA_PYTHON),
        Api(ApiKey.ALTER_USER_SCRAM_CREDENTIALS, "AlterUserScramCredentials", 0, 0, _KAFKA_PYTHON),
        Api(ApiKey.ALTER_PARTITION, "AlterPartition", 0, 3, _OURS),
        Api(ApiKey.UPDATE_FEATURES, "UpdateFeatures", 0, 1, _KAFKA_PYTHON),
        Api(ApiKey.DESCRIBE_CLUSTER, "DescribeCluster", 0, 1, _KAFKA_PYTHON),
        Api(ApiKey.LIST_TRANSACTIONS, "ListTransactions", 0, 1, _KAFKA_PYTHON),
        Api(ApiKey.ALLOCATE_PRODUCER_IDS, "AllocateProducerIds", 0, 0, _OURS),
    )
}

DECODED_WITHOUT_SCHEMA: Mapping[ApiKey, Callable[[int, bytes, int], Body]] = {
    ApiKey.JOIN_GROUP: decode_join_group,
    ApiKey.OFFSET_COMMIT: decode_offset_commit,
    ApiKey.SYNC_GROUP: decode_sync_group,
}
"""Requests that are not read by their schema: the fields of their bodies are others."""

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

GATEWAY_APIS = frozenset(ApiKey(key) for key in APIS) - BROKER_APIS - GROUP_APIS
"""What the gateway always answers."""


@dataclass(frozen=True, slots=True)
class RequestHeader:
    """Who asks what; client_id is None when the client sent none."""

    api_key: ApiKey
    api_version: int
    correlation_id: int
    client_id: str | None


@dataclass(frozen=True, slots=True)
class Request:
    """A decoded request."""

    header: RequestHeader
    body: Body


def decode_request(frame: bytes, served: Collection[int] = GATEWAY_APIS) -> Request:
    """Decode one frame (without its size prefix).

    Bytes behind the message are passed over, as brokers do: librdkafka asks for the metadata of all
    topics with three bytes too many.

    Raises UnsupportedApi for keys outside `served`, UnsupportedVersion, MalformedFrame.
    """
    header, start = _decode_header(frame, served)
    by_hand = DECODED_WITHOUT_SCHEMA.get(header.api_key)
    if by_hand is not None:
        return Request(header, by_hand(header.api_version, frame, start))
    schema = APIS[header.api_key].request
    return Request(header, schema.decode_prefix(header.api_version, frame, start)[0])


def request_in_words(frame: bytes) -> str:
    """Return who asks what, for a log: nothing of the request's content, which may be secret."""
    try:
        header, _ = _decode_header(frame, APIS)
    except WireError as error:
        return f"{error}, {len(frame)} bytes"
    name, client = APIS[header.api_key].name, header.client_id
    return f"{name} version {header.api_version} of client {client!r:.100}, {len(frame)} bytes"


def _decode_header(frame: bytes, served: Collection[int]) -> tuple[RequestHeader, int]:
    if len(frame) < _REQUEST_PREFIX.size:
        raise MalformedFrame(f"request header cut off at byte {len(frame)}")
    api_key, version, correlation_id = _REQUEST_PREFIX.unpack_from(frame)
    if api_key not in served:
        raise UnsupportedApi(api_key, version, correlation_id)
    api = _api(api_key, version, correlation_id)
    header_version = _request_header_version(api, version)
    fields, start = _request_header().decode_prefix(header_version, frame)
    client_id = fields["client_id"] if header_version > 0 else None
    return RequestHeader(api.key, version, correlation_id, client_id), start


def encode_request(
    api_key: int, version: int, correlation_id: int, client_id: str | None, body: Body
) -> bytes:
    """Encode header and body, without the size prefix.

    Raises UnsupportedApi, UnsupportedVersion, ValueError when the body does not fit the schema.
    """
    api = _api(api_key, version, correlation_id)
    return encode_request_header(api_key, version, correlation_id, client_id) + api.request.encode(
        version, body
    )


def encode_request_header(
    api_key: int, version: int, correlation_id: int, client_id: str | None
) -> bytes:
    """Encode a header alone, to go in front of a body that was encoded column-wise."""
    api = _api(api_key, version, correlation_id)
    fields: Body = {
        "request_api_key": api_key,
        "request_api_version": version,
        "correlation_id": correlation_id,
        "client_id": client_id,
    }
    return _request_header().encode(_request_header_version(api, version), fields)


def encode_response(api_key: int, version: int, correlation_id: int, body: Body) -> bytes:
    """Encode header and body, without the size prefix.

    Raises UnsupportedApi, UnsupportedVersion, ValueError when the body does not fit the schema.
    """
    api = _api(api_key, version, correlation_id)
    header = encode_response_header(api_key, version, correlation_id)
    return header + api.response.encode(version, body)


def encode_response_header(api_key: int, version: int, correlation_id: int) -> bytes:
    """Encode a header alone, to go in front of a body that was encoded column-wise."""
    api = _api(api_key, version, correlation_id)
    plain = _CORRELATION_ID.pack(correlation_id)
    return plain + _NO_TAGS if _response_header_version(api, version) else plain


def response_body(api_key: int, version: int, frame: bytes) -> bytes:
    """Return a response without its header; raises UnsupportedApi, UnsupportedVersion,
    MalformedFrame.
    """
    header_version = _response_header_version(_api(api_key, version, -1), version)
    _, start = _response_header().decode_prefix(header_version, frame)
    return frame[start:]


def decode_response(api_key: int, version: int, frame: bytes) -> tuple[int, Body]:
    """Decode one response frame into (correlation id, body).

    An ApiVersions response with UNSUPPORTED_VERSION is read as version 0, which is how brokers
    answer a version they do not know (KIP-511). Raises UnsupportedApi, UnsupportedVersion,
    MalformedFrame.
    """
    api = _api(api_key, version, -1)
    fields, start = _response_header().decode_prefix(_response_header_version(api, version), frame)
    if api.key is ApiKey.API_VERSIONS and len(frame) >= start + _ERROR_CODE.size:
        (error_code,) = _ERROR_CODE.unpack_from(frame, start)
        version = 0 if error_code == ProtocolError.UNSUPPORTED_VERSION else version
    return fields["correlation_id"], api.response.decode(version, frame, start)


def _api(api_key: int, version: int, correlation_id: int) -> Api:
    api = APIS.get(api_key)
    if api is None:
        raise UnsupportedApi(api_key, version, correlation_id)
    if not api.min_version <= version <= api.max_version:
        raise UnsupportedVersion(api_key, version, api.min_version, api.max_version, correlation_id)
    return api


def _request_header_version(api: Api, version: int) -> int:
    if api.key is ApiKey.CONTROLLED_SHUTDOWN and version == 0:
        return 0  # the only request whose header has no client id
    return 2 if api.request.is_flexible(version) else 1


def _response_header_version(api: Api, version: int) -> int:
    if api.key is ApiKey.API_VERSIONS:
        return 0  # readable for clients that do not know the version yet (KIP-511)
    return 1 if api.response.is_flexible(version) else 0
