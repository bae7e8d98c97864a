"""The TLS of this node: its key and certificates, whom it trusts, and what follows from them."""

from __future__ import annotations

import contextlib
import ssl
from functools import partial

from streaming.errors import ConfigurationError
from streaming.keyfiles.pem import ANY_ANCHOR, load_key, load_trusted, new_client_context
from streaming.keyfiles.renewed import RenewedContext
from streaming.settings import Settings

_VERIFIED = {
    "none": ssl.CERT_NONE,
    "requested": ssl.CERT_OPTIONAL,
    "required": ssl.CERT_REQUIRED,
}
_KEY, _TRUSTED = "ssl.keystore.location", "ssl.truststore.location"


def check_tls(settings: Settings) -> None:
    """Raise ConfigurationError when TLS is configured, and its files cannot be used, or nobody who
    trusts whom this node does would speak to it.
    """
    zookeeper_context(settings)
    if settings.ssl_keystore_location:
        _check_own(settings)


def _check_own(settings: Settings) -> int:
    """Return when the certificate ends; raises ConfigurationError as `check_tls`."""
    client, server = _client(settings), _server(settings, ssl.CERT_NONE)  # good for a server only
    try:
        return _shake_hands(client, server, settings.announced_host)
    except (ssl.SSLError, ValueError) as error:  # a ValueError: no host has such a name
        reason = getattr(error, "verify_message", None) or getattr(error, "reason", error)
        raise ConfigurationError(
            f"{_KEY} = {settings.ssl_keystore_location!r}: who trusts those of {_TRUSTED} would not"
            f" speak to this node at {settings.announced_host} ({reason}); allowed: a certificate"
            " that is valid, signed by one of them, and for gateway.advertised.host (for any host"
            " if ssl.endpoint.identification.algorithm is empty)"
        ) from error


def _shake_hands(client: ssl.SSLContext, server: ssl.SSLContext, host: str) -> int:
    """Have a client and a server meet, here, and return when the server's certificate ends; raises
    SSLError.
    """
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    ours = client.wrap_bio(to_client, to_server, server_hostname=host)
    theirs = server.wrap_bio(to_server, to_client, server_side=True)
    for one in (ours, theirs, ours):
        with contextlib.suppress(ssl.SSLWantReadError):
            one.do_handshake()
    certificate = ours.getpeercert()
    assert certificate, "the client wants to know who it meets"
    return int(ssl.cert_time_to_seconds(str(certificate["notAfter"])) * 1000)


def client_context(settings: Settings) -> RenewedContext | None:
    """Return what connections to brokers are secured with, None without TLS.

    Raises ConfigurationError.
    """
    if not settings.ssl_keystore_location:
        return None
    return RenewedContext(partial(_client, settings), _files(settings))


def _files(settings: Settings) -> tuple[str, str]:
    return settings.ssl_keystore_location, settings.ssl_truststore_location


def _client(settings: Settings) -> ssl.SSLContext:
    context = new_client_context(settings.ssl_endpoint_identification_algorithm)
    load_key(context, _KEY, settings.ssl_keystore_location)
    load_trusted(context, _TRUSTED, settings.ssl_truststore_location)
    return context


def zookeeper_context(settings: Settings) -> RenewedContext | None:
    """Return what sessions with ZooKeeper are secured with, None without TLS.

    A key is only for servers that want to know who connects. Raises ConfigurationError.
    """
    if not settings.zookeeper_ssl_client_enable:
        return None
    files = settings.zookeeper_ssl_keystore_location, settings.zookeeper_ssl_truststore_location
    return RenewedContext(partial(_to_zookeeper, settings), files)


def _to_zookeeper(settings: Settings) -> ssl.SSLContext:
    context = new_client_context(settings.zookeeper_ssl_endpoint_identification_algorithm)
    if settings.zookeeper_ssl_keystore_location:
        load_key(context, f"zookeeper.{_KEY}", settings.zookeeper_ssl_keystore_location)
    load_trusted(context, f"zookeeper.{_TRUSTED}", settings.zookeeper_ssl_truststore_location)
    return context


def server_context(settings: Settings, *, sasl: bool = False) -> RenewedContext | None:
    """Return what connections to us are secured with, None without TLS. sasl: clients say who they
    are, and need no certificate (KIP-684).

    Its certificate, and one that replaces it, has to be one that `check_tls` takes. Raises
    ConfigurationError.
    """
    if not settings.ssl_keystore_location:
        return None
    verified = ssl.CERT_NONE if sasl else _VERIFIED[settings.ssl_client_auth]
    check = partial(_check_own, settings)
    return RenewedContext(partial(_server, settings, verified), _files(settings), check)


def _server(settings: Settings, verified: ssl.VerifyMode) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.verify_flags |= ANY_ANCHOR
    context.verify_mode = verified
    load_key(context, _KEY, settings.ssl_keystore_location)
    load_trusted(context, _TRUSTED, settings.ssl_truststore_location, ssl.Purpose.CLIENT_AUTH)
    return context
