"""Delegation tokens: who may log in with one, until when, and by which proof (KIP-48)."""

from __future__ import annotations

import base64
import functools
import hashlib
import hmac
import secrets
from dataclasses import dataclass

from streaming.security.scram import DIGESTS, ScramCredential, credential_of_password

_ITERATIONS = 4096
_SALT_BYTES = 16
_KEPT_CREDENTIALS = 10_000


@dataclass(frozen=True, slots=True)
class DelegationToken:
    """What brokers keep of a token; the proof that goes with it follows from its id and their key.

    owner, requester, renewers: principals such as User:alice. issued_ms, expires_ms, max_ms: when
    it was made, until when it is good unless it is renewed, and until when it can be renewed.
    """

    token_id: str
    owner: str
    requester: str
    renewers: tuple[str, ...]
    issued_ms: int
    expires_ms: int
    max_ms: int

    @property
    def holders(self) -> tuple[str, ...]:
        """Who may renew and end it, and is told of it."""
        return self.owner, *self.renewers

    @property
    def end_ms(self) -> int:
        """When it ends as things are."""
        return min(self.expires_ms, self.max_ms)

    def has_expired(self, now_ms: int) -> bool:
        """Return whether nobody may log in with it any more."""
        return self.end_ms < now_ms


def token_hmac(token_id: str, secret_key: str) -> bytes:
    """Return the proof that whoever asks for a token gets with it
    (DelegationTokenManager.createHmac); secret_key: the cluster's.
    """
    return hmac.digest(secret_key.encode(), token_id.encode(), "sha512")


@functools.lru_cache(_KEPT_CREDENTIALS)
def token_credential(mechanism: str, proof: bytes) -> ScramCredential:
    """Return by what a token is known when somebody logs in with it: its proof in base 64 is the
    password. It takes milliseconds, and is the same for each login.
    """
    salt = secrets.token_bytes(_SALT_BYTES)
    password = base64.b64encode(proof)
    salted = hashlib.pbkdf2_hmac(DIGESTS[mechanism], password, salt, _ITERATIONS)
    return credential_of_password(mechanism, salted, salt, _ITERATIONS)
