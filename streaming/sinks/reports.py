"""What all slots reported about one event, put together as the event that every machine acts on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np

from state.blocks import Column
from state.bodies import CheckShutdown

Block: TypeAlias = tuple[Mapping[str, Column], Mapping[str, Any]]
"""Columns and header of a decoded block."""


def places(block: Block, *names: str) -> list[list[Any]]:
    """Return [topic, partition, then the named columns] of each row."""
    columns, extra = block
    topics = np.array(extra["topics"], dtype=object)[columns["topic"]].tolist()
    others = (columns[name].tolist() for name in ("partition", *names))
    return [list(row) for row in zip(topics, *others, strict=True)]


def imbalance(report: Block, proposals: Block | None) -> dict[str, Any]:
    """Return the payload of leader_imbalance_reported from report_imbalance and, if there is one,
    propose_elections.
    """
    columns, _ = report
    brokers = list(map(str, columns["broker"].tolist()))
    counts = {
        name: dict(zip(brokers, columns[name].tolist(), strict=True))
        for name in ("preferred", "imbalanced")
    }
    return counts | {"proposals": [] if proposals is None else places(proposals, "broker")}


def checked_shutdown(request: CheckShutdown, at_risk: Block | None) -> dict[str, Any]:
    """Return the payload of controlled_shutdown_checked from check_shutdown and, if there is one,
    report_at_risk.
    """
    return {**request, "at_risk": [] if at_risk is None else places(at_risk)}
