"""Contexts for TLS out of PEM files, in which keys are as Kafka reads them with
ssl.keystore.type=PEM (KIP-651).
"""

from __future__ import annotations

import ssl
from collections.abc import Callable
from typing import Any, NoReturn

from streaming.errors import ConfigurationError

ANY_ANCHOR = ssl.VERIFY_X509_PARTIAL_CHAIN
"""As in Java, whoever is trusted need not have signed itself: an issuer below the root will do."""


def new_client_context(identification: str) -> ssl.SSLContext:
    """Return a context for connecting, without a key, that trusts nobody yet.

    identification: ssl.endpoint.identification.algorithm, "" where names are not compared.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.verify_flags |= ANY_ANCHOR
    context.check_hostname = bool(identification)
    return context


def load_key(context: ssl.SSLContext, setting: str, path: str) -> None:
    """Take a key and its certificates; raises ConfigurationError naming the setting."""
    what = "an unencrypted private key and its certificate, those that signed it behind it"
    _loading(setting, path, what, lambda: context.load_cert_chain(path, password=_encrypted))


def load_trusted(
    context: ssl.SSLContext,
    setting: str,
    path: str,
    purpose: ssl.Purpose = ssl.Purpose.SERVER_AUTH,
) -> None:
    """Trust whom a file says, or without one whom this machine does.

    Raises ConfigurationError naming the setting.
    """
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
