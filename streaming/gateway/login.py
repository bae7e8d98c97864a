"""A connection to a listener with SASL until its client has said who it is, and when it has to say
it again (KIP-43, KIP-152, KIP-368).
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable
from enum import Enum

from state.protocol_errors import ProtocolError
from streaming.gateway.calls import (
    Answer,
    BoundListener,
    Call,
    HangUp,
    NotAuthenticated,
    NotReady,
    Served,
    shortened,
)
from streaming.process.wall_clock import wall_clock_ms
from streaming.security.identity import Identity, Refused, SaslServer, Undecided
from streaming.security.sasl_server import Sasl
from streaming.wire.apis import ApiKey
from streaming.wire.passing import request_prefix
from streaming.wire.requests import Request, decode_request
from streaming.wire.responses import encode_response
from streaming.wire.schema_codec import Body

_REQUEST_MAX_BYTES = 512 * 1024
"""Kafka's default of sasl.server.max.receive.size."""
_FAILURE_DELAY_S = 0.1
"""Kafka's default of connection.failed.authentication.delay.ms: passwords are not tried quickly."""
_SAID_AGAIN_AFTER_S = 1.0
"""How seldom a client may say again who it is (KafkaChannel.maybeBeginServerReauthentication)."""


class _Stage(Enum):
    """How far a client has come."""

    HANDSHAKE = "handshake"
    TOKENS = "tokens"
    BARE_TOKENS = "bare tokens"  # after version 0 of SaslHandshake
    KNOWN = "known"


_TAKEN = {
    _Stage.HANDSHAKE: frozenset({ApiKey.API_VERSIONS, ApiKey.SASL_HANDSHAKE}),
    _Stage.TOKENS: frozenset({ApiKey.SASL_AUTHENTICATE}),
}
"""What a client may ask before it is known (SaslServerAuthenticator)."""


