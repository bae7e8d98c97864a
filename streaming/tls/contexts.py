"""The TLS of this node: its key and certificates, whom it trusts, and what follows from them.

Keys are in PEM files as Kafka reads them with ssl.keystore.type=PEM (KIP-651).
"""

from __future__ import annotations

import ssl
from collections.abc import Callable
from typing import Any, NoReturn

from streaming.errors import ConfigurationError
from streaming.settings import Settings
from streaming.wire.endpoints import SecurityProtocol

_PLAIN = frozenset({SecurityProtocol.PLAINTEXT})
_BY_NAME = {one.name: one for one in (SecurityProtocol.PLAINTEXT, SecurityProtocol.SSL)}
_VERIFIED = {
    "none": ssl.CERT_NONE,
    "requested": ssl.CERT_OPTIONAL,
    "required": ssl.CERT_REQUIRED,
}
_KEY, _TRUSTED = "ssl.keystore.location", "ssl.truststore.location"


def spoken_protocols(settings: Settings) -> frozenset[SecurityProtocol]:
    """Return the protocols that this node speaks, on listeners of its own and to brokers."""
    return _PLAIN | {SecurityProtocol.SSL} if settings.ssl_keystore_location else _PLAIN


def configured_listeners(settings: Settings) -> dict[str, SecurityProtocol]:
    """Return what is spoken on the listeners of gateway.listeners, or of a hidden gateway, by name:
    what the map says, else the protocol that a listener is called after, else PLAINTEXT.
    """
    mapped = settings.listener_protocol_names
    return {
        name: _BY_NAME.get(mapped.get(name, name), SecurityProtocol.PLAINTEXT)
        for name in settings.gateway_listener_names
    }


def check_tls(settings: Settings) -> None:
    """Raise ConfigurationError when TLS is configured, and its files cannot be used."""
    client_context(settings)
    server_context(settings, lambda reason: None)


def client_context(settings: Settings) -> ssl.SSLContext | None:
    """Return what connections to brokers are secured with, None without TLS.

    Raises ConfigurationError.
    """
    if not settings.ssl_keystore_location:
        return None
    context = _with_files(
        settings, ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT), ssl.Purpose.SERVER_AUTH
    )
    context.check_hostname = bool(settings.ssl_endpoint_identification_algorithm)
    return context


def server_context(settings: Settings, on_failure: Callable[[str], None]) -> ssl.SSLContext | None:
    """Return what connections to us are secured with, None without TLS.

    on_failure: called with the reason of each handshake that fails, of which asyncio says nothing.
    Raises ConfigurationError.
    """
    if not settings.ssl_keystore_location:
        return None

    class Handshake(ssl.SSLObject):
        def do_handshake(self) -> None:
            try:
                super().do_handshake()
            except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
                raise
            except ssl.SSLError as error:
                on_failure(str(error))
                raise

    context = _with_files(
        settings, ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), ssl.Purpose.CLIENT_AUTH
    )
    context.verify_mode = _VERIFIED[settings.ssl_client_auth]
    context.sslobject_class = Handshake
    return context


def _with_files(
    settings: Settings, context: ssl.SSLContext, purpose: ssl.Purpose
) -> ssl.SSLContext:
    key, trusted = settings.ssl_keystore_location, settings.ssl_truststore_location
    what = "an unencrypted private key and its certificate, those that signed it behind it"
    _loading(_KEY, key, what, lambda: context.load_cert_chain(key, password=_encrypted))
    if trusted:
        what = "the certificates of who signs those of brokers and clients"
        _loading(_TRUSTED, trusted, what, lambda: context.load_verify_locations(trusted))
    else:
        context.load_default_certs(purpose)
    return context


def _loading(setting: str, path: str, what: str, load: Callable[[], Any]) -> None:
    try:
        load()
    except (OSError, ValueError) as error:  # an SSLError is both
        reason = getattr(error, "reason", None) or getattr(error, "strerror", None) or error
        raise ConfigurationError(
            f"{setting} = {path!r} cannot be used ({reason}); allowed: a PEM file with {what}"
        ) from error


def _encrypted() -> NoReturn:
    raise ValueError("its key is encrypted")
