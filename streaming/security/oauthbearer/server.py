"""Finds out who connects with a token of an issuer (RFC 7628; OAuthBearerSaslServer)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import jwt
import orjson
from jwt.types import Options

from streaming.security.identity import Identity, Refused
from streaming.security.oauthbearer.signing_keys import SigningKey, SigningKeys
from streaming.security.principals import user_principal
from streaming.setting_types import LONG_MAX

_FIRST_MESSAGE = re.compile(
    r"n,(a=(?P<for>([^\0=,]|=2C|=3D)+))?,\x01(?P<pairs>([A-Za-z]+=[!-~ \t\r\n]+\x01)*)\x01"
)
_AUTH = re.compile(r"bearer +(?P<token>[-_~+/.a-zA-Z0-9]+=*)", re.IGNORECASE)
_SEPARATOR = "\x01"
_REFUSAL = orjson.dumps({"status": "invalid_token"})
_HEARD_REFUSAL = b"\x01"
_ALGORITHMS = [f"{kind}{bits}" for kind in ("RS", "PS", "ES") for bits in (256, 384, 512)]
"""Those with a public key: with a shared secret, or none, who checks tokens could make them."""
_OPTIONS: Options = {
    "require": ["exp", "iat"],
    "verify_iat": False,
    "verify_sub": False,
    "verify_jti": False,
}
"""Kafka lets a token be issued by a clock that is ahead, and its subject be in another claim."""


@dataclass(frozen=True, slots=True)
class Expected:
    """What a token has to say beside whose it is.

    audience: one of them, any if empty, for who has none; issuer: any if empty; subject_claim:
    where the name is.
    """

    audience: tuple[str, ...]
    issuer: str
    subject_claim: str
    clock_skew_s: int


class TokenValidator:
    """Finds out whose a token is (ValidatorAccessTokenValidator)."""

    def __init__(self, keys: SigningKeys, expected: Expected) -> None:
        self._keys = keys
        self._expected = expected

    async def identity(self, token: str) -> Identity:
        """Return whose it is, and until when; raises Refused and Undecided."""
        try:
            header = jwt.get_unverified_header(token)
        except jwt.PyJWTError as error:
            raise Refused(f"the token is none: {error}") from error
        key = await self._keys.find(header.get("kid"))
        if key is None:
            raise Refused(f"the token is signed with key {header.get('kid')!r}, which is not known")
        if key.algorithm not in (None, header.get("alg")):
            raise Refused(f"the token is signed by {header.get('alg')!r}, with a key for another")
        try:
            claims = self._claims(token, key)
            end_ms = min(int(claims["exp"] * 1000), LONG_MAX)
        except (jwt.PyJWTError, TypeError, ValueError, OverflowError) as error:
            raise Refused(f"the token is not good: {error}") from error
        return Identity(user_principal(self._subject(claims)), end_ms=end_ms)

    def _claims(self, token: str, key: SigningKey) -> dict[str, Any]:
        expected = self._expected
        return jwt.decode(
            token,
            key.public,
            algorithms=_ALGORITHMS,
            audience=expected.audience or None,
            issuer=expected.issuer or None,
            leeway=expected.clock_skew_s,
            options=_OPTIONS,
        )

    def _subject(self, claims: dict[str, Any]) -> str:
        claim = self._expected.subject_claim
        subject = claims.get(claim)
        if not isinstance(subject, str) or not subject.strip():
            raise Refused(f"the token's claim {claim!r} names nobody")
        return subject.strip()


class BearerServer:
    """Takes one token; who is refused hears so in a message, and agrees, as RFC 7628 wants."""

    def __init__(self, validator: TokenValidator) -> None:
        self._validator = validator
        self._refused: Refused | None = None
        self.identity: Identity | None = None

    async def respond(self, token: bytes) -> bytes:
        """Return nothing, or why the token is refused; raises Refused and Undecided."""
        if self._refused is not None:
            raise self._refused if token == _HEARD_REFUSAL else Refused("another token came")
        acting_for, bearer = _first_message(token)
        try:
            identity = await self._validator.identity(bearer)
        except Refused as refused:
            self._refused = refused
            return _REFUSAL
        if acting_for and user_principal(acting_for) != identity.principal:
            raise Refused(f"{identity.principal} wants to act for {acting_for!r}")
        self.identity = identity
        return b""


def _first_message(message: bytes) -> tuple[str, str]:
    """Return for whom a client wants to act, "" for itself, and its token; raises Refused."""
    found = _FIRST_MESSAGE.fullmatch(message.decode("utf-8", "replace"))
    if found is None:
        raise Refused("the client's first message is not one of OAUTHBEARER")
    pairs = dict(pair.split("=", 1) for pair in found["pairs"].split(_SEPARATOR) if pair)
    auth = _AUTH.fullmatch(pairs.get("auth", ""))
    if auth is None:
        raise Refused("the client's first message has no token")
    return (found["for"] or "").replace("=2C", ",").replace("=3D", "="), auth["token"]
