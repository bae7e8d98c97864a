"""Who may do what with which resource: access control lists as Kafka's own authorizer reads them
(AclAuthorizer, KIP-11, KIP-290).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum, IntEnum
from types import MappingProxyType

from streaming.embedded.jvm import KeptObject

ANY = "*"
_EVERYBODY = "User:*"


class Operation(IntEnum):
    """org.apache.kafka.common.acl.AclOperation, by the code that the protocol has for it."""

    ALL = 2
    READ = 3
    WRITE = 4
    CREATE = 5
    DELETE = 6
    ALTER = 7
    DESCRIBE = 8
    CLUSTER_ACTION = 9
    DESCRIBE_CONFIGS = 10
    ALTER_CONFIGS = 11
    IDEMPOTENT_WRITE = 12
    CREATE_TOKENS = 13
    DESCRIBE_TOKENS = 14


class ResourceType(Enum):
    """Those of org.apache.kafka.common.resource.ResourceType that requests to this node are about,
    by the name that their znodes have.
    """

    TOPIC = "Topic"
    GROUP = "Group"
    CLUSTER = "Cluster"
    TRANSACTIONAL_ID = "TransactionalId"
    DELEGATION_TOKEN = "DelegationToken"
    USER = "User"


CLUSTER_NAME = "kafka-cluster"
"""The name of the only resource of type CLUSTER."""

SUPPORTED: Mapping[ResourceType, tuple[Operation, ...]] = {
    ResourceType.TOPIC: (
        Operation.READ,
        Operation.WRITE,
        Operation.CREATE,
        Operation.DELETE,
        Operation.ALTER,
        Operation.DESCRIBE,
        Operation.DESCRIBE_CONFIGS,
        Operation.ALTER_CONFIGS,
    ),
    ResourceType.GROUP: (Operation.READ, Operation.DELETE, Operation.DESCRIBE),
    ResourceType.CLUSTER: (
        Operation.CREATE,
        Operation.ALTER,
        Operation.DESCRIBE,
        Operation.CLUSTER_ACTION,
        Operation.DESCRIBE_CONFIGS,
        Operation.ALTER_CONFIGS,
        Operation.IDEMPOTENT_WRITE,
    ),
}
"""What can be done with a resource that clients may ask their operations on (AclEntry)."""

_IMPLIED_BY: Mapping[Operation, frozenset[Operation]] = {
    Operation.DESCRIBE: frozenset(
        {Operation.READ, Operation.WRITE, Operation.DELETE, Operation.ALTER}
    ),
    Operation.DESCRIBE_CONFIGS: frozenset({Operation.ALTER_CONFIGS}),
}
"""Who may do one of these may do the operation too; who is denied one is not denied it."""


@dataclass(frozen=True, slots=True)
class Client:
    """Who asks: a principal such as User:alice, and the address that it asks from.

    proven: whether it has said itself who it is, by a password or a certificate, and not somebody
    else by giving it a delegation token. java_principal: what a builder of the brokers' own made of
    it, for an authorizer in the same JVM; None where none did.
    """

    principal: str
    host: str
    proven: bool = False
    java_principal: KeptObject | None = None


@dataclass(frozen=True, slots=True)
class Acl:
    """What one principal may do from one host, or (allowed is False) may not."""

    principal: str
    host: str
    operation: Operation
    allowed: bool

    def concerns(self, client: Client, operations: Iterable[Operation]) -> bool:
        """Return whether it says something of one of the operations to a client."""
        return (
            self.principal in (client.principal, _EVERYBODY)
            and self.host in (client.host, ANY)
            and (self.operation is Operation.ALL or self.operation in operations)
        )


@dataclass(frozen=True, slots=True)
class Pattern:
    """What resources an access control list is about: one, those whose names begin with one, or
    with the name `*` all of a type.
    """

    resource_type: ResourceType
    name: str
    prefixed: bool


_Lists = dict[str, tuple[Acl, ...]]


class AclTable:
    """The access control lists of a cluster; does not change."""

    def __init__(self, lists: Mapping[Pattern, Iterable[Acl]] = MappingProxyType({})) -> None:
        """Take them by what they are about."""
        self._literal: defaultdict[ResourceType, _Lists] = defaultdict(dict)
        self._prefixed: defaultdict[ResourceType, _Lists] = defaultdict(dict)
        for pattern, acls in lists.items():
            if found := tuple(acls):
                of = self._prefixed if pattern.prefixed else self._literal
                of[pattern.resource_type][pattern.name] = found
        self._lengths = {of: {*map(len, lists)} for of, lists in self._prefixed.items()}

    def permits(
        self, client: Client, operation: Operation, resource_type: ResourceType, name: str
    ) -> bool | None:
        """Return whether a client may do something with a resource, None where no list is about it.

        Who is denied it may not, whoever else lets him (AclAuthorizer.authorizeAction).
        """
        acls = [acl for found in self._about(resource_type, name) for acl in found]
        if not acls:
            return None
        if any(not acl.allowed and acl.concerns(client, (operation,)) for acl in acls):
            return False
        enough = {operation, *_IMPLIED_BY.get(operation, ())}
        return any(acl.allowed and acl.concerns(client, enough) for acl in acls)

    def permits_some(
        self, client: Client, operation: Operation, resource_type: ResourceType
    ) -> bool | None:
        """Return whether there may be a resource of a type with which a client may do something,
        None where no list says that he may or that nobody may.

        A name that is allowed counts unless it, or what it begins with, is denied
        (AclAuthorizer.authorizeByResourceType).
        """
        literal, prefixed = self._literal[resource_type], self._prefixed[resource_type]

        def names(lists: _Lists, *, allowed: bool) -> set[str]:
            return {
                name
                for name, acls in lists.items()
                if any(
                    acl.allowed is allowed and acl.concerns(client, (operation,)) for acl in acls
                )
            }

        denied, denied_prefixes = names(literal, allowed=False), names(prefixed, allowed=False)
        if ANY in denied:
            return False

        def begins_denied(name: str) -> bool:
            return any(name.startswith(prefix) for prefix in denied_prefixes)

        if any(not begins_denied(prefix) for prefix in names(prefixed, allowed=True)):
            return True
        if any(
            name == ANY or not (name in denied or begins_denied(name))
            for name in names(literal, allowed=True)
        ):
            return True
        return None

    def _about(self, resource_type: ResourceType, name: str) -> Iterator[tuple[Acl, ...]]:
        """Return the lists about a resource."""
        literal = self._literal.get(resource_type, {})
        prefixed = self._prefixed.get(resource_type, {})
        for known in dict.fromkeys((name, ANY)):
            if known in literal:
                yield literal[known]
        for length in self._lengths.get(resource_type, ()):
            if length <= len(name) and name[:length] in prefixed:
                yield prefixed[name[:length]]
