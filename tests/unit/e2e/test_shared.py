"""What the tests of a module share, until one of them fails."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.e2e.shared import Shared


def test_tests_share_what_is_made_until_one_of_them_fails() -> None:
    numbers, ended = itertools.count(1), []

    @contextmanager
    def made() -> Iterator[int]:
        number = next(numbers)
        yield number
        ended.append(number)

    with Shared(made) as shared:
        assert [shared.get(), shared.get()] == [1, 1]
        shared.spoil()
        assert ended == [], "what a test has to close may need it"
        assert [shared.get(), shared.get()] == [2, 2]
        assert ended == [1]
    assert ended == [1, 2]


def test_what_could_not_be_made_is_made_for_the_next_test() -> None:
    tries = itertools.count(1)

    @contextmanager
    def made() -> Iterator[int]:
        if (number := next(tries)) == 1:
            raise TimeoutError
        yield number

    with Shared(made) as shared:
        with pytest.raises(TimeoutError):
            shared.get()
        assert shared.get() == 2
