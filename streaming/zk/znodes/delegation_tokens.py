"""Delegation tokens as brokers keep them (DelegationTokenManagerZk, DelegationTokenInfoZNode)."""

from __future__ import annotations

from typing import Any

import orjson

from state.json_values import int64, text
from streaming.security.delegation_tokens import DelegationToken
from streaming.zk.znodes.paths import desanitized, sanitized

TOKENS_PATH = "/delegation_token/tokens"
"""Brokers that have a key for tokens create it when they start."""

TOKEN_CHANGES_PATH = "/delegation_token/token_changes"
"""Whoever changes a token leaves its id in a notification there, for brokers to read it again."""

_TOKEN_CHANGE_PREFIX = "token_change_"
_SINCE_3_3 = 3
_BEFORE = 1
"""The only version that brokers before 3.3 read: it has no requester beside the owner."""


def token_path(token_id: str) -> str:
    return f"{TOKENS_PATH}/{token_id}"


def token_change_prefix() -> str:
    """What the sequence number of a notification is put behind."""
    return f"{TOKEN_CHANGES_PATH}/{_TOKEN_CHANGE_PREFIX}"


def token_change_bytes(token_id: str) -> bytes:
    return token_id.encode()


def token_bytes(token: DelegationToken) -> bytes:
    """Write a token in the oldest version that says all of it."""
    own = token.requester == token.owner
    return orjson.dumps(
        {
            "version": _BEFORE if own else _SINCE_3_3,
            "owner": sanitized(token.owner),
            **({} if own else {"tokenRequester": sanitized(token.requester)}),
            "renewers": [sanitized(one) for one in token.renewers],
            "issueTimestamp": token.issued_ms,
            "maxTimestamp": token.max_ms,
            "expiryTimestamp": token.expires_ms,
            "tokenId": token.token_id,
        }
    )


def parse_token(data: bytes) -> DelegationToken:
    """Read a token; raises ValueError naming what is wrong."""
    try:
        found: dict[str, Any] = orjson.loads(data)
        version, owner = int64(found["version"]), _principal(found["owner"])
        if not _BEFORE <= version <= _SINCE_3_3:
            raise ValueError(f"version {version} is not known")
        return DelegationToken(
            token_id=text(found["tokenId"]),
            owner=owner,
            requester=_principal(found["tokenRequester"]) if version >= _SINCE_3_3 else owner,
            renewers=tuple(map(_principal, found["renewers"])),
            issued_ms=int64(found["issueTimestamp"]),
            expires_ms=int64(found["expiryTimestamp"]),
            max_ms=int64(found["maxTimestamp"]),
        )
    except (ValueError, KeyError, TypeError, OverflowError) as error:
        raise ValueError(f"broken znode: {error!r} in {data[:200]!r}") from error


def _principal(value: object) -> str:
    """Return who a name of a znode stands for (SecurityUtils.parseKafkaPrincipal)."""
    principal = desanitized(text(value))
    kind, colon, name = principal.partition(":")
    if not (kind and colon and name):
        raise ValueError(f"{principal!r} is no principal")
    return principal
