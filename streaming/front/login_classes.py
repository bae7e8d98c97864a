"""The brokers' own callback handlers for logins, as they are configured."""

from __future__ import annotations

from collections.abc import Mapping

from streaming.embedded.java_class import JavaClass
from streaming.front.own_classes import check_class, properties
from streaming.security.java_logins import HANDLER, JavaLogins
from streaming.settings import Settings


def java_logins(settings: Settings, listener: str) -> dict[str, JavaLogins]:
    """Return what finds out who comes to a listener, by the mechanisms that have a class for that;
    raises ConfigurationError.
    """
    given = properties(settings.sasl_server_callback_handler_config)
    config, path = _of_listener(given, listener), settings.sasl_server_callback_handler_class_path
    return {
        mechanism: JavaLogins(
            JavaClass(name, path, config, settings.jvm_options), listener, mechanism
        )
        for mechanism, name in settings.login_classes.items()
    }


def _of_listener(given: Mapping[str, str], listener: str) -> dict[str, str]:
    """Return the properties of a listener: with its prefix they count before others
    (AbstractConfig.valuesWithPrefixOverride).
    """
    prefix = f"listener.name.{listener.lower()}."
    own = {key.removeprefix(prefix): given[key] for key in given if key.startswith(prefix)}
    return {**given, **own}


def check_login_classes(settings: Settings) -> None:
    """Raise ConfigurationError when a handler cannot be made, or not be configured."""
    key, classes = "sasl.server.callback.handler.class", settings.login_classes
    for mechanism, logins in java_logins(settings, settings.controller_listener).items():
        try:
            check_class(
                logins.check,
                f"{mechanism.lower()}.{key} = {classes[mechanism]}",
                f"a {HANDLER}",
                f"{key}.path = {settings.sasl_server_callback_handler_class_path!r}",
            )
        finally:
            logins.close()
