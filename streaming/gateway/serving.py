"""Who answers a new connection: what is served on its listener, behind what has to be known of its
client first, and what the client may ask.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import dataclass, replace
from functools import partial

from streaming.gateway.answering import Answering
from streaming.gateway.calls import BoundListener, Mute, NotAuthenticated, NotReady, Served
from streaming.gateway.introduction import Introduction
from streaming.gateway.login import Login
from streaming.gateway.ports import ClusterView
from streaming.gateway.rights.guard import Guard
from streaming.security.acls import Client
from streaming.security.authorizer import Authorizer
from streaming.security.identity import Identity, Refused
from streaming.security.newcomers import Naming, Newcomer
from streaming.security.principals import java_address
from streaming.security.sasl_server import Sasl
from streaming.wire.endpoints import protocol_of


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
        naming: Naming,
        counters: Counter[str],
    ) -> None:
        """sasl: how clients say who they are; rights: None when all may ask everything; naming: how
        it is found out who clients are.
        """
        self._answering = answering
        self._sasl = sasl
        self._rights = rights
        self._naming = naming
        self._builder = naming.builder_of(answering.listener.name)
        if self._builder is not None:
            self._builder.start()
        self._counters = counters

    @property
    def listener(self) -> BoundListener:
        """Where requests come in."""
        return self._answering.listener

    def to(self, transport: asyncio.Transport, mute: Mute) -> Served:
        """Return what answers a new connection; mute: what keeps it quiet. Raises NotAuthenticated,
        NotReady while it is not known what clients may ask.
        """
        tls = transport.get_extra_info("ssl_object")
        newcomer = Newcomer(
            host=java_address((transport.get_extra_info("peername") or ("?",))[0]),
            listener=self.listener.name,
            protocol=protocol_of(tls=tls is not None, sasl=self._sasl is not None),
            certificate=None if tls is None else tls.getpeercert(binary_form=True),
        )
        if self._sasl is None:
            return self._to_newcomer(newcomer, mute)

        def to_identified(mechanism: str, identity: Identity) -> Served:
            known = replace(newcomer, mechanism=mechanism, identity=identity)
            return self._to_newcomer(known, mute)

        return Login(self._answering, self._sasl, to_identified)

    def _to_newcomer(self, newcomer: Newcomer, mute: Mute) -> Served:
        serve = partial(self._to_client, mute=mute)
        if self._builder is not None:
            return Introduction(self._answering, partial(self._builder.client, newcomer), serve)
        try:
            return serve(self._naming.client(newcomer))
        except Refused as refused:
            raise NotAuthenticated(str(refused)) from refused

    def _to_client(self, client: Client, mute: Mute) -> Served:
        answering, rights = self._answering.to(client, mute), self._rights
        if rights is None or rights.authorizer.is_super_user(client):
            return answering
        if not rights.authorizer.ready:  # who is refused now might not come again
            raise NotReady("access control lists are not read yet")
        return Guard(answering, client, rights.authorizer, rights.view, self._counters)
