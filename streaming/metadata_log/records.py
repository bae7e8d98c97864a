"""Records of a KRaft quorum's metadata log (KIP-631; metadata/src/main/resources/common/metadata).

Only kinds that ZooKeeper has something of have a body here, and the level of a feature.
"""

from __future__ import annotations

import functools
from enum import IntEnum
from typing import NamedTuple

from streaming.wire.errors import MalformedFrame
from streaming.wire.primitives import unsigned_varint
from streaming.wire.reading import UNREADABLE, varint
from streaming.wire.schema_codec import Body, MessageSchema

_OLDEST = 0
_FRAME_VERSION = 1
"""AbstractApiMessageSerde.DEFAULT_FRAME_VERSION, the only one there is."""


class RecordType(IntEnum):
    """All kinds that Kafka 3.4 to 3.9 write (MetadataRecordType)."""

    REGISTER_BROKER = 0
    UNREGISTER_BROKER = 1
    TOPIC = 2
    PARTITION = 3
    CONFIG = 4
    PARTITION_CHANGE = 5
    FENCE_BROKER = 7
    UNFENCE_BROKER = 8
    REMOVE_TOPIC = 9
    DELEGATION_TOKEN = 10
    USER_SCRAM_CREDENTIAL = 11
    FEATURE_LEVEL = 12
    CLIENT_QUOTA = 14
    PRODUCER_IDS = 15
    BROKER_REGISTRATION_CHANGE = 17
    ACCESS_CONTROL_ENTRY = 18
    REMOVE_ACCESS_CONTROL_ENTRY = 19
    NO_OP = 20
    ZK_MIGRATION_STATE = 21
    REMOVE_USER_SCRAM_CREDENTIAL = 22
    BEGIN_TRANSACTION = 23
    END_TRANSACTION = 24
    ABORT_TRANSACTION = 25
    REMOVE_DELEGATION_TOKEN = 26
    REGISTER_CONTROLLER = 27


_SCHEMAS = {
    RecordType.TOPIC: "TopicRecord",
    RecordType.PARTITION: "PartitionRecord",
    RecordType.CONFIG: "ConfigRecord",
    RecordType.PARTITION_CHANGE: "PartitionChangeRecord",
    RecordType.REMOVE_TOPIC: "RemoveTopicRecord",
    RecordType.DELEGATION_TOKEN: "DelegationTokenRecord",
    RecordType.USER_SCRAM_CREDENTIAL: "UserScramCredentialRecord",
    RecordType.FEATURE_LEVEL: "FeatureLevelRecord",
    RecordType.CLIENT_QUOTA: "ClientQuotaRecord",
    RecordType.PRODUCER_IDS: "ProducerIdsRecord",
    RecordType.ACCESS_CONTROL_ENTRY: "AccessControlEntryRecord",
    RecordType.REMOVE_ACCESS_CONTROL_ENTRY: "RemoveAccessControlEntryRecord",
    RecordType.ZK_MIGRATION_STATE: "ZkMigrationStateRecord",
    RecordType.REMOVE_USER_SCRAM_CREDENTIAL: "RemoveUserScramCredentialRecord",
    RecordType.REMOVE_DELEGATION_TOKEN: "RemoveDelegationTokenRecord",
}
_EMPTY: Body = {}


class Record(NamedTuple):
    """One of them; the body is empty of kinds that are not decoded."""

    kind: RecordType
    body: Body


@functools.cache
def record_schema(kind: RecordType) -> MessageSchema | None:
    """Return how a kind is written, None for those that are not decoded."""
    name = _SCHEMAS.get(kind)
    return None if name is None else MessageSchema(name, f"{__package__}.schemas")


def decode_record(value: bytes) -> Record:
    """Decode a record's value: versions of the frame, the kind and of the kind, and the body.

    Raises MalformedFrame, also for a kind or version that Kafka 3.9 does not have.
    """
    try:
        frame, at = varint(value, 0)
        number, at = varint(value, at)
        version, at = varint(value, at)
    except UNREADABLE as error:
        raise MalformedFrame(f"a record of {len(value)} bytes: {error}") from error
    if frame != _FRAME_VERSION:
        raise MalformedFrame(f"frame version {frame}, only {_FRAME_VERSION} is known")
    try:
        kind = RecordType(number)
    except ValueError as error:
        unknown = f"a record of kind {number}, which Kafka 3.9 does not have"
        raise MalformedFrame(unknown) from error
    schema = record_schema(kind)
    if schema is None:
        return Record(kind, _EMPTY)
    if version > schema.max_version:
        raise MalformedFrame(f"{schema.name} version {version}, newest known {schema.max_version}")
    return Record(kind, schema.decode(version, value, at))


def encode_record(record: Record) -> bytes:
    """Encode a record that has a body, in the oldest version of its kind, as a migration does
    (ZkMigrationClient): every metadata.version since 3.4 reads it.

    Raises ValueError for a body that does not fit.
    """
    schema = record_schema(record.kind)
    if schema is None:
        raise ValueError(f"a record of kind {record.kind.name} has no body here")
    head = b"".join(map(unsigned_varint, (_FRAME_VERSION, record.kind, _OLDEST)))
    return head + schema.encode(_OLDEST, record.body)
