"""`--set` of a replay: settings that decisions depend on, which travel in the log."""

from __future__ import annotations

from collections.abc import Sequence

from checkpoints.what_if import WHAT_IF_KEYS, Setting, in_events
from streaming.errors import ConfigurationError
from streaming.settings import known_keys
from streaming.settings_loader import checked_value, nearest_known

_TRUTH = {"true": True, "false": False}


def what_if_from(given: Sequence[str]) -> dict[str, Setting]:
    """Return settings given as key=value, as events have them.

    Raises ConfigurationError naming key, value and what is allowed.
    """
    chosen: dict[str, Setting] = {}
    for one in given:
        key, separator, value = (part.strip() for part in one.partition("="))
        if not separator:
            raise ConfigurationError(f"--set {one!r} is not of the form key=value")
        if key not in WHAT_IF_KEYS:
            nearest = nearest_known(key, WHAT_IF_KEYS)
            hint = f"; did you mean {nearest}?" if nearest else ""
            raise ConfigurationError(
                f"--set {key} = {value!r}: no decision of a replay depends on it{hint}; "
                f"allowed are {', '.join(sorted(WHAT_IF_KEYS))}"
            )
        chosen[key] = _value(key, value)
    return in_events(chosen)


def _value(key: str, value: str) -> Setting:
    if key not in known_keys():  # a fact of the brokers' version, which travels with settings
        if value.lower() not in _TRUTH:
            raise ConfigurationError(f"--set {key} = {value!r}: allowed are true, false")
        return _TRUTH[value.lower()]
    try:
        checked: Setting = checked_value(key, value)
    except ConfigurationError as refused:
        raise ConfigurationError(f"--set {key} = {value!r}: {refused}") from refused
    return checked
