"""Who answers a new connection: what is served on its listener, behind what has to be known of its
client first, and what the client may ask.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from streaming.gateway.answering import Answering
from streaming.gateway.calls import BoundListener, Mute, NotAuthenticated, NotReady, Served
from streaming.gateway.login import Login
from streaming.gateway.ports import ClusterView
from streaming.gateway.rights.guard import Guard
from streaming.security.acls import Client
from streaming.security.authorizer import Authorizer
from streaming.security.identity import Identity
from streaming.security.mapping_rules import MappingRule
from streaming.security.principals import (
    ANONYMOUS,
    NoPrincipal,
    certified_principal,
    java_address,
)
from streaming.security.sasl_server import Sasl


@dataclass(frozen=True, slots=True)
class Rights:
    """By what is judged what clients may ask."""

    authorizer: Authorizer
    view: ClusterView


class Serving:
    """What is served on one listener, to whom."""

    def __init__(
        self,
        answering: Answering,
        sasl: Sasl | None,
        rights: Rights | None,
        rules: Sequence[MappingRule] | None,
        counters: Counter[str],
    ) -> None:
        """sasl: how clients say who they are; rights: None when all may ask everything; rules: what
        certificates' names stand for, None when it makes no difference.
        """
        self._answering = answering
        self._sasl = sasl
        self._rights = rights
        self._rules = rules
        self._counters = counters

    @property
    def listener(self) -> BoundListener:
        """Where requests come in."""
        return self._answering.listener

    def to(self, transport: asyncio.Transport, mute: Mute) -> Served:
        """Return what answers a new connection; mute: what keeps it quiet. Raises NotAuthenticated,
        NotReady while it is not known what clients may ask.
        """
        host = java_address((transport.get_extra_info("peername") or ("?",))[0])
        if self._sasl is None:
            principal = self._certified(transport)
            client = Client(principal, host, proven=principal != ANONYMOUS)
            return self._to_client(client, mute)

        def to_identified(found: Identity) -> Served:
            return self._to_client(Client(found.principal, host, proven=not found.by_token), mute)

        return Login(self._answering, self._sasl, to_identified)

    def _to_client(self, client: Client, mute: Mute) -> Served:
        answering, rights = self._answering.to(client, mute), self._rights
        if rights is None or rights.authorizer.is_super_user(client):
            return answering
        if not rights.authorizer.ready:  # who is refused now might not come again
            raise NotReady("access control lists are not read yet")
        return Guard(answering, client, rights.authorizer, rights.view, self._counters)

    def _certified(self, transport: asyncio.Transport) -> str:
        """Return who showed a certificate, if somebody did."""
        tls = transport.get_extra_info("ssl_object")
        certificate = None if tls is None else tls.getpeercert(binary_form=True)
        if certificate is None or self._rules is None:
            return ANONYMOUS
        try:
            return certified_principal(certificate, self._rules)
        except NoPrincipal as error:
            raise NotAuthenticated(str(error)) from error
