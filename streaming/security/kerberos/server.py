"""Finds out who connects with a ticket of Kerberos (RFC 4752)."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from streaming.embedded.jvm import JvmFailed
from streaming.security.identity import Identity, Refused, Undecided
from streaming.security.kerberos.names import NameRule, NoName, short_name
from streaming.security.principals import user_principal
from streaming.tickets.client import NO_LAYER, takes_no_layer
from streaming.tickets.jgss import GssFailed, Jgss
from streaming.wire.conversation import Conversation

_THREADS = ThreadPoolExecutor(4, "kerberos")


class GssServer:
    """Takes the ticket of one client; a name that it wants to act under is passed over, as by Kafka
    (SaslServerCallbackHandler): the ticket's counts.
    """

    def __init__(self, jgss: Jgss, rules: Sequence[NameRule] | None) -> None:
        """rules: what principals are called here; None: by their full names."""
        self._jgss = jgss
        self._rules = rules
        self.identity: Identity | None = None
        self._exchange = self._begin()
        next(self._exchange)

    async def respond(self, token: bytes) -> bytes:
        """Return the answer to what the client said; raises Refused and Undecided."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(_THREADS, self._answer, token)

    def _answer(self, token: bytes) -> bytes:
        try:
            return self._exchange.send(token)
        except JvmFailed as error:
            raise Undecided(str(error)) from error
        except GssFailed as error:
            raise Refused(f"the ticket is not good: {error}") from error
        except NoName as error:
            raise Refused(str(error)) from error

    def _begin(self) -> Conversation:
        heard = yield b""
        context = self._jgss.acceptor()
        said = context.accept(heard)
        while not context.is_established:
            said = context.accept((yield said))
        if said:
            yield said
        if not takes_no_layer(context.unwrap((yield context.wrap(NO_LAYER)))):
            raise Refused("the client wants what follows to be signed or sealed")
        name = context.initiator
        if self._rules is not None:
            name = short_name(self._rules, name, self._jgss.default_realm)
        self.identity = Identity(user_principal(name))
        yield b""
