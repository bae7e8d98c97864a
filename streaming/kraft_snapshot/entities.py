"""Producer ids, access control lists and tokens as a KRaft quorum would know them
(ZkMigrationClient).
"""

from __future__ import annotations

from collections.abc import Iterator
from uuid import UUID, uuid5

from streaming.kraft_snapshot.taking import taken
from streaming.metadata_log.codes import ALLOW, DENY, LITERAL, PREFIXED, RESOURCE_TYPES
from streaming.metadata_log.records import Record, RecordType
from streaming.migration.entities import below, data_of
from streaming.observers.acl_lists import acl_lists
from streaming.security.acls import Acl, Pattern
from streaming.zk.reader import ZkReader
from streaming.zk.znodes import PRODUCER_ID_BLOCK_PATH, parse_producer_id_block
from streaming.zk.znodes.acls import parse_acls
from streaming.zk.znodes.delegation_tokens import TOKENS_PATH, parse_token

_IDS_OF_ENTRIES = UUID("5b1d2f2c-7a0e-4a56-9c0f-0f6f3f8f5d11")
_TYPES = {type_: code for code, type_ in RESOURCE_TYPES.items()}


def producer_id_records(session: ZkReader, gaps: list[str]) -> Iterator[Record]:
    """Yield which block of producer ids is next; gaps gets what cannot be read, here and below.

    This and the others raise the errors of streaming.zk.errors.
    """

    def records(_: str, said: bytes) -> Iterator[Record]:
        block = parse_producer_id_block(said)
        body = {"broker_id": block.broker_id, "next_producer_id": block.next_producer_id}
        yield Record(RecordType.PRODUCER_IDS, body)

    return taken(data_of(session, [PRODUCER_ID_BLOCK_PATH]), records, gaps)


def acl_records(session: ZkReader, gaps: list[str]) -> Iterator[Record]:
    """Yield the entries of access control lists."""
    patterns = dict(acl_lists(session))

    def records(path: str, said: bytes) -> Iterator[Record]:
        for acl in dict.fromkeys(parse_acls(said)):
            yield _entry(patterns[path], acl)

    return taken(data_of(session, list(patterns)), records, gaps)


def _entry(pattern: Pattern, acl: Acl) -> Record:
    """Its id follows from what it says, so that the same cluster has the same snapshot."""
    body = {
        "resource_type": _TYPES[pattern.resource_type],
        "resource_name": pattern.name,
        "pattern_type": PREFIXED if pattern.prefixed else LITERAL,
        "principal": acl.principal,
        "host": acl.host,
        "operation": acl.operation,
        "permission_type": ALLOW if acl.allowed else DENY,
    }
    body["id"] = uuid5(_IDS_OF_ENTRIES, "\n".join(map(str, body.values())))
    return Record(RecordType.ACCESS_CONTROL_ENTRY, body)


def token_records(session: ZkReader, gaps: list[str]) -> Iterator[Record]:
    """Yield delegation tokens."""

    def records(_: str, said: bytes) -> Iterator[Record]:
        token = parse_token(said)
        body = {
            "owner": token.owner,
            "requester": token.requester,
            "renewers": list(token.renewers),
            "issue_timestamp": token.issued_ms,
            "max_timestamp": token.max_ms,
            "expiration_timestamp": token.expires_ms,
            "token_id": token.token_id,
        }
        yield Record(RecordType.DELEGATION_TOKEN, body)

    return taken(data_of(session, below(session, [TOKENS_PATH])), records, gaps)
