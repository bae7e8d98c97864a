"""Sums of verdicts, and that every difference that is meant is written down."""

from __future__ import annotations

from pathlib import Path

import orjson

from state.decisions import DecisionKind
from streaming.shadow.verdicts import Difference, Status, Tally, Verdict

DIFFERENCES = Path(__file__).parents[3] / "docs" / "differences.md"


def test_every_difference_is_a_row_of_the_document() -> None:
    rows = {
        line.split("|")[1].strip() for line in DIFFERENCES.read_text().splitlines() if "|" in line
    }
    assert {str(one) for one in Difference} <= rows


def test_a_divergence_is_what_is_missed_or_extra_and_not_explained() -> None:
    tally = Tally()
    for status in (Status.AGREED, Status.AGREED, Status.EXPLAINED, Status.MISSED):
        tally.add(Verdict(status, DecisionKind.DELETE_TOPIC, "t", None, 3, None, None))
    said = orjson.loads(orjson.dumps(tally.as_json()))
    assert (said["divergences"], said["agreed"], said["missed"], said["extra"]) == (1, 2, 1, 0)
    assert said["by_kind"]["agreed"] == {"delete_topic": 2}
