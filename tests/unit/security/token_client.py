"""A client that logs in with a delegation token, as Java's do (ScramSaslClient, KIP-48)."""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
from dataclasses import dataclass
from typing import Any

from streaming.security.scram import DIGESTS
from streaming.wire.apis import ApiKey
from tests.unit.gateway.support import Client


@dataclass(frozen=True)
class Token:
    """What whoever has a token knows."""

    token_id: str
    proof: bytes
    mechanism: str = "SCRAM-SHA-256"


async def log_in(client: Client, token: Token) -> dict[str, Any]:
    """Return the last answer to a login, refused or not."""
    await client.ask(ApiKey.SASL_HANDSHAKE, 1, {"mechanism": token.mechanism})
    bare = f"n={token.token_id},r={secrets.token_hex(8)},tokenauth=true"
    first = await said(client, f"n,,{bare}")
    if first["error_code"]:
        return first
    text = first["auth_bytes"].decode()
    parts = dict(part.split("=", 1) for part in text.split(","))
    final = f"c=biws,r={parts['r']}"
    proof = _proof(token, parts, ",".join((bare, text, final)))
    return await said(client, f"{final},p={base64.b64encode(proof).decode()}")


async def said(client: Client, message: str) -> dict[str, Any]:
    return await client.ask(ApiKey.SASL_AUTHENTICATE, 2, {"auth_bytes": message.encode()})


def _proof(token: Token, parts: dict[str, str], signed: str) -> bytes:
    digest = DIGESTS[token.mechanism]
    salt, iterations = base64.b64decode(parts["s"]), int(parts["i"])
    password = base64.b64encode(token.proof)
    salted = hashlib.pbkdf2_hmac(digest, password, salt, iterations)
    key = hmac.digest(salted, b"Client Key", digest)
    signature = hmac.digest(hashlib.new(digest, key).digest(), signed.encode(), digest)
    return bytes(a ^ b for a, b in zip(key, signature, strict=True))
