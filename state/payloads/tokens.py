"""What becomes of delegation tokens (KIP-48)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from state.json_values import int32, int64, objects, text


@dataclass(frozen=True, slots=True)
class ExpiredToken:
    """A token that nobody may log in with any more; zk_version: of its znode as it was read."""

    token_id: str
    owner: str
    expired_at_ms: int
    zk_version: int


@dataclass(frozen=True, slots=True)
class DelegationTokensExpired:
    """Tokens that were found with an end in the past."""

    tokens: tuple[ExpiredToken, ...]


def delegation_tokens_expired(body: dict[str, Any]) -> DelegationTokensExpired:
    """Read delegation_tokens_expired."""
    return DelegationTokensExpired(
        tuple(
            ExpiredToken(
                token_id=text(one["token_id"]),
                owner=text(one["owner"]),
                expired_at_ms=int64(one["expired_at_ms"]),
                zk_version=int32(one["zk_version"]),
            )
            for one in objects(body["tokens"])
        )
    )
