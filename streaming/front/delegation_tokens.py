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
from streaming.security.delegation_tokens import DelegationToken, token_credential, token_hmac
from streaming.security.sasl_server import Identity, TokenLogin
from streaming.settings import Settings
from streaming.zk.client import ZkSession
from streaming.zk.errors import NodeMissing, VersionMismatch, ZooKeeperError
from streaming.zk.opening import secret_acl, session_of
from streaming.zk.reader import ZkReader
from streaming.zk.tokens import read_tokens
from streaming.zk.znodes.delegation_tokens import (
    TOKEN_CHANGES_PATH,
    TOKENS_PATH,
    parse_token,
    token_bytes,
    token_change_bytes,
    token_change_prefix,
    token_path,
)

logger = logging.getLogger(__name__)

T = TypeVar("T")

_ATTEMPTS = 5
_TOKEN_ID = re.compile(r"[A-Za-z0-9_-]+")
"""Base 64 for URLs (CoreUtils.generateUuidAsBase64)."""


def ignored_tokens(session: ZkReader, settings: Settings) -> str | None:
    """Return what to tell when brokers seem to have delegation tokens and this node has no key."""
    if settings.has_delegation_tokens or not session.children(TOKENS_PATH):
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
        credential = await _on_thread(lambda: token_credential(mechanism, proof))
        return TokenLogin(credential, Identity(token.owner, by_token=True, end_ms=token.end_ms))

    async def all(self) -> Sequence[DelegationToken]:
        """Return those that can be read; raises OSError when none can."""
        try:
            return await self._read.reading(_all_tokens)
        except ZooKeeperError as error:
            raise OSError(f"delegation tokens cannot be read: {error}") from error

    async def create(self, token: DelegationToken) -> None:
        """Keep a new token, and have brokers read it. Raises OSError when it cannot be done."""
        await _on_thread(lambda: self._writing(lambda session: self._create(session, token)))

    async def alter(
        self, token_id: str, alter: Callable[[DelegationToken], DelegationToken | None]
    ) -> DelegationToken | None:
        """Replace a token by what is made of it as it is now, or remove it (None), and have brokers
        read it; return the token as it was, None when there is none.

        What `alter` raises is raised. Raises OSError when it cannot be done.
        """

        def work(session: ZkSession) -> DelegationToken | None:
            for _ in range(_ATTEMPTS):
                try:
                    return _try_to_alter(session, token_id, alter)
                except VersionMismatch:
                    continue  # somebody else was quicker
            raise OSError(f"delegation token {token_id} changes too often")

        return await _on_thread(lambda: self._writing(work))

    async def close(self) -> None:
        """End the session that reads."""
        await self._read.close()

    def _create(self, session: ZkSession, token: DelegationToken) -> None:
        acl = secret_acl(self._settings)
        session.ensure_path(TOKENS_PATH, acl)
        session.create(token_path(token.token_id), token_bytes(token), acl=acl)
        session.ensure_path(TOKEN_CHANGES_PATH)
        _tell(session, token.token_id)

    def _writing(self, work: Callable[[ZkSession], T]) -> T:
        session = session_of(self._settings)
        try:
            session.connect(self._settings.zookeeper_connection_timeout_ms)
            return work(session)
        except (ZooKeeperError, ValueError) as error:
            logger.warning("a delegation token was not changed: %s", error)
            raise OSError(f"the delegation token was not changed: {error}") from error
        finally:
            session.close()


def _try_to_alter(
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
    _tell(session, token_id)
    return before


def _tell(session: ZkSession, token_id: str) -> None:
    """Have brokers read a token again (TokenChangedNotificationHandler)."""
    session.create_sequential(token_change_prefix(), token_change_bytes(token_id))


def _token(session: ZkReader, token_id: str) -> DelegationToken | None:
    if not _TOKEN_ID.fullmatch(token_id):  # a stranger says it, and might name another path
        return None
    znode = session.get(token_path(token_id))
    return None if znode is None else parse_token(znode.data)


def _all_tokens(session: ZkReader) -> list[DelegationToken]:
    def pass_over(path: str, error: ValueError) -> None:
        logger.warning("%s is passed over: %s", path, error)

    return [token for token, _ in read_tokens(session, pass_over)]


async def _on_thread(work: Callable[[], T]) -> T:
    return await asyncio.get_running_loop().run_in_executor(None, work)
