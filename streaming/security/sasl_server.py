"""Finds out who connects to us (RFC 4616 and 5802; PlainSaslServer and ScramSaslServer)."""

from __future__ import annotations

import hmac
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from scramp import ScramException, ScramMechanism

from streaming.security.scram import ScramCredential
from streaming.settings import PLAIN

_PLAIN_PARTS = 3
_SCRAM_USER = re.compile(r"n,,n=([^,]{1,1000}),")
"""A stranger's name becomes a path of ZooKeeper, which ends the sessions of who sends long ones."""

CredentialOf: TypeAlias = Callable[[str, str], Awaitable[ScramCredential | None]]
"""Gets a mechanism and a user, returns the credential, None if there is none; raises Undecided."""


class Refused(Exception):
    """Somebody is not who it says it is; the message is for our log only."""


class Undecided(Exception):
    """It cannot be found out now; the message says why."""


class SaslServer(Protocol):
    """One client's side of whom is being found out; user is known once it is complete."""

    user: str
    complete: bool

    async def respond(self, token: bytes) -> bytes:
        """Return the answer to what the client said; raises Refused and Undecided."""
        ...


@dataclass(frozen=True, slots=True)
class Sasl:
    """How clients of a listener say who they are: mechanisms, who may come in by PLAIN with which
    password, and where credentials for SCRAM are.
    """

    mechanisms: tuple[str, ...]
    plain_users: Mapping[str, str]
    credential_of: CredentialOf

    def server(self, mechanism: str) -> SaslServer:
        """Return what finds out who one client is, by one of the mechanisms."""
        if mechanism == PLAIN:
            return PlainServer(self.plain_users)
        return ScramServer(mechanism, self.credential_of)


class PlainServer:
    """Knows everybody's password."""

    def __init__(self, users: Mapping[str, str]) -> None:
        self._users = users
        self.user = ""
        self.complete = False

    async def respond(self, token: bytes) -> bytes:
        """Return nothing: there is one message; raises Refused."""
        parts = token.split(b"\0")
        if len(parts) != _PLAIN_PARTS:
            raise Refused(f"a message of PLAIN has {_PLAIN_PARTS} parts, this one {len(parts)}")
        acting_for, user, password = parts
        name = user.decode("utf-8", "replace")
        known = self._users.get(name)
        # Compared for a user there is not, too: time should say little of who there is.
        right = hmac.compare_digest(password, (known or "").encode())
        if not (name and known and right):
            raise Refused(f"user {name!r} has no such password")
        if acting_for not in (b"", user):
            raise Refused(f"user {name!r} wants to act for {acting_for!r}")
        self.user, self.complete = name, True
        return b""


class ScramServer:
    """Knows what follows from everybody's password."""

    def __init__(self, mechanism: str, credential_of: CredentialOf) -> None:
        self._mechanism = mechanism
        self._credential_of = credential_of
        self._answer: Callable[[str], str] | None = None
        self.user = ""
        self.complete = False

    async def respond(self, token: bytes) -> bytes:
        """Return the server's first message, then its last; raises Refused and Undecided."""
        try:
            text = token.decode()
            if self._answer is None:
                return (await self._first(text)).encode()
            final = self._answer(text)
        except (ScramException, UnicodeDecodeError) as error:
            raise Refused(f"user {self.user!r}: {error}") from error
        self.complete = True
        return final.encode()

    async def _first(self, message: str) -> str:
        found = _SCRAM_USER.match(message)
        if found is None:
            raise Refused("the client's first message names no user, or one with a long name")
        self.user = found[1].replace("=2C", ",").replace("=3D", "=")
        credential = await self._credential_of(self._mechanism, self.user)
        if credential is None:
            raise Refused(f"user {self.user!r} has no credential for {self._mechanism}")
        known = (
            credential.salt,
            credential.stored_key,
            credential.server_key,
            credential.iterations,
        )
        server = ScramMechanism(self._mechanism).make_server(lambda _: known)
        server.set_client_first(message)

        def last(client_final: str) -> str:
            server.set_client_final(client_final)
            return str(server.get_server_final())

        self._answer = last
        return str(server.get_server_first())
