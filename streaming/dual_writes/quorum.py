"""What a KRaft quorum knows, by the records of its metadata log (MetadataDelta.replay)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from enum import IntEnum
from uuid import UUID

from state.topic_ids import topic_id_to_text
from streaming.dual_writes.knowledge import Fact, Known, Matter, Partition, Secret, Subject, Topic
from streaming.dual_writes.naming import (
    PRODUCER_IDS,
    acl_subject,
    config_fact,
    config_subject,
    may,
    quota_subject,
    token_facts,
)
from streaming.metadata_log.codes import ALLOW, CONFIGURED, PREFIXED, RESOURCE_TYPES
from streaming.metadata_log.records import Record, RecordType
from streaming.security.acls import Acl, Operation
from streaming.security.delegation_tokens import DelegationToken
from streaming.security.scram import MECHANISMS, ScramCredential
from streaming.wire.schema_codec import Body
from streaming.zk.znodes.paths import DEFAULT_ENTITY, sanitized

_UNCHANGED_LEADER = -2


class MigrationState(IntEnum):
    """How far a quorum has migrated the cluster (ZkMigrationState)."""

    NONE = 0
    MIGRATION = 1
    PRE_MIGRATION = 2
    POST_MIGRATION = 3


class QuorumKnowledge:
    """What a quorum knows, as of the records that were applied."""

    def __init__(self) -> None:
        """Begin with nothing."""
        self.known = Known()
        self.migration = MigrationState.NONE
        self._names: dict[UUID, str] = {}
        self._acls: dict[UUID, tuple[Subject, str]] = {}
        self._open: list[Record] | None = None
        self._changes: Mapping[RecordType, Callable[[Body], None]] = {
            RecordType.TOPIC: self._topic,
            RecordType.REMOVE_TOPIC: self._remove_topic,
            RecordType.PARTITION: self._partition,
            RecordType.PARTITION_CHANGE: self._partition_change,
            RecordType.CONFIG: self._config,
            RecordType.CLIENT_QUOTA: self._quota,
            RecordType.USER_SCRAM_CREDENTIAL: self._credential,
            RecordType.REMOVE_USER_SCRAM_CREDENTIAL: self._remove_credential,
            RecordType.ACCESS_CONTROL_ENTRY: self._acl,
            RecordType.REMOVE_ACCESS_CONTROL_ENTRY: self._remove_acl,
            RecordType.DELEGATION_TOKEN: self._token,
            RecordType.REMOVE_DELEGATION_TOKEN: self._remove_token,
            RecordType.PRODUCER_IDS: self._producer_ids,
            RecordType.ZK_MIGRATION_STATE: self._migration_state,
        }

    def apply(self, records: Iterable[Record]) -> None:
        """Apply records in order; those of a transaction when it is committed (KIP-868).

        Raises what reading them does, KeyError and ValueError for those that fit nothing.
        """
        for record in records:
            match record.kind:
                case RecordType.BEGIN_TRANSACTION:
                    self._open = []
                case RecordType.END_TRANSACTION:
                    committed, self._open = self._open or [], None
                    self.apply(committed)
                case RecordType.ABORT_TRANSACTION:
                    self._open = None
                case _ if self._open is not None:
                    self._open.append(record)
                case kind if kind in self._changes:
                    self._changes[kind](record.body)

    def _topic(self, body: Body) -> None:
        id_, name = body["topic_id"], body["name"]
        self._names[id_] = name
        self.known.topics[name] = Topic(topic_id_to_text(id_.bytes))

    def _remove_topic(self, body: Body) -> None:
        name = self._names.pop(body["topic_id"])
        del self.known.topics[name]
        self.known.facts.pop(config_subject("topics", name), None)

    def _partitions_of(self, body: Body) -> dict[int, Partition | None]:
        return self.known.topics[self._names[body["topic_id"]]].partitions

    def _partition(self, body: Body) -> None:
        self._partitions_of(body)[body["partition_id"]] = Partition(
            body["leader"],
            body["leader_epoch"],
            tuple(sorted(body["isr"])),
            tuple(body["replicas"]),
            tuple(sorted(body["adding_replicas"])),
            tuple(sorted(body["removing_replicas"])),
        )

    def _partition_change(self, body: Body) -> None:
        """What is null stays; another leader, or the same anew, has the next epoch
        (PartitionRegistration.merge).
        """
        partitions, number = self._partitions_of(body), body["partition_id"]
        before = partitions[number]
        if before is None:
            raise KeyError(f"partition {number}")
        leads = body["leader"] != _UNCHANGED_LEADER
        partitions[number] = Partition(
            body["leader"] if leads else before.leader,
            before.leader_epoch + leads,
            _in_order(body["isr"], before.isr),
            before.replicas if body["replicas"] is None else tuple(body["replicas"]),
            _in_order(body["adding_replicas"], before.adding),
            _in_order(body["removing_replicas"], before.removing),
        )

    def _put(self, subject: Subject, what: str, value: Fact | None) -> None:
        """Take a fact, or its end."""
        if value is None:
            self.known.facts[subject].pop(what, None)
        else:
            self.known.facts[subject][what] = value

    def _config(self, body: Body) -> None:
        key, value = body["name"], body["value"]
        kind = CONFIGURED[body["resource_type"]]
        subject = config_subject(kind, body["resource_name"] or DEFAULT_ENTITY)
        self._put(subject, key, None if value is None else config_fact(key, value))

    def _quota(self, body: Body) -> None:
        entity = {
            one["entity_type"]: DEFAULT_ENTITY
            if one["entity_name"] is None
            else sanitized(one["entity_name"])
            for one in body["entity"]
        }
        self._put(quota_subject(entity), body["key"], None if body["remove"] else body["value"])

    def _credential(self, body: Body) -> None:
        credential = ScramCredential(
            body["salt"], body["stored_key"], body["server_key"], body["iterations"]
        )
        self._put(*_credential_place(body), Secret(credential))

    def _remove_credential(self, body: Body) -> None:
        self._put(*_credential_place(body), None)

    def _acl(self, body: Body) -> None:
        kind = RESOURCE_TYPES[body["resource_type"]]
        subject = acl_subject(kind, body["resource_name"], body["pattern_type"] == PREFIXED)
        allowed = body["permission_type"] == ALLOW
        operation = Operation(body["operation"])
        entry = may(Acl(body["principal"], body["host"], operation, allowed))
        self._acls[body["id"]] = subject, entry
        self._put(subject, entry, True)

    def _remove_acl(self, body: Body) -> None:
        place = self._acls.pop(body["id"])
        if place not in self._acls.values():
            self._put(*place, None)

    def _token(self, body: Body) -> None:
        token = DelegationToken(
            token_id=body["token_id"],
            owner=body["owner"],
            requester=body["requester"],
            renewers=tuple(body["renewers"]),
            issued_ms=body["issue_timestamp"],
            expires_ms=body["expiration_timestamp"],
            max_ms=body["max_timestamp"],
        )
        self.known.facts[_token_subject(body)] = token_facts(token)

    def _remove_token(self, body: Body) -> None:
        self.known.facts.pop(_token_subject(body), None)

    def _producer_ids(self, body: Body) -> None:
        self._put(PRODUCER_IDS, "next", body["next_producer_id"])

    def _migration_state(self, body: Body) -> None:
        self.migration = MigrationState(body["zk_migration_state"])


def _in_order(ids: list[int] | None, before: tuple[int, ...]) -> tuple[int, ...]:
    return before if ids is None else tuple(sorted(ids))


def _credential_place(body: Body) -> tuple[Subject, str]:
    return config_subject("users", sanitized(body["name"])), MECHANISMS[body["mechanism"]]


def _token_subject(body: Body) -> Subject:
    return Subject(Matter.DELEGATION_TOKEN, body["token_id"])
