"""Delegation tokens as brokers keep them in ZooKeeper: who logs in with one, and what becomes of
them (KIP-48).
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Callable, Sequence
from typing import TypeVar

from streaming.front.last_read import LastRead
from streaming.front.short_session import changed
from streaming.security.delegation_tokens import DelegationToken, token_credential, token_hmac
from streaming.security.identity import Identity
from streaming.security.sasl_server import TokenLogin
from streaming.settings import Settings
from streaming.zk.client import ZkSession
from streaming.zk.errors import NodeMissing, RequestFailed, ZooKeeperError
from streaming.zk.opening import secret_acl
from streaming.zk.reader import ZkReader
from streaming.zk.tokens import read_tokens, tell_of_token
from streaming.zk.znodes.delegation_tokens import (
    TOKEN_CHANGES_PATH,
    TOKENS_PATH,
    parse_token,
    token_bytes,
    token_path,
)

logger = logging.getLogger(__name__)

T = TypeVar("T")

_TOKEN_ID = re.compile(r"[A-Za-z0-9_-]+")
"""Base 64 for URLs (CoreUtils.generateUuidAsBase64)."""


def ignored_tokens(session: ZkReader, settings: Settings) -> str | None:
    """Return what to tell when brokers seem to have delegation tokens and this node has no key."""
    try:
        if settings.has_delegation_tokens or not session.children(TOKENS_PATH):
            return None
    except RequestFailed:  # who may not know whether there are some controls all the same
        return None
    return (
        f"delegation tokens are below {TOKENS_PATH}, and nobody can log in here with one: set"
        " delegation.token.secret.key as brokers have it"
    )


class ZkDelegationTokens:
    """The gateway's StoredTokens, and where its listeners look tokens up. While ZooKeeper is away,
    a token is what was read of it last; brokers keep it in memory too.

    What is written goes through short sessions: it is seldom.
    """

    def __init__(self, settings: Settings) -> None:
        """Take where ZooKeeper is, and the cluster's key; nothing is opened yet."""
        self._settings = settings
        self._secret_key = settings.delegation_token_secret_key.get_secret_value()
        self._read = LastRead(settings, "delegation-tokens", _token)

    async def find(self, mechanism: str, token_id: str) -> TokenLogin | None:
        """Return by what a token has to be proved and who it stands for, None when there is none;
        raises Undecided.
        """
        token = await self._read.find(token_id)
        if token is None:
            return None
        proof = token_hmac(token_id, self._secret_key)
        loop = asyncio.get_running_loop()
        credential = await loop.run_in_executor(None, token_credential, mechanism, proof)
        return TokenLogin(credential, Identity(token.owner, by_token=True, end_ms=token.end_ms))

    async def all(self) -> Sequence[DelegationToken]:
        """Return those that can be read; raises OSError when none can."""
        try:
            return await self._read.reading(_all_tokens)
        except ZooKeeperError as error:
            raise OSError(f"delegation tokens cannot be read: {error}") from error

    async def create(self, token: DelegationToken) -> None:
        """Keep a new token, and have brokers read it. Raises OSError when it cannot be done."""
        await self._changed(token.token_id, lambda session: self._create(session, token))

    async def alter(
        self, token_id: str, alter: Callable[[DelegationToken], DelegationToken | None]
    ) -> DelegationToken | None:
        """Replace a token by what is made of it as it is now, or remove it (None), and have brokers
        read it; return the token as it was, None when there is none.

        What `alter` raises is raised. Raises OSError when it cannot be done.
        """

        return await self._changed(token_id, lambda session: _alter(session, token_id, alter))

    async def close(self) -> None:
        """End the session that reads."""
        await self._read.close()

    def _create(self, session: ZkSession, token: DelegationToken) -> None:
        acl = secret_acl(self._settings)
        session.ensure_path(TOKENS_PATH, acl)
        session.create(token_path(token.token_id), token_bytes(token), acl=acl)
        session.ensure_path(TOKEN_CHANGES_PATH)
        tell_of_token(session, token.token_id)

    async def _changed(self, token_id: str, change: Callable[[ZkSession], T]) -> T:
        try:
            return await changed(self._settings, f"delegation token {token_id}", change)
        except OSError as error:  # its client hears no reason
            logger.warning("%s", error)
            raise


def _alter(
    session: ZkSession,
    token_id: str,
    alter: Callable[[DelegationToken], DelegationToken | None],
) -> DelegationToken | None:
    path = token_path(token_id)
    znode = session.get(path)
    if znode is None:
        return None
    before = parse_token(znode.data)
    after = alter(before)
    try:
        if after is None:
            session.delete(path, znode.version)
        else:
            session.set(path, token_bytes(after), znode.version)
    except NodeMissing:
        return None
    tell_of_token(session, token_id)
    return before


def _token(session: ZkReader, token_id: str) -> DelegationToken | None:
    if not _TOKEN_ID.fullmatch(token_id):  # a stranger says it, and might name another path
        return None
    znode = session.get(token_path(token_id))
    return None if znode is None else parse_token(znode.data)


def _all_tokens(session: ZkReader) -> list[DelegationToken]:
    return [token for token, _ in read_tokens(session)]
