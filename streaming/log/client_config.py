"""How a log cluster is reached that wants TLS, names and passwords, tokens of an issuer or tickets:
by the properties of a client, as Kafka's own tools take them with --command-config.
"""

from __future__ import annotations

import os
import ssl
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from streaming.errors import ConfigurationError
from streaming.keyfiles.jaas import JaasError, LoginModule, parse_jaas
from streaming.keyfiles.pem import load_key, load_trusted, new_client_context
from streaming.keyfiles.properties import read_properties
from streaming.keyfiles.renewed import RenewedContext, https_context

_PROTOCOL, _MECHANISM, _LOGIN = "security.protocol", "sasl.mechanism", "sasl.jaas.config"
_IDENTIFICATION = "ssl.endpoint.identification.algorithm"
_KEY, _TRUSTED = "ssl.keystore.location", "ssl.truststore.location"
_OAUTHBEARER, _TOKENS_URL = "OAUTHBEARER", "sasl.oauthbearer.token.endpoint.url"
_GSSAPI, _SERVICE = "GSSAPI", "sasl.kerberos.service.name"
_REALMS = "java.security.krb5.conf"
"""No property of clients: Kafka's tools are told it as one of Java, and pass over it here."""
_TICKET_MODULE = "Krb5LoginModule"
_BEARER_PACKAGE = "org.apache.kafka.common.security.oauthbearer"
_ALLOWED = {
    _PROTOCOL: ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"),
    _MECHANISM: ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", _OAUTHBEARER, _GSSAPI),
    "sasl.login.callback.handler.class": (
        f"{_BEARER_PACKAGE}.secured.OAuthBearerLoginCallbackHandler",
        f"{_BEARER_PACKAGE}.OAuthBearerLoginCallbackHandler",
    ),
    _IDENTIFICATION: ("https", ""),
    "ssl.keystore.type": ("PEM",),
    "ssl.truststore.type": ("PEM",),
}
_KNOWN = frozenset({*_ALLOWED, _LOGIN, _KEY, _TRUSTED, _TOKENS_URL, _SERVICE})
_ABOUT_SECURITY = ("security.", "ssl.", "sasl.")


def security_options(file: Path) -> dict[str, Any]:
    """Return what kafka-python's clients are told of TLS, name and password, tokens or tickets.

    What is not about them in the file does not count. Raises ConfigurationError naming file, key
    and what is allowed; it repeats no password.
    """
    given = read_properties(file)
    for key in sorted(given.keys() - _KNOWN):
        if key.startswith(_ABOUT_SECURITY):
            raise ConfigurationError(
                f"{file}: {key} is not known here; of security, allowed are"
                f" {', '.join(sorted(_KNOWN))}"
            )
    for key, allowed in _ALLOWED.items():
        if key in given and given[key] not in allowed:
            raise ConfigurationError(
                f"{file}: {key} = {given[key]!r}; allowed are"
                f" {', '.join(one or 'nothing' for one in allowed)}"
            )
    protocol = given.get(_PROTOCOL, "PLAINTEXT")
    options: dict[str, Any] = {"security_protocol": protocol}
    if protocol.endswith("SSL"):
        options["ssl_context"] = _context(file, given)
    if protocol.startswith("SASL"):
        options |= _login(file, given)
    return options


def _context(file: Path, given: Mapping[str, str]) -> RenewedContext:
    for location, kind in ((_KEY, "ssl.keystore.type"), (_TRUSTED, "ssl.truststore.type")):
        if location in given and kind not in given:
            raise ConfigurationError(
                f"{file}: {location} needs {kind} = PEM: that alone can be read, and without it"
                " Kafka's tools take the file for Java's own form"
            )

    def make() -> ssl.SSLContext:
        context = new_client_context(given.get(_IDENTIFICATION, "https"))
        if _KEY in given:
            load_key(context, f"{file}: {_KEY}", given[_KEY])
        load_trusted(context, f"{file}: {_TRUSTED}", given.get(_TRUSTED, ""))
        return context

    return RenewedContext(make, (given.get(_KEY, ""), given.get(_TRUSTED, "")))


