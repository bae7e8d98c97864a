"""When a query that folds behind a head start may decide."""

from __future__ import annotations

import pytest

from streaming.starting import catch_up
from streaming.starting.catch_up import CatchUp


@pytest.fixture(autouse=True)
def limits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(catch_up, "_FEW", 1)
    monkeypatch.setattr(catch_up, "_MOST_BATCHES", 3)


@pytest.mark.parametrize(
    ("end", "done", "caught_up"),
    [
        pytest.param(10, 20, True, id="no more came than it has folded"),
        pytest.param(10, 21, False, id="more came"),
        pytest.param(1, 2, True, id="few are left"),
        pytest.param(30, 20, True, id="ahead"),
    ],
)
def test_a_query_keeps_up_that_folds_as_much_as_comes(end: int, done: int, caught_up: bool) -> None:
    assert CatchUp(0).query_folded(end, done, load_goes_on=False) is caught_up


def test_within_a_load_it_must_be_ahead() -> None:
    query = CatchUp(0)
    assert not query.query_folded(20, 20, load_goes_on=True)
    assert query.query_folded(21, 20, load_goes_on=True)


def test_one_that_comes_no_nearer_decides_in_the_end() -> None:
    query = CatchUp(0)
    nearer = [query.query_folded(end, 100 - end, load_goes_on=False) for end in range(1, 10)]
    assert not any(nearer), "however many batches it takes"
    no_nearer = [query.query_folded(end, 100 + end, load_goes_on=False) for end in (10, 11, 12)]
    assert no_nearer == [False, False, True]


def test_it_is_known_how_far_it_is_behind() -> None:
    query = CatchUp(5)
    assert query.behind(20) == 15
    query.query_folded(8, 20, load_goes_on=False)
    assert query.behind(20) == 12