class Login:
    """Has the place of what answers one connection, and lets requests through to it then, as long
    as the session lasts: a client may say again in time who it is, and has to be the same.
    """

    def __init__(
        self, answering: Served, sasl: Sasl, serve: Callable[[str, Identity], Served]
    ) -> None:
        """Take what answers ApiVersions, how clients say who they are, and what returns what
        answers one who came by a mechanism.
        """
        self._answering = answering
        self._sasl = sasl
        self._serve = serve
        self._stage = _Stage.HANDSHAKE
        self._server: SaslServer | None = None
        self._mechanism = ""
        self._identity: Identity | None = None
        self._end_s = math.inf  # of the session, by the monotonic clock
        self._again_from_s = 0.0

    @property
    def listener(self) -> BoundListener:
        """Where requests come in."""
        return self._answering.listener

    def largest_bytes(self, configured_bytes: int) -> int:
        """Return how large a request may be: small until it is known whose it is."""
        if self._stage is _Stage.KNOWN:
            return configured_bytes
        return min(configured_bytes, _REQUEST_MAX_BYTES)

    def at_once(self, api_key: int, request_frame: bytes) -> bytes | None:
        """Answer as `Answering` who is known."""
        if self._stage is not _Stage.KNOWN or self._is_over():
            return None
        return self._answering.at_once(api_key, request_frame)

    def try_answer(
        self, api_key: int, request_frame: bytes, client_host: str, answer: Answer
    ) -> bool:
        """Answer as `Answering` who is known."""
        if self._stage is not _Stage.KNOWN or self._is_over():
            return False
        return self._answering.try_answer(api_key, request_frame, client_host, answer)

    async def answer(self, request_frame: bytes) -> bytes:
        """Answer who is known, and others what they may ask; raises as `Answering`, and
        NotAuthenticated.
        """
        if self._stage is _Stage.BARE_TOKENS:
            return (await self._heard(request_frame))[0]
        prefix = request_prefix(request_frame)
        if self._stage is _Stage.KNOWN:
            if not self._says_it_again(prefix.api_key):
                if self._is_over():
                    raise HangUp("the session is over, and the client has not logged in again")
                return await self._answering.answer(request_frame)
            self._stage = _Stage.HANDSHAKE
        if prefix.api_key not in _TAKEN[self._stage]:
            raise NotAuthenticated(f"API key {prefix.api_key} was asked before who asks was known")
        if prefix.api_key == ApiKey.API_VERSIONS:
            return await self._answering.answer(request_frame)
        request = decode_request(request_frame, _TAKEN[self._stage])
        if prefix.api_key == ApiKey.SASL_HANDSHAKE:
            return await self._begin(request)
        return await self._go_on(request)

    def _is_over(self) -> bool:
        return time.monotonic() >= self._end_s

    def _says_it_again(self, api_key: int) -> bool:
        """Return whether a request begins another login, where sessions end."""
        now_s = time.monotonic()
        if (
            api_key != ApiKey.SASL_HANDSHAKE
            or self._end_s == math.inf
            or now_s < self._again_from_s
        ):
            return False
        self._again_from_s = now_s + _SAID_AGAIN_AFTER_S
        return True

    async def _begin(self, request: Request) -> bytes:
        mechanism, spoken = request.body["mechanism"], list(self._sasl.mechanisms)
        if mechanism not in spoken:
            error = ProtocolError.UNSUPPORTED_SASL_MECHANISM
            answer = _response(request, {"error_code": error, "mechanisms": spoken})
            raise NotAuthenticated(shortened(f"mechanism {mechanism!r} is not enabled"), answer)
        if self._identity is not None and mechanism != self._mechanism:
            raise NotAuthenticated(f"who came by {self._mechanism} logs in again by {mechanism}")
        self._mechanism, self._server = mechanism, self._sasl.server(mechanism)
        in_requests = request.header.api_version > 0
        self._stage = _Stage.TOKENS if in_requests else _Stage.BARE_TOKENS
        return _response(request, {"error_code": ProtocolError.NONE, "mechanisms": spoken})

    async def _go_on(self, request: Request) -> bytes:
        try:
            token, session_ms = await self._heard(request.body["auth_bytes"])
        except NotAuthenticated as refused:
            refused.answer = _response(request, _refusal(self._mechanism))
            raise
        return _response(request, _token(token, session_ms))

    async def _heard(self, token: bytes) -> tuple[bytes, int]:
        """Return what to say to a client, and how many ms its session lasts, 0 for ever."""
        assert self._server is not None
        try:
            answer = await self._server.respond(token)
            if self._server.identity is not None:
                return answer, self._know(self._server.identity)
        except Refused as refused:
            await asyncio.sleep(_FAILURE_DELAY_S)
            reason = f"not authenticated by {self._mechanism}: {refused}"
            raise NotAuthenticated(shortened(reason)) from None
        except Undecided as undecided:  # a client that is refused does not come again
            raise NotReady(shortened(str(undecided))) from None
        return answer, 0

    def _know(self, identity: Identity) -> int:
        """Let who has logged in ask from now on; return how many ms, 0 for ever. Raises Refused."""
        before = self._identity
        if before is not None and before.principal != identity.principal:
            raise Refused(f"{before.principal} has become {identity.principal}")
        self._identity = identity
        self._answering = self._serve(self._mechanism, identity)
        self._stage = _Stage.KNOWN
        session_ms = self._sasl.session_ms(identity, wall_clock_ms())
        if session_ms is None:
            self._end_s = math.inf
            return 0
        self._end_s = time.monotonic() + session_ms / 1000
        return session_ms


async def late_handshake(_: Call) -> Body:
    """Answer SaslHandshake where it is known who asks, or all may (KafkaApis)."""
    return {"error_code": ProtocolError.ILLEGAL_SASL_STATE, "mechanisms": []}


async def late_authenticate(_: Call) -> Body:
    """Answer SaslAuthenticate in the same way."""
    message = "SaslAuthenticate request received after successful authentication"
    return _token(b"") | {
        "error_code": ProtocolError.ILLEGAL_SASL_STATE,
        "error_message": message,
    }


def _refusal(mechanism: str) -> Body:
    """A client is not told what was wrong: that there is such a user would be told, too."""
    return _token(b"") | {
        "error_code": ProtocolError.SASL_AUTHENTICATION_FAILED,
        "error_message": f"Authentication failed: invalid credentials with {mechanism}",
    }


def _token(token: bytes, session_ms: int = 0) -> Body:
    return {
        "error_code": ProtocolError.NONE,
        "error_message": None,
        "auth_bytes": token,
        "session_lifetime_ms": session_ms,
    }


def _response(request: Request, body: Body) -> bytes:
    header = request.header
    return encode_response(header.api_key, header.api_version, header.correlation_id, body)