def _login(file: Path, given: Mapping[str, str]) -> dict[str, Any]:
    mechanism = given.get(_MECHANISM)
    if mechanism is None:
        allowed = ", ".join(_ALLOWED[_MECHANISM])
        raise ConfigurationError(f"{file}: {_MECHANISM} is missing; allowed are {allowed}")
    proof = _OWN.get(mechanism, _by_password)
    return {"sasl_mechanism": mechanism} | proof(file, given, _module(file, given))


def _by_password(file: Path, _: Mapping[str, str], module: LoginModule) -> dict[str, Any]:
    user, password = _options(file, module, "username", "password")
    return {"sasl_plain_username": user, "sasl_plain_password": password}


def _by_token(file: Path, given: Mapping[str, str], module: LoginModule) -> dict[str, Any]:
    # What reads tokens is slow to import, and few log clusters want any.
    from streaming.log.client_tokens import token_provider  # noqa: PLC0415

    client, secret = _options(file, module, "clientId", "clientSecret")
    url = _tokens_url(file, given)
    context = https_context(f"{file}: {_LOGIN}'s {_TRUSTED}", module.options.get(_TRUSTED, ""))
    tokens = token_provider(url, client, secret, module.options.get("scope", ""), context)
    return {"sasl_oauth_token_provider": tokens}


def _by_ticket(file: Path, given: Mapping[str, str], module: LoginModule) -> dict[str, Any]:
    # What asks Java is slow to import, and few log clusters want tickets.
    from streaming.log.client_tickets import ticket_options  # noqa: PLC0415
    from streaming.tickets.jgss import keytab_of, shared_jgss  # noqa: PLC0415

    if module.name != _TICKET_MODULE:
        raise ConfigurationError(
            f"{file}: {_LOGIN} has {module.name}; for {_GSSAPI} allowed is"
            f" com.sun.security.auth.module.{_TICKET_MODULE}"
        )
    service = given.get(_SERVICE) or module.options.get("serviceName", "")
    if not service:
        raise ConfigurationError(
            f"{file}: {_SERVICE} is missing; allowed is what the brokers' principals begin with,"
            " such as kafka"
        )
    realms, keytab = given.get(_REALMS, ""), keytab_of(module.options)
    for key, path in ((_REALMS, realms), (f"{_LOGIN}'s keyTab", keytab)):
        if path and not os.access(path, os.R_OK):
            raise ConfigurationError(
                f"{file}: {key} = {path!r} cannot be read; allowed is a file that this process may"
                " read"
            )
    return ticket_options(shared_jgss(module.options, realms), service)


_OWN: Mapping[str, Callable[[Path, Mapping[str, str], LoginModule], dict[str, Any]]] = {
    _OAUTHBEARER: _by_token,
    _GSSAPI: _by_ticket,
}
"""By mechanism; of the others the proof is a password."""


def _options(file: Path, module: LoginModule, *names: str) -> list[str]:
    try:
        return [module.options[name] for name in names]
    except KeyError as missing:
        raise ConfigurationError(f"{file}: {_LOGIN} has no {missing.args[0]}=...") from None


def _tokens_url(file: Path, given: Mapping[str, str]) -> str:
    url = given.get(_TOKENS_URL, "")
    if not url.startswith(("http://", "https://", "file:/")):
        raise ConfigurationError(
            f"{file}: {_TOKENS_URL} = {url!r}; allowed is where {_OAUTHBEARER} gets tokens, such as"
            " https://issuer/token or file:///token"
        )
    return url


def _module(file: Path, given: Mapping[str, str]) -> LoginModule:
    """Return the one login module; what stands there is a section of a JAAS file without its name
    (KIP-85).
    """
    try:
        modules = parse_jaas(f"client {{ {given.get(_LOGIN, '')} }};")["client"]
    except JaasError as error:
        raise ConfigurationError(f"{file}: {_LOGIN} cannot be read: {error}") from error
    if len(modules) != 1:
        raise ConfigurationError(
            f"{file}: {_LOGIN} has {len(modules)} login modules, allowed is one:"
            " ...LoginModule required ...;"
        )
    return modules[0]
