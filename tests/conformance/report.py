"""What the runner says: a line per failure and per skip, and a last line with the counts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

import orjson

from tests.conformance.verdict import Outcome, Verdict


def lines(verdicts: Iterable[Verdict]) -> Iterator[str]:
    """Yield the report's lines."""
    counts: Counter[Outcome] = Counter()
    reasons: Counter[str] = Counter()
    for verdict in verdicts:
        counts[verdict.outcome] += 1
        if verdict.outcome is Outcome.SKIPPED:
            reasons[verdict.reason] += 1
            yield f"SKIPPED {verdict.id}: {verdict.reason}"
        for failure in verdict.failures:
            yield (
                f"FAILED {verdict.id}: {failure.fact}: "
                f"expected {_text(failure.expected)}, came {_text(failure.came)}"
            )
    for reason, count in reasons.most_common():
        yield f"skipped {count}: {reason}"
    yield (
        f"{counts[Outcome.PASSED]} passed, {counts[Outcome.FAILED]} failed, "
        f"{counts[Outcome.SKIPPED]} skipped"
    )


def _text(value: object) -> str:
    return orjson.dumps(value, default=str, option=orjson.OPT_NON_STR_KEYS).decode()
