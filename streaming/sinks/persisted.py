"""The decisions of a batch as the image and the front may see them: without what was not
written.
"""

from __future__ import annotations

from collections.abc import Iterator

from state.blocks import encode_block
from state.decisions import DecisionKind
from streaming.sinks.batch import DecidedBatch, SinkDecision

VISIBLE = frozenset(
    {
        DecisionKind.UPDATE_BROKERS,
        DecisionKind.CHANGE_PARTITIONS,
        DecisionKind.FORGET_TOPIC,
        DecisionKind.ARM_TIMER,
        DecisionKind.SET_ASIDE,
    }
)
"""What readers of the image, the clock and the counters in the front need."""


def persisted(batch: DecidedBatch) -> Iterator[tuple[int, DecisionKind, bytes]]:
    """Yield (event offset, kind, body) of the visible decisions that took effect."""
    for decision in batch.decisions:
        if decision.kind in VISIBLE and not decision.failed:
            body = _body(decision)
            if body is not None:
                yield decision.offset, decision.kind, body


def _body(decision: SinkDecision) -> bytes | None:
    if not decision.lost.any():
        return decision.id.body
    if decision.lost.all():
        return None
    kept = ~decision.lost
    return encode_block(
        {name: column[kept] for name, column in decision.columns.items()}, decision.extra
    )
