"""How many leaders a batch elected, by the rule that elected them."""

from __future__ import annotations

import numpy as np

from state.decisions import ELECTIONS, Action, DecisionKind, Rule, acts
from streaming.sinks.batch import DecidedBatch

_WRITTEN = Action.WRITE | Action.CREATE


def elections(batch: DecidedBatch) -> dict[str, int]:
    """Return how many partitions each rule gave a leader to, by the rule's name in lower case.

    Counted are rows that were written; rules that elected nobody are not there.
    """
    counts = np.zeros(len(Rule), dtype=np.int64)
    for one in batch.of_kind(DecisionKind.CHANGE_PARTITIONS):
        written = acts(one.columns, _WRITTEN) & ~one.lost
        counts += np.bincount(one.columns["rule"][written], minlength=len(Rule))
    return {rule.name.lower(): int(counts[rule]) for rule in ELECTIONS if counts[rule]}
