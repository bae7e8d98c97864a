"""Asks an issuer of tokens over HTTP, or reads what it left in a file."""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from http.client import HTTPException
from urllib.error import HTTPError
from urllib.request import HTTPSHandler, ProxyHandler, Request, build_opener

_TIMEOUT_S = 10.0
_ANSWER_MAX_BYTES = 1024 * 1024
_SHOWN_BYTES = 200


class IssuerFailed(ConnectionError):
    """An issuer did not answer, or not as it should; the message names its URL and says how."""


def fetched(
    url: str,
    trusted: ssl.SSLContext,
    form: bytes | None = None,
    headers: Mapping[str, str] | None = None,
) -> bytes:
    """Return what is at a URL (http, https or file), or what answers a form that is sent there.

    trusted: what HTTPS is spoken with. Asks directly whatever proxy the environment names, as
    Java's brokers do. Blocks for a bounded time; raises IssuerFailed.
    """
    # The URL is the operator's, who may well mean a file.
    request = Request(url, form, {"Accept": "application/json", **(headers or {})})  # noqa: S310
    opener = build_opener(ProxyHandler({}), HTTPSHandler(context=trusted))
    try:
        with opener.open(request, timeout=_TIMEOUT_S) as answer:
            content: bytes = answer.read(_ANSWER_MAX_BYTES + 1)
    except HTTPError as error:
        with error:
            said = error.read(_SHOWN_BYTES).decode("utf-8", "replace")
        raise IssuerFailed(f"{url} answered {error.code} {error.reason}: {said!r}") from error
    except (OSError, HTTPException) as error:
        reason = getattr(error, "reason", None) or error
        raise IssuerFailed(f"{url} cannot be asked: {reason}") from error
    if len(content) > _ANSWER_MAX_BYTES:
        raise IssuerFailed(f"{url} answered more than {_ANSWER_MAX_BYTES} bytes")
    return content
