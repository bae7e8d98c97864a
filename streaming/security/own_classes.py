"""What the settings of all classes of the brokers' own have in common."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from streaming.embedded.java_class import ClassUnusable
from streaming.errors import ConfigurationError
from streaming.keyfiles.properties import read_properties
from streaming.settings import Settings


def properties(file: str) -> dict[str, str]:
    """Return what a class is configured with besides, nothing without a file; raises
    ConfigurationError.
    """
    return read_properties(Path(file)) if file else {}


def broker_properties(settings: Settings, file: str) -> dict[str, str]:
    """Return what a class is configured with that wants a broker's properties: this node's, unless
    a file says otherwise; raises ConfigurationError.
    """
    return {
        "broker.id": str(settings.controller_id),
        "zookeeper.connect": settings.zookeeper_connect,
    } | properties(file)


def check_class(check: Callable[[], None], given: str, allowed: str, path: str) -> None:
    """Raise ConfigurationError for a class with which check raises ClassUnusable.

    given, path: the settings of its name and of its class path, with their values; allowed: what it
    may be.
    """
    try:
        check()
    except ClassUnusable as error:
        raise ConfigurationError(
            f"{given} cannot be used ({error}); allowed: {allowed}, and it, what it needs, and"
            f" Kafka's own classes in {path}"
        ) from error
