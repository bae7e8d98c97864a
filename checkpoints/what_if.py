"""What would have been decided under other settings: the events that carry them, rewritten.

Decisions read nothing but the log, so a setting can only be changed where it travels: in the
`config` of controller_elected, cluster_config_changed and group_coordinator_configured; and in the
machines that a replay goes on from, which took it from there. The rest of the log stays what
happened, so what is recorded after the first difference is what the cluster did under the real
decisions.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

import orjson

from checkpoints.machine_format import decode_machine, encode_machine
from checkpoints.replay import States
from state.cluster.cluster import Cluster
from state.cluster.config import CONFIG
from state.cluster.leader_rebalance import LEADER_REBALANCE_TIMER
from state.event_kinds import EventKind
from state.groups.config import CONFIG_KEYS
from state.groups.slot import GroupSlot
from state.step import Machine

Setting: TypeAlias = bool | int | str

CONFIG_KINDS = frozenset(
    {
        EventKind.CONTROLLER_ELECTED,
        EventKind.CLUSTER_CONFIG_CHANGED,
        EventKind.GROUP_COORDINATOR_CONFIGURED,
    }
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


def in_events(settings: Mapping[str, Setting]) -> dict[str, Setting]:
    """Return settings under the names and in the units that events have them."""
    found: dict[str, Setting] = {}
    for name, value in settings.items():
        key = _KEYS[name]
        found[key] = value * _UNITS[key].factor if key in _UNITS else value
    return found


def rewritten(kind: str, payload: bytes, config: Mapping[str, Setting]) -> bytes:
    """Return an event's payload as it would be under other settings.

    config: as `in_events` returns it. A start (of the controller, of the coordinator) carries all
    its settings, so all of them are set; a change carries what changed, so only what is there is
    replaced. What cannot be read stays as it is, to be set aside as it was.
    """
    if kind not in CONFIG_KINDS:
        return payload
    chosen = _of_kind(config, groups=kind == EventKind.GROUP_COORDINATOR_CONFIGURED)
    try:
        body = orjson.loads(payload)
        before = body["config"]
        if kind == EventKind.CLUSTER_CONFIG_CHANGED:
            chosen = {key: value for key, value in chosen.items() if key in before}
        body["config"] = {**before, **chosen}
    except (ValueError, TypeError, KeyError):
        return payload
    return orjson.dumps(body) if chosen else payload


def under_settings(states: States, config: Mapping[str, Setting]) -> States:
    """Return machines as they would be had the settings been so since they were last told.

    config: as `in_events` returns it. What they decided stays, but for a rebalance that would not
    be awaited. Raises CorruptBlock.
    """
    if not config:
        return states
    machines = ((key, decode_machine(data)) for key, data in states.items())
    return {key: encode_machine(_told(machine, config)) for key, machine in machines}


def _told(machine: Machine, config: Mapping[str, Setting]) -> Machine:
    chosen = _of_kind(config, groups=isinstance(machine, GroupSlot))
    machine.config = machine.config.configured(chosen)
    if isinstance(machine, Cluster) and chosen.get("auto.leader.rebalance.enable") is False:
        machine.timers.pop(LEADER_REBALANCE_TIMER, None)
    return machine


def _of_kind(config: Mapping[str, Setting], *, groups: bool) -> dict[str, Setting]:
    known = CONFIG_KEYS if groups else CONFIG
    return {key: value for key, value in config.items() if key in known}
