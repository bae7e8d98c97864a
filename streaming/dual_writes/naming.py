"""How what is known is called, whoever knows it: as ZooKeeper's paths have it."""

from __future__ import annotations

from collections.abc import Mapping

from streaming.dual_writes.knowledge import HIDDEN, Fact, Matter, Subject
from streaming.metadata_log.codes import QUOTA_ENTITIES
from streaming.migration.configs import is_password
from streaming.security.acls import Acl, ResourceType
from streaming.security.delegation_tokens import DelegationToken

PRODUCER_IDS = Subject(Matter.PRODUCER_IDS, "latest_producer_id_block")


def config_subject(kind: str, name: str) -> Subject:
    """Return what an entity's configuration is called: topics/t."""
    return Subject(Matter.CONFIG, f"{kind}/{name}")


def quota_subject(entity: Mapping[str, str]) -> Subject:
    """Return what quotas of a user, a client, a user's client or an address are called; names as
    znodes have them.
    """
    parts = [
        f"{folder}/{entity[kind]}" for kind, folder in QUOTA_ENTITIES.items() if kind in entity
    ]
    return Subject(Matter.CONFIG, "/".join(parts))


def config_fact(key: str, value: str) -> Fact:
    """Return what is compared of a configuration that is no quota."""
    return HIDDEN if is_password(key) else value


def acl_subject(kind: ResourceType, name: str, prefixed: bool) -> Subject:
    """Return what an access control list is called: Topic/t, or Topic/prefixed/t."""
    return Subject(Matter.ACL, f"{kind.value}/{'prefixed/' if prefixed else ''}{name}")


def may(acl: Acl) -> str:
    """Return what an entry of a list says."""
    verb = "may" if acl.allowed else "may not"
    return f"{acl.principal} from {acl.host} {verb} {acl.operation.name.lower()}"


def token_facts(token: DelegationToken) -> dict[str, Fact]:
    """Return what is compared of a delegation token."""
    return {
        "owner": token.owner,
        "requester": token.requester,
        "renewers": tuple(sorted(token.renewers)),
        "issued_ms": token.issued_ms,
        "expires_ms": token.expires_ms,
        "max_ms": token.max_ms,
    }
