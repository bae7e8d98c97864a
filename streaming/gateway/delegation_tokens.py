"""Delegation tokens: made, renewed, ended and described (KIP-48, KIP-373).

A token is known by its proof to whoever has it, and by its id to everybody.
"""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace

from state.protocol_errors import ProtocolError
from streaming.gateway.calls import Call
from streaming.gateway.ports import StoredTokens
from streaming.security.delegation_tokens import DelegationToken, token_hmac
from streaming.wire.schema_codec import Body

_NEVER_MS = -1
_TOKEN_ID_BYTES = 16
_USER = "User"


@dataclass(frozen=True, slots=True)
class TokenTerms:
    """What the cluster grants: secret_key, "" where there are no tokens; max_lifetime_ms, and
    renewal_ms for each renewal that asks for no other (delegation.token.* of the brokers).
    """

    secret_key: str = field(repr=False)
    max_lifetime_ms: int
    renewal_ms: int


class _Refused(Exception):
    """Nothing comes of a request; the error says why."""

    def __init__(self, error: ProtocolError) -> None:
        super().__init__(error.name)
        self.error = error


class DelegationTokens:
    """Answers the four requests about tokens as any broker does (KafkaApis,
    DelegationTokenManagerZk).
    """

    def __init__(self, terms: TokenTerms, stored: StoredTokens, now_ms: Callable[[], int]) -> None:
        """Take what the cluster grants, where tokens are kept, and the wall clock."""
        self._terms = terms
        self._stored = stored
        self._now_ms = now_ms

    async def create(self, call: Call) -> Body:
        """Make a token for whoever asks, or for the owner that is named."""
        requester = call.client.principal
        owner = owner_of(call.body) or requester
        try:
            token = await self._created(call, owner, requester)
        except (_Refused, OSError) as failure:
            return not_created(_error(failure), owner, requester)
        return {
            "error_code": ProtocolError.NONE,
            **_owned(token),
            "issue_timestamp_ms": token.issued_ms,
            "expiry_timestamp_ms": token.expires_ms,
            "max_timestamp_ms": token.max_ms,
            "token_id": token.token_id,
            "hmac": self._proof(token),
        }

    async def renew(self, call: Call) -> Body:
        """Let a token be good for longer, but not beyond its last end."""
        asked_ms = call.body["renew_period_ms"]
        period_ms = self._terms.renewal_ms if asked_ms < 0 else asked_ms
        return await self._alter(call, period_ms)

    async def expire(self, call: Call) -> Body:
        """Let a token end after a while, or at once."""
        period_ms = call.body["expiry_time_period_ms"]
        return await self._alter(call, None if period_ms < 0 else period_ms)

    async def describe(self, call: Call) -> Body:
        """Return the tokens of some owners, or all; who may see which is judged by rights."""
        named = call.body["owners"]
        owners = None if named is None else set(principals_of(named))
        try:
            self._check(call)
            stored = [] if owners == set() else await self._stored.all()
        except (_Refused, OSError) as failure:
            return {"error_code": _error(failure), "tokens": []}
        return {
            "error_code": ProtocolError.NONE,
            "tokens": [
                self._described(one)
                for one in stored
                if owners is None or not owners.isdisjoint(one.holders)
            ],
        }

    def _check(self, call: Call) -> None:
        """Raise _Refused where there are no tokens, or not for who asks."""
        if not call.client.proven:
            raise _Refused(ProtocolError.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED)
        if not self._terms.secret_key:
            raise _Refused(ProtocolError.DELEGATION_TOKEN_AUTH_DISABLED)

    async def _created(self, call: Call, owner: str, requester: str) -> DelegationToken:
        """Return a new token; raises _Refused, OSError."""
        self._check(call)
        renewers = tuple(principals_of(call.body["renewers"]))
        if any(map(_is_no_user, renewers)):
            raise _Refused(ProtocolError.INVALID_PRINCIPAL_TYPE)
        asked_ms, most_ms = call.body["max_lifetime_ms"], self._terms.max_lifetime_ms
        now_ms = self._now_ms()
        max_ms = now_ms + (most_ms if asked_ms <= 0 else min(asked_ms, most_ms))
        token = DelegationToken(
            secrets.token_urlsafe(_TOKEN_ID_BYTES),
            owner,
            requester,
            renewers,
            now_ms,
            min(max_ms, now_ms + self._terms.renewal_ms),
            max_ms,
        )
        await self._stored.create(token)
        return token

    async def _alter(self, call: Call, period_ms: int | None) -> Body:
        """Let a token end some time from now, None: remove it."""
        try:
            self._check(call)
            end_ms = await self._altered(call, period_ms)
        except (_Refused, OSError) as failure:
            return {"error_code": _error(failure), "expiry_timestamp_ms": _NEVER_MS}
        return {"error_code": ProtocolError.NONE, "expiry_timestamp_ms": end_ms}

    async def _altered(self, call: Call, period_ms: int | None) -> int:
        """Return when the token ends now; raises _Refused, OSError."""
        proof: bytes = call.body["hmac"]
        known = [
            one for one in await self._stored.all() if hmac.compare_digest(self._proof(one), proof)
        ]
        now_ms = self._now_ms()

        def end_ms(token: DelegationToken) -> int:
            return now_ms if period_ms is None else min(token.max_ms, now_ms + period_ms)

        def alter(token: DelegationToken) -> DelegationToken | None:
            if call.client.principal not in token.holders:
                raise _Refused(ProtocolError.DELEGATION_TOKEN_OWNER_MISMATCH)
            if period_ms is None:
                return None
            if token.has_expired(now_ms):
                raise _Refused(ProtocolError.DELEGATION_TOKEN_EXPIRED)
            return replace(token, expires_ms=end_ms(token))

        before = await self._stored.alter(known[0].token_id, alter) if known else None
        if before is None:
            raise _Refused(ProtocolError.DELEGATION_TOKEN_NOT_FOUND)
        return end_ms(before)

    def _proof(self, token: DelegationToken) -> bytes:
        return token_hmac(token.token_id, self._terms.secret_key)

    def _described(self, token: DelegationToken) -> Body:
        return {
            **_owned(token),
            "issue_timestamp": token.issued_ms,
            "expiry_timestamp": token.expires_ms,
            "max_timestamp": token.max_ms,
            "token_id": token.token_id,
            "hmac": self._proof(token),
            "renewers": [_named(one) for one in token.renewers],
        }


