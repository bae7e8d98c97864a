"""The brokers' own callback handlers for logins, as they are configured."""

from __future__ import annotations

from pathlib import Path

from streaming.errors import ConfigurationError
from streaming.keyfiles.properties import read_properties
from streaming.security.java_logins import HANDLER, JavaLogins, LoginClass, LoginClassUnusable
from streaming.settings import Settings


def java_logins(settings: Settings, listener: str, mechanism: str) -> JavaLogins | None:
    """Return what finds out who comes to a listener by a mechanism, None without a class for that;
    raises ConfigurationError.
    """
    name = settings.login_classes.get(mechanism)
    if name is None:
        return None
    class_ = LoginClass(
        name,
        settings.sasl_server_callback_handler_class_path,
        _config(settings, listener),
        settings.jvm_options,
    )
    return JavaLogins(class_, listener, mechanism)


def _config(settings: Settings, listener: str) -> dict[str, str]:
    """Return the properties of a listener: with its prefix they count before others
    (AbstractConfig.valuesWithPrefixOverride).
    """
    file = settings.sasl_server_callback_handler_config
    given = read_properties(Path(file)) if file else {}
    prefix = f"listener.name.{listener.lower()}."
    own = {key.removeprefix(prefix): given[key] for key in given if key.startswith(prefix)}
    return {**given, **own}


def check_login_classes(settings: Settings) -> None:
    """Raise ConfigurationError when a handler cannot be made, or not be configured."""
    for mechanism, name in settings.login_classes.items():
        logins = java_logins(settings, settings.controller_listener, mechanism)
        assert logins is not None
        try:
            logins.check()
        except LoginClassUnusable as error:
            raise ConfigurationError(
                f"{mechanism.lower()}.sasl.server.callback.handler.class = {name} cannot be used"
                f" ({error}); allowed: a {HANDLER}, and it, what it needs, and Kafka's own classes"
                " in sasl.server.callback.handler.class.path ="
                f" {settings.sasl_server_callback_handler_class_path!r}"
            ) from error
