"""Who a client is that has come, by what it showed and said: as Kafka's own principal builder finds
it out, or one of the brokers' own (KIP-189).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from streaming.embedded.jvm import KeptObject
from streaming.security.acls import Client
from streaming.security.identity import Identity, Refused
from streaming.security.mapping_rules import MappingRule
from streaming.security.principals import ANONYMOUS, NoPrincipal, certified_principal
from streaming.wire.endpoints import SecurityProtocol


@dataclass(frozen=True, slots=True, kw_only=True)
class Newcomer:
    """A client that has come to a listener, of which it is not known yet who it is.

    host: its address, as Java writes it. certificate: what it showed, in DER, None for nothing.
    mechanism, identity: by which it logged in, and as whom, "" and None where nobody has to.
    """

    host: str
    listener: str
    protocol: SecurityProtocol
    certificate: bytes | None = None
    mechanism: str = ""
    identity: Identity | None = None

    def known_as(self, principal: str, java_principal: KeptObject | None = None) -> Client:
        """Return it as who it is."""
        identity = self.identity
        said_it = self.certificate is not None if identity is None else not identity.by_token
        proven = said_it and principal != ANONYMOUS
        return Client(principal, self.host, proven, java_principal)


class PrincipalBuilder(Protocol):
    """Says who clients are; takes a while."""

    def start(self) -> None:
        """Get ready, while nobody waits yet."""
        ...

    async def client(self, newcomer: Newcomer) -> Client:
        """Return who it is; raises Refused and Undecided."""
        ...


@dataclass(frozen=True, slots=True)
class Naming:
    """How it is found out who clients are: what certificates' names stand for, and, by listener,
    what is asked instead, None where nothing is.
    """

    rules: Sequence[MappingRule] = (MappingRule(),)
    builder_of: Callable[[str], PrincipalBuilder | None] = lambda _: None

    def client(self, newcomer: Newcomer) -> Client:
        """Return who it is without a builder (DefaultKafkaPrincipalBuilder); raises Refused."""
        if newcomer.identity is not None:
            principal = newcomer.identity.principal
        elif newcomer.certificate is not None:
            principal = self._certified(newcomer.certificate)
        else:
            principal = ANONYMOUS
        return newcomer.known_as(principal)

    def _certified(self, certificate: bytes) -> str:
        try:
            return certified_principal(certificate, self.rules)
        except NoPrincipal as error:
            raise Refused(str(error)) from error


KAFKAS_NAMING = Naming()
"""As Kafka's own builder does without rules."""
