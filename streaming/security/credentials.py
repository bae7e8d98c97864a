"""Under whose name this node is known to brokers and ZooKeeper, and who is known to it by password.

Names and passwords are in the JAAS file that brokers have too (java.security.auth.login.config).
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from functools import partial
from pathlib import Path

from streaming.errors import ConfigurationError
from streaming.keyfiles.jaas import JaasError, LoginModule, Sections, parse_jaas
from streaming.keyfiles.renewed import RenewedContext, https_context
from streaming.security.java_own_login import java_credentials
from streaming.security.ourselves import Credentials
from streaming.security.proofs import bearer_conversation
from streaming.setting_types import GSSAPI, OAUTHBEARER, PLAIN
from streaming.settings import Settings
from streaming.tickets.client import kerberos_conversation
from streaming.tickets.jgss import Jgss, keytab_of, shared_jgss
from streaming.tokens.own_tokens import ClientLogin, OwnTokens

_FILE = "java.security.auth.login.config"
_BROKERS, _ZOOKEEPER = "KafkaServer", "Client"
_PLAIN_MODULE, _SCRAM_MODULE, _BEARER_MODULE, _KERBEROS_MODULE, _DIGEST_MODULE = (
    "PlainLoginModule",
    "ScramLoginModule",
    "OAuthBearerLoginModule",
    "Krb5LoginModule",
    "DigestLoginModule",
)
_MODULES = {PLAIN: _PLAIN_MODULE, OAUTHBEARER: _BEARER_MODULE, GSSAPI: _KERBEROS_MODULE}
"""By mechanism; of the others the module is that of SCRAM."""
_TRUSTED = "ssl.truststore.location"
_USER_PREFIX = "user_"
DIGEST_MD5 = "DIGEST-MD5"
"""The mechanism by which ZooKeeper learns names and passwords."""


def own_credentials(settings: Settings) -> Credentials | None:
    """Return under whose name brokers are asked, None without SASL.

    A section <listener>.KafkaServer of the listener on which brokers hear the controller counts
    before KafkaServer (org.apache.kafka.common.security.JaasContext). Raises ConfigurationError.
    """
    mechanism = settings.sasl_mechanism_inter_broker_protocol
    if not mechanism:
        return None
    if settings.sasl_login_class_path:
        return java_credentials(settings, mechanism)
    wanted = _MODULES.get(mechanism, _SCRAM_MODULE)
    module = _named(_of_brokers(_sections(settings), settings.controller_listener), wanted)
    if module is not None:
        return _OWN.get(mechanism, _credentials)(settings, mechanism, module)
    raise _unusable(
        settings,
        f"its section {_BROKERS} has no {wanted}, which sasl.mechanism.inter.broker.protocol ="
        f" {mechanism} takes",
    )


def plain_users(settings: Settings, listener: str) -> Mapping[str, str]:
    """Return the passwords of who may come in by PLAIN on a listener, by user
    (PlainServerCallbackHandler). Raises ConfigurationError.
    """
    return {
        option.removeprefix(_USER_PREFIX): value
        for module in _of_brokers(_sections(settings), listener)
        if module.name == _PLAIN_MODULE
        for option, value in module.options.items()
        if option.startswith(_USER_PREFIX)
    }


def issuer_context(settings: Settings, listener: str) -> RenewedContext:
    """Return with what issuers of tokens for a listener are asked by HTTPS: they are trusted as the
    module's ssl.truststore.location says, or this machine does (JaasOptionsUtils). Raises
    ConfigurationError.
    """
    module = _named(_of_brokers(_sections(settings), listener), _BEARER_MODULE)
    trusted = "" if module is None else module.options.get(_TRUSTED, "")
    return https_context(f"{_BEARER_MODULE}'s {_TRUSTED}", trusted)


def kerberos_acceptor(settings: Settings, listener: str) -> Jgss:
    """Return what has the key for tickets of who comes to a listener; raises ConfigurationError."""
    module = _named(_of_brokers(_sections(settings), listener), _KERBEROS_MODULE)
    if module is not None:
        return _jgss(settings, module)
    reason = f"its section {_BROKERS} has no {_KERBEROS_MODULE}, which who comes by GSSAPI takes"
    raise _unusable(settings, reason)


def zookeeper_credentials(settings: Settings) -> Credentials | None:
    """Return under whose name ZooKeeper is asked, None if the file has no section for it.

    Raises ConfigurationError.
    """
    modules = _sections(settings).get(_ZOOKEEPER)
    if not modules:  # to Java, too, an empty section is none
        return None
    for module in modules:
        if module.name == _DIGEST_MODULE:
            return _credentials(settings, DIGEST_MD5, module)
        if module.name == _KERBEROS_MODULE:
            return _by_ticket(settings, module, settings.zookeeper_sasl_client_username)
    reason = f"its section {_ZOOKEEPER} has no {_DIGEST_MODULE} and no {_KERBEROS_MODULE}"
    raise _unusable(settings, reason)


def check_credentials(settings: Settings) -> None:
    """Raise ConfigurationError when the file is missing, or lacks what the settings need of it."""
    own_credentials(settings)
    if OAUTHBEARER in settings.sasl_mechanisms:
        issuer_context(settings, settings.controller_listener)
    if GSSAPI in settings.sasl_mechanisms:
        kerberos_acceptor(settings, settings.controller_listener)
    by_password = zookeeper_credentials(settings)
    named = settings.zookeeper_ssl_keystore_location or by_password
    if settings.zookeeper_set_acl and not named:
        raise _unusable(
            settings,
            f"zookeeper.set.acl = true needs a name with ZooKeeper, and it has no section"
            f" {_ZOOKEEPER}",
        )


def _named(modules: Iterable[LoginModule], name: str) -> LoginModule | None:
    """Return the first login module of that name, None if there is none."""
    return next((one for one in modules if one.name == name), None)


def _of_brokers(sections: Sections, listener: str) -> list[LoginModule]:
    return sections.get(f"{listener.lower()}.{_BROKERS}") or sections.get(_BROKERS, [])


def _sections(settings: Settings) -> Sections:
    path = settings.java_security_auth_login_config
    if not path:
        return {}
    try:
        return parse_jaas(Path(path).read_text("utf-8"))
    except OSError as error:
        raise _unusable(settings, str(error.strerror)) from error
    except UnicodeDecodeError as error:
        raise _unusable(settings, "it is not UTF-8") from error
    except JaasError as error:
        raise _unusable(settings, str(error)) from error


def _credentials(settings: Settings, mechanism: str, module: LoginModule) -> Credentials:
    user, password = _given(settings, module, "username", "password")
    return Credentials(mechanism, user, password)


def _by_token(settings: Settings, mechanism: str, module: LoginModule) -> Credentials:
    client, secret = _given(settings, module, "clientId", "clientSecret")
    login = ClientLogin(client, secret, module.options.get("scope", ""))
    trusted = issuer_context(settings, settings.controller_listener)
    tokens = OwnTokens(settings.sasl_oauthbearer_token_endpoint_url, login, trusted)
    return Credentials(mechanism, client, begin=lambda _: bearer_conversation(tokens.get))


def _by_service_ticket(settings: Settings, _: str, module: LoginModule) -> Credentials:
    service = settings.sasl_kerberos_service_name or module.options.get("serviceName", "")
    if not service:
        reason = f"its {module.name} has no serviceName, and sasl.kerberos.service.name is empty"
        raise _unusable(settings, reason)
    return _by_ticket(settings, module, service)


def _by_ticket(settings: Settings, module: LoginModule, service: str) -> Credentials:
    begin = partial(kerberos_conversation, _jgss(settings, module), service)
    return Credentials(GSSAPI, module.options.get("principal", ""), begin=begin)


_OWN = {OAUTHBEARER: _by_token, GSSAPI: _by_service_ticket}
"""By mechanism; of the others the proof is a password."""


def _jgss(settings: Settings, module: LoginModule) -> Jgss:
    """Return what logs in by a module; raises ConfigurationError for files that cannot be read."""
    conf = settings.java_security_krb5_conf
    if conf and not os.access(conf, os.R_OK):
        raise ConfigurationError(
            f"java.security.krb5.conf = {conf!r} cannot be read; allowed: a krb5.conf as brokers"
            " have it, or nothing for /etc/krb5.conf"
        )
    keytab = keytab_of(module.options)
    if keytab and not os.access(keytab, os.R_OK):
        raise _unusable(settings, f"keyTab {keytab!r} of its {module.name} cannot be read")
    return shared_jgss(module.options, conf)


def _given(settings: Settings, module: LoginModule, *names: str) -> list[str]:
    try:
        return [module.options[name] for name in names]
    except KeyError as error:
        raise _unusable(settings, f"its {module.name} has no {error.args[0]}") from error


def _unusable(settings: Settings, reason: str) -> ConfigurationError:
    return ConfigurationError(
        f"{_FILE} = {settings.java_security_auth_login_config!r} cannot be used ({reason});"
        f" allowed: a JAAS file as brokers have it, with username and password of a {_PLAIN_MODULE}"
        f" or {_SCRAM_MODULE}, clientId and clientSecret of an {_BEARER_MODULE}, or a"
        f" {_KERBEROS_MODULE}, in section {_BROKERS}, and username and password of a"
        f" {_DIGEST_MODULE}, or a {_KERBEROS_MODULE}, in section {_ZOOKEEPER} where ZooKeeper wants"
        " to know who connects"
    )
