"""What would have been decided under other settings: the events that carry them, rewritten.

Decisions read nothing but the log, so a setting can only be changed where it travels: in the
`config` of controller_elected and cluster_config_changed. The rest of the log stays what happened,
so what is recorded after the first difference is what the cluster did under the real decisions.
"""

from __future__ import annotations

from collections.abc import Mapping

import orjson

from state.cluster.authority import CONFIG
from state.events import EventKind

CONFIG_KINDS = frozenset({EventKind.CONTROLLER_ELECTED, EventKind.CLUSTER_CONFIG_CHANGED})
"""Kinds of the events that carry settings."""

INTERVAL_SECONDS = "leader.imbalance.check.interval.seconds"
_INTERVAL_MS = "leader.imbalance.check.interval.ms"

WHAT_IF_KEYS: Mapping[str, type] = {
    INTERVAL_SECONDS if key == _INTERVAL_MS else key: kind for key, (_, kind) in CONFIG.items()
}
"""Settings that a what-if may change, by the name users know, with the type of their value."""


def in_events(settings: Mapping[str, bool | int]) -> dict[str, bool | int]:
    """Return settings under the names and in the units that events have them."""
    return {
        _INTERVAL_MS if key == INTERVAL_SECONDS else key: value * 1000
        if key == INTERVAL_SECONDS
        else value
        for key, value in settings.items()
    }


def rewritten(kind: str, payload: bytes, config: Mapping[str, bool | int]) -> bytes:
    """Return an event's payload as it would be under other settings.

    config: as `in_events` returns it. An election carries all settings, so all of them are set; a
    change carries what changed, so only what is there is replaced. What cannot be read stays as
    it is, to be set aside as it was.
    """
    if kind not in CONFIG_KINDS:
        return payload
    try:
        body = orjson.loads(payload)
        before = body["config"]
        chosen = (
            config
            if kind == EventKind.CONTROLLER_ELECTED
            else {key: value for key, value in config.items() if key in before}
        )
        body["config"] = {**before, **chosen}
    except (ValueError, TypeError, KeyError):
        return payload
    return orjson.dumps(body)
