"""Whether a client may do something: what Kafka's own authorizer says (AclAuthorizer)."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from streaming.security.acls import (
    SUPPORTED,
    AclTable,
    Client,
    Operation,
    ResourceType,
)


class Authorizer:
    """Decides by the access control lists that it was told last; safe from any thread."""

    def __init__(self, super_users: Collection[str], *, allow_without_acls: bool) -> None:
        """super_users: principals that may do everything; allow_without_acls: whether all may do
        everything with a resource that no list is about.
        """
        self._super_users = frozenset(super_users)
        self._allow_without_acls = allow_without_acls
        self._table: AclTable | None = None

    @property
    def ready(self) -> bool:
        """Whether it was told of access control lists; until then only super users may."""
        return self._table is not None

    def take(self, table: AclTable) -> None:
        """Decide by other access control lists from now on."""
        self._table = table

    def is_super_user(self, client: Client) -> bool:
        """Return whether a client may do everything."""
        return client.principal in self._super_users

    def permits(
        self, client: Client, operation: Operation, resource_type: ResourceType, name: str
    ) -> bool:
        """Return whether a client may do something with a resource."""
        if self.is_super_user(client):
            return True
        if self._table is None:
            return False
        permitted = self._table.permits(client, operation, resource_type, name)
        return self._allow_without_acls if permitted is None else permitted

    def permits_some(
        self, client: Client, operation: Operation, resource_type: ResourceType
    ) -> bool:
        """Return whether there may be a resource with which a client may do something."""
        if self.is_super_user(client):
            return True
        if self._table is None:
            return False
        permitted = self._table.permits_some(client, operation, resource_type)
        return self._allow_without_acls if permitted is None else permitted

    def operations(self, client: Client, resource_type: ResourceType, name: str) -> int:
        """Return what a client may do with a resource, as bits (KIP-430)."""
        return operation_bits(
            operation
            for operation in SUPPORTED[resource_type]
            if self.permits(client, operation, resource_type, name)
        )


def operation_bits(operations: Iterable[Operation]) -> int:
    """Return operations as a bit field, in which an operation's code is the place of its bit."""
    return sum(1 << operation for operation in operations)
