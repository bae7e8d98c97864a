"""What settings must be beside one another."""

from __future__ import annotations

from streaming.class_checks import check_classes, refuse_alone
from streaming.errors import ConfigurationError
from streaming.setting_types import GSSAPI, OAUTHBEARER, PORT_MAX
from streaming.settings import Settings

_GROUPS_SINCE = (2, 1)
_RECOVERY_SINCE = (2, 7)
"""Before it brokers cannot say which leader epoch a log ends in (Fetch 12)."""
_NO_GROUPS = ("2.1-IV0", "2.1-IV1")
"""Before 2.1-IV2 followers do not say under which leader epoch they fetch (Fetch 9)."""


def check_together(settings: Settings) -> None:
    """Raise ConfigurationError for settings that are allowed one by one, and not together."""
    _check_hidden(settings)
    _check_tls(settings)
    _check_sasl(settings)
    _check_bearer(settings)
    check_classes(settings)
    _check_kerberos(settings)
    _check_zookeeper(settings)
    _check_groups(settings)
    _check_recovery(settings)
    _check_sessions(settings)
    gateway_ports(settings, max(len(settings.gateway_listener_names), 1))


def gateway_ports(settings: Settings, listeners: int) -> list[int]:
    """The ports that the gateway takes for some listeners: from gateway.port on, or free ones (0).

    Raises ConfigurationError when there are not so many, or metrics are to be served on one.
    """
    first = settings.gateway_port
    if not first:
        return [0] * listeners
    if first + listeners - 1 > PORT_MAX:
        raise ConfigurationError(
            f"gateway.port = {first} leaves no port for each of {listeners} listeners, allowed are"
            f" at most {PORT_MAX - listeners + 1}"
        )
    ports = list(range(first, first + listeners))
    if settings.metrics_port in ports:
        raise ConfigurationError(
            f"metrics.port = {settings.metrics_port} is a port of the gateway, which takes one for"
            f" each of {listeners} listeners from gateway.port = {first} on: choose one below or"
            " well above"
        )
    return ports


def _check_hidden(settings: Settings) -> None:
    name, bound = settings.controller_listener, settings.gateway_listeners
    if settings.gateway_hidden and not name:
        raise ConfigurationError(
            "gateway.hidden = true needs the listener that brokers and the controller use among"
            " themselves: set inter.broker.listener.name or control.plane.listener.name"
        )
    if settings.gateway_hidden and bound and name not in bound.split(","):
        raise ConfigurationError(
            f"gateway.hidden = true announces this node on listener {name!r}, and"
            f" gateway.listeners = {bound!r} does not have it; add it, or leave gateway.listeners"
            " empty"
        )


def _check_zookeeper(settings: Settings) -> None:
    if not settings.zookeeper_ssl_client_enable:
        refuse_alone(
            {
                "zookeeper.ssl.keystore.location": settings.zookeeper_ssl_keystore_location,
                "zookeeper.ssl.truststore.location": settings.zookeeper_ssl_truststore_location,
            },
            "is about TLS with ZooKeeper, which is not spoken: set zookeeper.ssl.client.enable to"
            " true, or leave it empty",
        )
    names = (settings.zookeeper_ssl_keystore_location, settings.java_security_auth_login_config)
    if settings.zookeeper_set_acl and not any(names):
        raise ConfigurationError(
            "zookeeper.set.acl = true lets nobody else write what this node creates, and to"
            " ZooKeeper it has no name: set zookeeper.ssl.keystore.location to a PEM file with the"
            " certificate under which the brokers are known to ZooKeeper, or"
            " java.security.auth.login.config to a JAAS file with their section Client"
        )


def _check_sasl(settings: Settings) -> None:
    mechanism = settings.sasl_mechanism_inter_broker_protocol
    if mechanism and not (
        settings.java_security_auth_login_config or settings.sasl_login_class_path
    ):
        raise ConfigurationError(
            f"sasl.mechanism.inter.broker.protocol = {mechanism} needs a name and a secret: set"
            " java.security.auth.login.config to a JAAS file with a section KafkaServer, as the"
            " brokers have it"
        )
    if mechanism and mechanism not in settings.sasl_mechanisms:
        raise ConfigurationError(
            f"sasl.enabled.mechanisms = {settings.sasl_enabled_mechanisms} lacks"
            f" sasl.mechanism.inter.broker.protocol = {mechanism}, by which brokers come: add it"
        )
    if not mechanism:
        refuse_alone(
            {
                "connections.max.reauth.ms": settings.connections_max_reauth_ms,
                "listener.security.protocol.map": _mapped_to(settings, "SASL_"),
                "sasl.enabled.mechanisms": settings.sasl_enabled_mechanisms,
            },
            "is about SASL, in which this node has no name: set"
            " sasl.mechanism.inter.broker.protocol to the mechanism by which it tells brokers who"
            " it is, or leave it empty",
        )


