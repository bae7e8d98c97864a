"""Knows the keys that an issuer signs tokens with (RFC 7517; RefreshingHttpsJwks)."""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import jwt
import orjson

from streaming.keyfiles.renewed import RenewedContext
from streaming.security.identity import Undecided
from streaming.tokens.issuer import IssuerFailed, fetched

logger = logging.getLogger(__name__)

_ASKED_AGAIN_AFTER_S = 1.0
"""Strangers can have tokens signed with ever other keys, and must not have us ask all the time."""


@dataclass(frozen=True, slots=True)
class SigningKey:
    """A public key; algorithm: the only one that it is for, None when its type says which."""

    id: str | None
    algorithm: str | None
    public: Any


class SigningKeys:
    """Reads the keys when the first token comes, when a token comes that another one has signed,
    and behind the back of who comes when they have become old; used on one event loop.
    """

    def __init__(self, url: str, refresh_ms: int, trusted: RenewedContext) -> None:
        """url: sasl.oauthbearer.jwks.endpoint.url; trusted: what HTTPS is spoken with."""
        self._url = url
        self._refresh_s = refresh_ms / 1000
        self._trusted = trusted
        self._lock = asyncio.Lock()
        self._keys: tuple[SigningKey, ...] = ()
        self._failure = ""
        self._asked_s = -math.inf
        self._refresh: asyncio.Task[None] | None = None

    async def find(self, key_id: str | None) -> SigningKey | None:
        """Return the key of that id, or without one the only key; None if there is none.

        Raises Undecided when it is not known, and keys cannot be read now.
        """
        came_s = time.monotonic()
        found = self._found(key_id)
        if found is None:
            await self._read_since(came_s)
            found = self._found(key_id)
            if found is None and self._failure:
                raise Undecided(f"keys that tokens are signed with are not known: {self._failure}")
        elif came_s >= self._asked_s + self._refresh_s and not self._lock.locked():
            self._refresh = asyncio.create_task(self._read_since(came_s))
        return found

    def _found(self, key_id: str | None) -> SigningKey | None:
        if key_id is None:
            return self._keys[0] if len(self._keys) == 1 else None
        return next((key for key in self._keys if key.id == key_id), None)

    async def _read_since(self, moment_s: float) -> None:
        """Read the keys, unless they are as new as that: who comes meanwhile waits for the same
        answer.
        """
        async with self._lock:
            if self._asked_s >= moment_s:
                return
            await asyncio.sleep(self._asked_s + _ASKED_AGAIN_AFTER_S - time.monotonic())
            self._asked_s = time.monotonic()
            before, self._failure = self._failure, ""
            try:
                content = await asyncio.to_thread(fetched, self._url, self._trusted.current())
                self._keys = tuple(_signing_keys(_listed(self._url, content)))
            except IssuerFailed as error:
                self._failure = str(error)
            if self._failure and not before:
                logger.warning("Keys that tokens are signed with: %s", self._failure)
            elif before and not self._failure:
                logger.info("Keys that tokens are signed with: read again from %s", self._url)


def _listed(url: str, content: bytes) -> list[Any]:
    try:
        keys = orjson.loads(content)["keys"]
    except (ValueError, KeyError, TypeError) as error:
        raise IssuerFailed(f"{url} answered without a list of keys") from error
    if not isinstance(keys, list):
        raise IssuerFailed(f"{url} answered without a list of keys")
    return keys


def _signing_keys(listed: Iterable[Any]) -> Iterable[SigningKey]:
    """Return those that signatures can be verified with; an issuer may have others."""
    for one in listed:
        try:
            key = jwt.PyJWK(one)
        except (jwt.PyJWTError, AttributeError, TypeError, ValueError):
            continue
        if key.public_key_use in (None, "sig"):
            yield SigningKey(key.key_id, one.get("alg"), key.key)
