"""Gets the tokens by which brokers and log clusters know us (OAuthBearerLoginCallbackHandler)."""

from __future__ import annotations

import base64
import threading
from dataclasses import dataclass, field
from urllib.parse import urlencode

import jwt
import orjson

from streaming.keyfiles.renewed import RenewedContext
from streaming.process.wall_clock import wall_clock_ms
from streaming.tokens.issuer import IssuerFailed, fetched

_REFRESHED_AT = 0.8
"""Of a token's lifetime: Kafka's default of sasl.login.refresh.window.factor."""


@dataclass(frozen=True, slots=True)
class ClientLogin:
    """As whom an issuer is asked for tokens; scope: "" where it wants none."""

    id: str
    secret: str = field(repr=False)
    scope: str = ""


class OwnTokens:
    """Keeps the last token until most of its lifetime is over; used from any thread.

    From https and http a token is got by the client credentials grant (RFC 6749, 4.4), a file has
    the token itself.
    """

    def __init__(self, url: str, login: ClientLogin, trusted: RenewedContext) -> None:
        """url: sasl.oauthbearer.token.endpoint.url; trusted: what HTTPS is spoken with."""
        self._url = url
        self._login = login
        self._trusted = trusted
        self._lock = threading.Lock()
        self._token = ""
        self._refresh_ms = self._end_ms = 0

    def get(self) -> str:
        """Return a token that has not ended. Blocks for a bounded time; raises IssuerFailed."""
        with self._lock:
            now_ms = wall_clock_ms()
            if now_ms >= self._refresh_ms:
                try:
                    self._take(self._fetched(), now_ms)
                except IssuerFailed:
                    if now_ms >= self._end_ms:
                        raise
            return self._token

    def _take(self, token: str, now_ms: int) -> None:
        try:
            end_ms = int(jwt.decode(token, options={"verify_signature": False})["exp"] * 1000)
        except (jwt.PyJWTError, KeyError, TypeError, ValueError, OverflowError) as error:
            raise IssuerFailed(f"{self._url} gave no token with an end: {error!r}") from error
        if end_ms <= now_ms:
            raise IssuerFailed(f"{self._url} gave a token that has ended")
        self._token, self._end_ms = token, end_ms
        self._refresh_ms = now_ms + int((end_ms - now_ms) * _REFRESHED_AT)

    def _fetched(self) -> str:
        if self._url.startswith("file:"):
            return fetched(self._url, self._trusted.current()).decode("utf-8", "replace").strip()
        form = {"grant_type": "client_credentials"}
        if self._login.scope:
            form["scope"] = self._login.scope
        proof = base64.b64encode(f"{self._login.id}:{self._login.secret}".encode()).decode()
        headers = {"Authorization": f"Basic {proof}"}
        answer = fetched(self._url, self._trusted.current(), urlencode(form).encode(), headers)
        try:
            return str(orjson.loads(answer)["access_token"])
        except (ValueError, KeyError, TypeError) as error:
            raise IssuerFailed(f"{self._url} answered without an access_token") from error
