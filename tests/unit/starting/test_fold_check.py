"""What a head start decided beside what the query decides."""

from __future__ import annotations

from dataclasses import replace

from streaming.starting.fold_check import FoldCheck
from tests.fixtures.folding import fold_log
from tests.logs.state_logs import long_log

SLOTS = 3
DECISIONS = fold_log(long_log(5, plausible=True)[:20], SLOTS)[1]


def test_the_same_decisions_in_other_batches_do_not_differ() -> None:
    check = FoldCheck()
    check.ahead(one for one in DECISIONS if one.offset < 15)
    check.query(DECISIONS[:4], 0, 15)
    assert check.differs(), "the query has not folded all of it"
    check.query(DECISIONS[4:], 0, 15)
    assert not check.differs()
    assert check.decided_ahead == check.decided_by_query < len(DECISIONS)


def test_only_what_was_decided_ahead_is_compared() -> None:
    check = FoldCheck()
    check.ahead(one for one in DECISIONS if 5 <= one.offset < 15)
    check.query(DECISIONS, 5, 15)
    assert not check.differs()


def test_another_decision_differs() -> None:
    check = FoldCheck()
    check.ahead(DECISIONS)
    check.query([*DECISIONS[:-1], replace(DECISIONS[-1], body=b"other")], 0, 20)
    assert check.differs()
