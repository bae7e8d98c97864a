"""What would have been decided under other settings: the events that carry them, rewritten.

Decisions read nothing but the log, so a setting can only be changed where it travels: in the
`config` of controller_elected, cluster_config_changed and group_coordinator_configured. The rest of
the log stays what happened, so what is recorded after the first difference is what the cluster did
under the real decisions.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import orjson

from state.cluster.authority import CONFIG
from state.events import EventKind
from state.groups.config import CONFIG_KEYS

_GROUP_KIND = "group_coordinator_configured"
CONFIG_KINDS = frozenset(
    {EventKind.CONTROLLER_ELECTED, EventKind.CLUSTER_CONFIG_CHANGED, _GROUP_KIND}
)
"""Kinds of the events that carry settings."""


@dataclass(frozen=True, slots=True)
class _Unit:
    """The name and unit of a setting for users, where events have another."""

    name: str
    factor: int


_UNITS: Mapping[str, _Unit] = {
    "leader.imbalance.check.interval.ms": _Unit("leader.imbalance.check.interval.seconds", 1_000),
    "offsets.retention.ms": _Unit("offsets.retention.minutes", 60_000),
}
_IN_EVENTS = {
    **{key: kind for key, (_, kind) in CONFIG.items()},
    **dict.fromkeys(CONFIG_KEYS, int),
}
_KEYS = {(_UNITS[key].name if key in _UNITS else key): key for key in _IN_EVENTS}

WHAT_IF_KEYS: Mapping[str, type] = {name: _IN_EVENTS[key] for name, key in _KEYS.items()}
"""Settings that a what-if may change, by the name users know, with the type of their value."""


def in_events(settings: Mapping[str, bool | int]) -> dict[str, bool | int]:
    """Return settings under the names and in the units that events have them."""
    found: dict[str, bool | int] = {}
    for name, value in settings.items():
        key = _KEYS[name]
        found[key] = value * _UNITS[key].factor if key in _UNITS else value
    return found


def rewritten(kind: str, payload: bytes, config: Mapping[str, bool | int]) -> bytes:
    """Return an event's payload as it would be under other settings.

    config: as `in_events` returns it. A start (of the controller, of the coordinator) carries all
    its settings, so all of them are set; a change carries what changed, so only what is there is
    replaced. What cannot be read stays as it is, to be set aside as it was.
    """
    if kind not in CONFIG_KINDS:
        return payload
    known = CONFIG_KEYS if kind == _GROUP_KIND else CONFIG
    chosen = {key: value for key, value in config.items() if key in known}
    try:
        body = orjson.loads(payload)
        before = body["config"]
        if kind == EventKind.CLUSTER_CONFIG_CHANGED:
            chosen = {key: value for key, value in chosen.items() if key in before}
        body["config"] = {**before, **chosen}
    except (ValueError, TypeError, KeyError):
        return payload
    return orjson.dumps(body) if chosen else payload
