"""SCRAM with the library's exchange and Kafka's credentials (RFC 5802; KIP-84)."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
from collections.abc import Mapping
from dataclasses import dataclass, field

DIGESTS = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}
"""The mechanisms that Kafka has, and their hash functions."""

MECHANISMS: Mapping[int, str] = {1: "SCRAM-SHA-256", 2: "SCRAM-SHA-512"}
"""By the number that the protocol has for them (ScramMechanism, KIP-554)."""

_PARTS = ("salt", "stored_key", "server_key", "iterations")


@dataclass(frozen=True, slots=True)
class ScramCredential:
    """What a server has to know of a user to check its password."""

    salt: bytes = field(repr=False)
    stored_key: bytes = field(repr=False)
    server_key: bytes = field(repr=False)
    iterations: int


def credential_of_password(
    mechanism: str, salted_password: bytes, salt: bytes, iterations: int
) -> ScramCredential:
    """Return what follows from a password that was salted already."""
    digest = DIGESTS[mechanism]
    client_key = hmac.digest(salted_password, b"Client Key", digest)
    return ScramCredential(
        salt,
        hashlib.new(digest, client_key).digest(),
        hmac.digest(salted_password, b"Server Key", digest),
        iterations,
    )


def credential_text(credential: ScramCredential) -> str:
    """Return a credential as it is kept in ZooKeeper (ScramCredentialUtils)."""
    values = (credential.salt, credential.stored_key, credential.server_key)
    texts = (base64.b64encode(value).decode() for value in values)
    return ",".join(
        f"{name}={value}"
        for name, value in zip(_PARTS, (*texts, credential.iterations), strict=True)
    )


def parse_credential(text: str) -> ScramCredential:
    """Return what `credential_text`, or a broker, wrote; raises ValueError."""
    found = dict(part.split("=", 1) for part in text.split(",") if "=" in part)
    if sorted(found) != sorted(_PARTS):
        raise ValueError(f"a credential has {', '.join(_PARTS)}, and not {', '.join(found)}")
    try:
        salt, stored_key, server_key = (
            base64.b64decode(found[part], validate=True) for part in _PARTS[:3]
        )
    except binascii.Error as error:
        raise ValueError(f"a credential is not in base 64 ({error})") from error
    return ScramCredential(salt, stored_key, server_key, int(found["iterations"]))
