"""The brokers' own callback handlers for logins, as they are configured."""

from __future__ import annotations

from streaming.embedded.java_class import JavaClass
from streaming.security.java_logins import HANDLER, JavaLogins
from streaming.security.own_classes import broker_properties, check_class
from streaming.settings import Settings


def java_logins(settings: Settings, listener: str) -> dict[str, JavaLogins]:
    """Return what finds out who comes to a listener, by the mechanisms that have a class for that;
    raises ConfigurationError.
    """
    config = broker_properties(settings, settings.sasl_server_callback_handler_config)
    path = settings.sasl_server_callback_handler_class_path
    return {
        mechanism: JavaLogins(
            JavaClass(name, path, config, settings.jvm_options), listener, mechanism
        )
        for mechanism, name in settings.login_classes.items()
    }


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
