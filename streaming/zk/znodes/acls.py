"""Access control lists as Kafka's own authorizer keeps them (ZkAclStore, AclEntry)."""

from __future__ import annotations

import orjson

from streaming.security.acls import Acl, Operation, ResourceType

ACL_ROOT = "/kafka-acl"
"""Brokers with an authorizer create it when they start."""

ACL_PATHS: dict[str, bool] = {ACL_ROOT: False, "/kafka-acl-extended/prefixed": True}
"""Where lists are, below the type and then the name of what they are about; whether that is what
names begin with.
"""

ACL_CHANGES_PATHS = ("/kafka-acl-changes", "/kafka-acl-extended-changes")
"""Whoever changed a list leaves a notification below one of these."""

_ALLOWED = {"allow": True, "deny": False}
_OPERATIONS = {one.name.replace("_", "").lower(): one for one in Operation}


def resource_type(name: str) -> ResourceType | None:
    """Return the type of resources that a znode is called after, None for those not known here."""
    try:
        return ResourceType(name)
    except ValueError:
        return None


def parse_acls(data: bytes) -> list[Acl]:
    """Read one resource's list; raises ValueError naming what is wrong."""
    if not data:
        return []
    try:
        return [
            Acl(
                str(one["principal"]),
                str(one["host"]),
                _OPERATIONS[one["operation"].lower().replace("_", "")],
                _ALLOWED[one["permissionType"].lower()],
            )
            for one in orjson.loads(data)["acls"]
        ]
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"broken znode: {error!r} in {data[:200]!r}") from error
