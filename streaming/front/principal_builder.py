"""How it is found out who clients are, as it is configured."""

from __future__ import annotations

from functools import partial

from streaming.embedded.java_class import JavaClass
from streaming.security.java_principals import BUILDER, JavaPrincipals
from streaming.security.mapping_rules import mapping_rules
from streaming.security.newcomers import Naming
from streaming.security.own_classes import broker_properties, check_class
from streaming.setting_types import KAFKAS_BUILDER
from streaming.settings import Settings

_KEY = "principal.builder.class"


def naming(settings: Settings) -> Naming:
    """Return it."""
    rules = mapping_rules(settings.ssl_principal_mapping_rules)
    return Naming(rules, partial(principal_builder, settings))


def principal_builder(settings: Settings, listener: str) -> JavaPrincipals | None:
    """Return the brokers' own for a listener, None where it is Kafka's; raises ConfigurationError.

    Which class it is the brokers' properties may say, for all listeners and for one.
    """
    if not settings.has_own_builder:
        return None
    config = {
        _KEY: settings.principal_builder_class,
        "ssl.principal.mapping.rules": settings.ssl_principal_mapping_rules,
        "sasl.kerberos.principal.to.local.rules": settings.sasl_kerberos_principal_to_local_rules,
    } | broker_properties(settings, settings.principal_builder_config)
    name = config.get(f"listener.name.{listener.lower()}.{_KEY}", config[_KEY])
    if name == KAFKAS_BUILDER:
        return None
    path = settings.principal_builder_class_path
    return JavaPrincipals(JavaClass(name, path, config, settings.jvm_options), listener)


def check_principal_builder(settings: Settings) -> None:
    """Raise ConfigurationError when it cannot be made, or not be configured."""
    builder = principal_builder(settings, settings.controller_listener)
    if builder is None:
        return
    try:
        check_class(
            builder.check,
            f"{_KEY} = {builder.class_name}",
            f"a {BUILDER}",
            f"{_KEY}.path = {settings.principal_builder_class_path!r}",
        )
    finally:
        builder.close()
