"""Tokens of an issuer by which a log cluster knows this node, as kafka-python asks for them."""

from __future__ import annotations

from kafka.errors import KafkaConnectionError
from kafka.net.sasl.oauth import AbstractTokenProvider

from streaming.keyfiles.renewed import RenewedContext
from streaming.tokens.issuer import IssuerFailed
from streaming.tokens.own_tokens import ClientLogin, OwnTokens


class _Tokens(AbstractTokenProvider):  # type: ignore[misc]
    """Tells kafka-python a token whenever it logs in."""

    def __init__(self, tokens: OwnTokens) -> None:
        super().__init__()
        self._tokens = tokens

    def token(self) -> str:
        try:
            return self._tokens.get()
        except IssuerFailed as error:  # it may be back when the client tries again
            raise KafkaConnectionError(str(error)) from error


def token_provider(
    url: str, client: str, secret: str, scope: str, trusted: RenewedContext
) -> AbstractTokenProvider:
    """Return what gets tokens; scope: "" for none, trusted: what HTTPS is spoken with."""
    return _Tokens(OwnTokens(url, ClientLogin(client, secret, scope), trusted))