def _error(failure: _Refused | OSError) -> ProtocolError:
    return failure.error if isinstance(failure, _Refused) else ProtocolError.UNKNOWN_SERVER_ERROR


def owner_of(body: Body) -> str | None:
    """Return the owner that a request names, if it names one."""
    name = body.get("owner_principal_name")
    return f"{body['owner_principal_type']}:{name}" if name else None


def principals_of(bodies: Iterable[Body]) -> Iterable[str]:
    """Return the principals that bodies name."""
    return (f"{one['principal_type']}:{one['principal_name']}" for one in bodies)


def _is_no_user(principal: str) -> bool:
    return principal.partition(":")[0] != _USER


def _named(principal: str, prefix: str = "") -> Body:
    kind, _, name = principal.partition(":")
    return {f"{prefix}principal_type": kind, f"{prefix}principal_name": name}


def _owned(token: DelegationToken) -> Body:
    return _named(token.owner) | _named(token.requester, "token_requester_")


def not_created(error: ProtocolError, owner: str, requester: str) -> Body:
    """Return the answer to a request for a token that was not made
    (CreateDelegationTokenResponse.prepareResponse).
    """
    return {
        "error_code": error,
        **_named(owner),
        **_named(requester, "token_requester_"),
        "issue_timestamp_ms": _NEVER_MS,
        "expiry_timestamp_ms": _NEVER_MS,
        "max_timestamp_ms": _NEVER_MS,
        "token_id": "",
        "hmac": b"",
    }
