"""What may not be read among what is read at once."""

from __future__ import annotations

from collections.abc import Sequence

from streaming.zk.errors import RequestFailed, ZkErrorCode
from streaming.zk.multiread import read_each


class Store:
    """Says how long names are, but of private ones; asked: the names of each request."""

    def __init__(self, *private: str) -> None:
        self.private = private
        self.asked: list[list[str]] = []
        self.left_out: list[tuple[str, str]] = []

    def read(self, names: Sequence[str]) -> list[int]:
        self.asked.append([*names])
        for name in names:
            if name in self.private:
                raise RequestFailed(ZkErrorCode.NO_AUTH, f"/{name}")
        return [len(name) for name in names]

    def leave_out(self, name: str, error: RequestFailed) -> None:
        self.left_out.append((name, str(error)))


def test_what_may_be_read_is_read_at_once() -> None:
    store = Store("c")
    assert read_each(["a", "bb"], store.read, store.leave_out) == {"a": 1, "bb": 2}
    assert store.asked == [["a", "bb"]]
    assert read_each([], store.read, store.leave_out) == {}
    assert store.left_out == []


def test_what_may_not_be_read_costs_only_itself() -> None:
    store = Store("c", "d")
    names = ["a", "c", "bb", "d"]
    assert read_each(names, store.read, store.leave_out) == {"a": 1, "bb": 2}
    assert store.asked == [names, ["a"], ["c"], ["bb"], ["d"]]
    refused = [(name, f"ZooKeeper answered NO_AUTH for /{name}") for name in "cd"]
    assert store.left_out == refused
