"""A cluster that the tests of a module share until one of them fails."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack
from typing import Generic, TypeVar

T = TypeVar("T")


class Shared(Generic[T]):
    """Makes a cluster when a test wants one, and another after a test that failed with it.

    A second try of that test finds no topics of the first one, and no brokers that it killed.
    """

    def __init__(self, make: Callable[[], AbstractContextManager[T]]) -> None:
        self._make = make
        self._open = ExitStack()
        self._made: list[T] = []

    def get(self) -> T:
        """Return the cluster; make it if there is none."""
        if not self._made:
            self._open.close()
            self._made.append(self._open.enter_context(self._make()))
        return self._made[0]

    def spoil(self) -> None:
        """Let the next test have another cluster; this one lasts until then."""
        self._made.clear()

    def __enter__(self) -> Shared[T]:
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()
