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
    what the map says, else the protocol that a listener is called after if it is spoken at all,
    else PLAINTEXT.
    """
    mapped = settings.listener_protocol_names
    known = {one.name: one for one in spoken_protocols(settings)}
    return {
        name: known.get(mapped.get(name, name), SecurityProtocol.PLAINTEXT)
        for name in settings.gateway_listener_names
    }


def check_tls(settings: Settings) -> None:
    """Raise ConfigurationError when TLS is configured, and its files cannot be used."""
    client_context(settings)
    server_context(settings, lambda reason: None)
    zookeeper_context(settings)


def client_context(settings: Settings) -> ssl.SSLContext | None:
    """Return what connections to brokers are secured with, None without TLS.

    Raises ConfigurationError.
    """
    if not settings.ssl_keystore_location:
        return None
    context = _client(settings.ssl_endpoint_identification_algorithm)
    _load_key(context, _KEY, settings.ssl_keystore_location)
    _load_trusted(context, _TRUSTED, settings.ssl_truststore_location)
    return context


def zookeeper_context(settings: Settings) -> ssl.SSLContext | None:
    """Return what sessions with ZooKeeper are secured with, None without TLS.

    A key is only for servers that want to know who connects. Raises ConfigurationError.
    """
    if not settings.zookeeper_ssl_client_enable:
        return None
    context = _client(settings.zookeeper_ssl_endpoint_identification_algorithm)
    if settings.zookeeper_ssl_keystore_location:
        _load_key(context, f"zookeeper.{_KEY}", settings.zookeeper_ssl_keystore_location)
    _load_trusted(context, f"zookeeper.{_TRUSTED}", settings.zookeeper_ssl_truststore_location)
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

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.verify_mode = _VERIFIED[settings.ssl_client_auth]
    context.sslobject_class = Handshake
    _load_key(context, _KEY, settings.ssl_keystore_location)
    _load_trusted(context, _TRUSTED, settings.ssl_truststore_location, ssl.Purpose.CLIENT_AUTH)
    return context


def _client(identification: str) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = bool(identification)
    return context


def _load_key(context: ssl.SSLContext, setting: str, path: str) -> None:
    what = "an unencrypted private key and its certificate, those that signed it behind it"
    _loading(setting, path, what, lambda: context.load_cert_chain(path, password=_encrypted))


def _load_trusted(
    context: ssl.SSLContext,
    setting: str,
    path: str,
    purpose: ssl.Purpose = ssl.Purpose.SERVER_AUTH,
) -> None:
    """Trust whom a file says, or without one whom this machine does."""
    if path:
        what = "the certificates of who signs those of the others"
        _loading(setting, path, what, lambda: context.load_verify_locations(path))
    else:
        context.load_default_certs(purpose)


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
