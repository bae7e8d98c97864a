"""Finds out who connects to us (RFC 4616 and 5802; PlainSaslServer and ScramSaslServer)."""

from __future__ import annotations

import hmac
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from scramp import ScramException, ScramMechanism

from streaming.security.identity import Identity, Refused, SaslServer
from streaming.security.principals import user_principal
from streaming.security.scram import ScramCredential
from streaming.setting_types import PLAIN

_PLAIN_PARTS = 3
_GS2_HEADER = "n,,"
_SCRAM_USER = re.compile(rf"{_GS2_HEADER}n=([^,]{{1,1000}}),")
"""A stranger's name becomes a path of ZooKeeper, which ends the sessions of who sends long ones."""

_BY_TOKEN = re.compile(r",tokenauth=true(,|$)", re.IGNORECASE)
"""The extension by which a client says that its name is a token's id (KIP-48, ScramExtensions)."""

CredentialOf: TypeAlias = Callable[[str, str], Awaitable[ScramCredential | None]]
"""Gets a mechanism and a user, returns the credential, None if there is none; raises Undecided."""


@dataclass(frozen=True, slots=True)
class TokenLogin:
    """What a delegation token has to be proved by, and who it then stands for."""

    credential: ScramCredential
    identity: Identity


TokenOf: TypeAlias = Callable[[str, str], Awaitable[TokenLogin | None]]
"""Gets a mechanism and a token's id, returns None if there is none; raises Undecided."""


@dataclass(frozen=True, slots=True)
class Sasl:
    """How clients of a listener say who they are: mechanisms, who may come in by PLAIN with which
    password, and where credentials for SCRAM are.

    token_of: where delegation tokens are, None where they are not taken. session_max_ms: after how
    long they have to say it again (connections.max.reauth.ms), 0 for never. others: by mechanism,
    what returns what finds out who one client is, where that takes more.
    """

    mechanisms: tuple[str, ...]
    plain_users: Mapping[str, str]
    credential_of: CredentialOf
    token_of: TokenOf | None = None
    session_max_ms: int = 0
    others: Mapping[str, Callable[[], SaslServer]] = field(default_factory=dict)

    def server(self, mechanism: str) -> SaslServer:
        """Return what finds out who one client is, by one of the mechanisms."""
        if mechanism in self.others:
            return self.others[mechanism]()
        if mechanism == PLAIN:
            return PlainServer(self.plain_users)
        return ScramServer(mechanism, self.credential_of, self.token_of)

    def session_ms(self, identity: Identity, now_ms: int) -> int | None:
        """Return how long a session lasts that begins now, None for ever
        (SaslServerAuthenticator.ReauthInfo).
        """
        ends = [] if identity.end_ms is None else [identity.end_ms - now_ms]
        if self.session_max_ms:
            ends.append(self.session_max_ms)
        return max(min(ends), 0) if ends else None


class PlainServer:
    """Knows everybody's password."""

    def __init__(self, users: Mapping[str, str]) -> None:
        self._users = users
        self.identity: Identity | None = None

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
        self.identity = Identity(user_principal(name))
        return b""


class ScramServer:
    """Knows what follows from everybody's password, and from each delegation token."""

    def __init__(
        self, mechanism: str, credential_of: CredentialOf, token_of: TokenOf | None = None
    ) -> None:
        self._mechanism = mechanism
        self._credential_of = credential_of
        self._token_of = token_of
        self._answer: Callable[[str], str] | None = None
        self._named = ""
        self._claimed: Identity | None = None
        self.identity: Identity | None = None

    async def respond(self, token: bytes) -> bytes:
        """Return the server's first message, then its last; raises Refused and Undecided."""
        try:
            text = token.decode()
            if self._answer is None:
                return (await self._first(text)).encode()
            final = self._answer(text)
        except (ScramException, UnicodeDecodeError) as error:
            raise Refused(f"{self._named}: {error}") from error
        self.identity = self._claimed
        return final.encode()

    async def _first(self, message: str) -> str:
        found = _SCRAM_USER.match(message)
        if found is None:
            raise Refused("the client's first message names no user, or one with a long name")
        name = found[1].replace("=2C", ",").replace("=3D", "=")
        credential, self._claimed = await self._known(
            name, by_token=bool(_BY_TOKEN.search(message))
        )
        known = (
            credential.salt,
            credential.stored_key,
            credential.server_key,
            credential.iterations,
        )
        server = ScramMechanism(self._mechanism).make_server(lambda _: known)
        server.set_client_first(_BY_TOKEN.sub(r"\1", message))
        # The library knows attributes of one letter alone, and what is signed has all.
        server.client_first_bare = message.removeprefix(_GS2_HEADER)

        def last(client_final: str) -> str:
            server.set_client_final(client_final)
            return str(server.get_server_final())

        self._answer = last
        return str(server.get_server_first())

    async def _known(self, name: str, *, by_token: bool) -> tuple[ScramCredential, Identity]:
        """Return by what somebody has to prove to be who; raises Refused and Undecided."""
        if not by_token:
            self._named = f"user {name!r}"
            credential = await self._credential_of(self._mechanism, name)
            if credential is None:
                raise Refused(f"{self._named} has no credential for {self._mechanism}")
            return credential, Identity(user_principal(name))
        self._named = f"delegation token {name!r}"
        if self._token_of is None:
            raise Refused(f"{self._named} comes where delegation.token.secret.key is empty")
        login = await self._token_of(self._mechanism, name)
        if login is None:
            raise Refused(f"there is no {self._named}")
        return login.credential, login.identity
