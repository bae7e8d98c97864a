"""The configuration that decisions about groups depend on."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from state.json_values import config_number


@dataclass(frozen=True, slots=True)
class GroupConfig:
    """Values by Kafka's names and defaults; times in ms.

    leave_rebalance_delay_ms: of our own, and 0 unless configured.
    """

    min_session_timeout_ms: int = 6_000
    max_session_timeout_ms: int = 1_800_000
    max_size: int = 2_147_483_647
    initial_rebalance_delay_ms: int = 3_000
    offset_metadata_max_bytes: int = 4_096
    offsets_retention_ms: int = 10_080 * 60_000
    leave_rebalance_delay_ms: int = 0

    def configured(self, config: dict[str, Any]) -> GroupConfig:
        """Return a copy with the values of a group_coordinator_configured event; config has passed
        `checked_group_config`.
        """
        fields = {_FIELDS[key]: value for key, value in config.items()}
        return replace(self, **fields)


_FIELDS = {
    "group.min.session.timeout.ms": "min_session_timeout_ms",
    "group.max.session.timeout.ms": "max_session_timeout_ms",
    "group.max.size": "max_size",
    "group.initial.rebalance.delay.ms": "initial_rebalance_delay_ms",
    "offset.metadata.max.bytes": "offset_metadata_max_bytes",
    "offsets.retention.ms": "offsets_retention_ms",
    "group.leave.rebalance.delay.ms": "leave_rebalance_delay_ms",
}

CONFIG_KEYS = tuple(_FIELDS)
"""What of the configuration decisions depend on."""


def checked_group_config(config: dict[str, object]) -> dict[str, object]:
    """Return the keys that decisions depend on; raises TypeError, ValueError as
    `config_number` does.
    """
    return {key: config_number(key, config[key]) for key in CONFIG_KEYS if key in config}


def offsets_retention_ms(minutes: int) -> int:
    """Return `offsets.retention.minutes` in ms, whatever their number."""
    return minutes * 60_000