def _check_bearer(settings: Settings) -> None:
    keys_url = settings.sasl_oauthbearer_jwks_endpoint_url
    token_url = settings.sasl_oauthbearer_token_endpoint_url
    if OAUTHBEARER not in settings.sasl_mechanisms:
        refuse_alone(
            {
                "sasl.oauthbearer.token.endpoint.url": token_url,
                "sasl.oauthbearer.jwks.endpoint.url": keys_url,
                "sasl.oauthbearer.expected.audience": settings.sasl_oauthbearer_expected_audience,
                "sasl.oauthbearer.expected.issuer": settings.sasl_oauthbearer_expected_issuer,
            },
            "is about OAUTHBEARER, by which nobody may come: add it to sasl.enabled.mechanisms, or"
            " leave this out",
        )
    elif not keys_url and OAUTHBEARER not in settings.login_classes:
        raise ConfigurationError(
            "sasl.oauthbearer.jwks.endpoint.url is empty, and who comes by OAUTHBEARER has a token"
            " of which it has to be known who signed it: set it to the URL of the issuer's keys, as"
            " brokers with OAuthBearerValidatorCallbackHandler have it"
        )
    ours = settings.sasl_mechanism_inter_broker_protocol == OAUTHBEARER
    if ours and not token_url and not settings.sasl_login_class_path:
        raise ConfigurationError(
            "sasl.oauthbearer.token.endpoint.url is empty, and this node tells brokers by"
            " OAUTHBEARER who it is: set it to the URL that gives out tokens, as brokers with"
            " OAuthBearerLoginCallbackHandler have it"
        )


def _check_kerberos(settings: Settings) -> None:
    if GSSAPI not in settings.sasl_mechanisms:
        rules = settings.sasl_kerberos_principal_to_local_rules
        refuse_alone(
            {
                "sasl.kerberos.service.name": settings.sasl_kerberos_service_name,
                "sasl.kerberos.principal.to.local.rules": rules.replace("DEFAULT", ""),
            },
            "is about GSSAPI, by which nobody may come: add it to sasl.enabled.mechanisms, or leave"
            " this out",
        )


def _mapped_to(settings: Settings, part: str) -> list[str]:
    """Return the listeners of the map whose protocols have a part in their name."""
    mapped = settings.listener_protocol_names
    return [name for name, protocol in mapped.items() if part in protocol]


def _check_tls(settings: Settings) -> None:
    if not settings.ssl_keystore_location:
        refuse_alone(
            {
                "listener.security.protocol.map": _mapped_to(settings, "SSL"),
                "ssl.truststore.location": settings.ssl_truststore_location,
            },
            "is about TLS, for which this node has no key: set ssl.keystore.location to a PEM file"
            " with one, or leave it empty",
        )


def _check_groups(settings: Settings) -> None:
    if settings.groups_takeover_enable and settings.gateway_hidden:
        raise ConfigurationError(
            "gateway.hidden = true hides this node from clients, and groups.takeover.enable = true"
            " lets it coordinate their groups: set one of them to false"
        )
    protocol = settings.inter_broker_protocol_version
    too_old = settings.inter_broker_protocol < _GROUPS_SINCE or protocol in _NO_GROUPS
    if settings.groups_takeover_enable and too_old:
        raise ConfigurationError(
            "groups.takeover.enable = true needs brokers with inter.broker.protocol.version 2.1-IV2"
            f" or newer, and it is {protocol}: set it to false until they have it"
        )


def _check_recovery(settings: Settings) -> None:
    if settings.unclean_recovery_manager_enabled and (
        settings.inter_broker_protocol < _RECOVERY_SINCE
    ):
        raise ConfigurationError(
            "unclean.recovery.manager.enabled = true needs brokers that can say where a log ends:"
            " allowed with inter.broker.protocol.version 2.7 or newer, and it is"
            f" {settings.inter_broker_protocol_version}"
        )


def _check_sessions(settings: Settings) -> None:
    least, most = settings.group_min_session_timeout_ms, settings.group_max_session_timeout_ms
    if least > most:
        raise ConfigurationError(
            f"group.min.session.timeout.ms = {least} is more than group.max.session.timeout.ms ="
            f" {most}, and no member could join a group: lower the first or raise the second"
        )
