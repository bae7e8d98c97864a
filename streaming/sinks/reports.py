"""What all slots reported about one event, put together as the event that every machine acts on."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from state.bodies import CheckShutdown
from streaming.sinks.batch import SinkDecision

_ALL = slice(None)


def places(
    block: SinkDecision, *names: str, rows: npt.NDArray[np.bool_] | slice = _ALL
) -> list[list[Any]]:
    """Return [topic, partition, then the named columns] of a block's rows, or some of them."""
    columns = {name: block.columns[name][rows] for name in ("topic", "partition", *names)}
    topics = np.array(block.topics, dtype=object)[columns.pop("topic")].tolist()
    others = (column.tolist() for column in columns.values())
    return [list(row) for row in zip(topics, *others, strict=True)]


def imbalance(report: SinkDecision, proposals: SinkDecision | None) -> dict[str, Any]:
    """Return the payload of leader_imbalance_reported from report_imbalance and, if there is one,
    propose_elections.
    """
    brokers = list(map(str, report.columns["broker"].tolist()))
    counts = {
        name: dict(zip(brokers, report.columns[name].tolist(), strict=True))
        for name in ("preferred", "imbalanced", "behind")
        if name in report.columns
    }
    return counts | {"proposals": [] if proposals is None else places(proposals, "broker")}


def checked_shutdown(request: CheckShutdown, at_risk: SinkDecision | None) -> dict[str, Any]:
    """Return the payload of controlled_shutdown_checked from check_shutdown and, if there is one,
    report_at_risk.
    """
    return {**request, "at_risk": [] if at_risk is None else places(at_risk)}
