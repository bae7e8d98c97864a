"""Whether a client may do something: what is asked of an authorizer, and what Kafka's own one says
(AclAuthorizer).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from streaming.security.acls import (
    AclTable,
    Client,
    Operation,
    ResourceType,
)

Right: TypeAlias = tuple[Operation, ResourceType, str | None]
"""To do something with the resource of a type and a name; None: with some resource of the type,
whichever.
"""


@dataclass(frozen=True, slots=True)
class Inquiry:
    """The request that a client is judged for; listener: the name of where it came in."""

    client: Client
    listener: str
    api_key: int
    api_version: int
    correlation_id: int
    client_id: str | None


class AuthorizerFailed(Exception):
    """An authorizer did not say whether somebody may do something; the message says why."""


class Authorizer(Protocol):
    """Says what clients may do."""

    @property
    def ready(self) -> bool:
        """Whether it can be asked yet."""
        ...

    def is_super_user(self, client: Client) -> bool:
        """Return whether a client may do everything, and nobody has to ask."""
        ...

    def permits(self, client: Client, right: Right) -> bool | None:
        """Return whether a client has a right, None where that has to be asked for."""
        ...

    async def ask(self, inquiry: Inquiry, rights: Mapping[Right, bool]) -> Mapping[Right, bool]:
        """Return which of the rights a request's client has; rights: for each, whether a refusal is
        told to whoever reads logs. Raises AuthorizerFailed.
        """
        ...


class AclAuthorizer:
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

    def permits(self, client: Client, right: Right) -> bool:
        """Return whether a client has a right."""
        if self.is_super_user(client):
            return True
        if self._table is None:
            return False
        operation, resource_type, name = right
        if name is None:
            permitted = self._table.permits_some(client, operation, resource_type)
        else:
            permitted = self._table.permits(client, operation, resource_type, name)
        return self._allow_without_acls if permitted is None else permitted

    async def ask(self, inquiry: Inquiry, rights: Mapping[Right, bool]) -> Mapping[Right, bool]:
        """Return which of the rights a request's client has."""
        return {right: self.permits(inquiry.client, right) for right in rights}


def operation_bits(operations: Iterable[Operation]) -> int:
    """Return operations as a bit field, in which an operation's code is the place of its bit."""
    return sum(1 << operation for operation in operations)
