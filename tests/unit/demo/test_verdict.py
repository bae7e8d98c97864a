"""What counts as lost and as a duplicate."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest
from kafka import TopicPartition
from kafka.errors import KafkaTimeoutError

from streaming.demo import verdict
from streaming.demo.producer import Acked
from streaming.demo.verdict import NotReadable, judge, read_back

STORED = {(0, 0): b"a", (0, 1): b"b", (1, 0): b"c"}


def test_nothing_is_lost_when_all_is_where_it_was_acked() -> None:
    acked = [Acked(0, 0, b"a"), Acked(0, 1, b"b"), Acked(1, 0, b"c")]
    assert str(judge(acked, STORED)) == "acked 3, lost 0, duplicates 0"


def test_a_record_elsewhere_than_it_was_acked_is_lost() -> None:
    moved, gone, elsewhere = Acked(0, 2, b"b"), Acked(0, 0, b"x"), Acked(1, 1, b"a")
    assert judge([moved, gone, elsewhere], STORED).lost == [moved, gone, elsewhere]


def test_a_record_acked_without_an_offset_may_be_anywhere_in_its_partition() -> None:
    there, in_another_partition = Acked(0, -1, b"b"), Acked(1, -1, b"b")
    assert judge([there, in_another_partition], STORED).lost == [in_another_partition]


def test_copies_are_counted_whether_acked_or_not() -> None:
    stored = STORED | {(0, 2): b"a", (0, 3): b"a", (1, 1): b"b"}
    assert judge([], stored).duplicates == 2


class OfOnePartition:
    """A consumer; as many of them as `silent` says hear nothing of ends."""

    silent = 0
    open_clients = 0

    def __init__(self, **_: Any) -> None:
        OfOnePartition.open_clients += 1

    def end_offsets(self, assigned: Sequence[TopicPartition], timeout_ms: int) -> dict[Any, int]:
        assert timeout_ms > 0
        if OfOnePartition.silent:
            OfOnePartition.silent -= 1
            raise KafkaTimeoutError
        return dict.fromkeys(assigned, 1)

    def position(self, _: TopicPartition) -> int:
        return int(self.read)

    read = False

    def assign(self, _: Sequence[TopicPartition]) -> None: ...

    def seek_to_beginning(self, *_: TopicPartition) -> None: ...

    def poll(self, timeout_ms: int) -> dict[TopicPartition, list[Any]]:
        assert timeout_ms > 0
        self.read = True
        return {TopicPartition("t", 0): [SimpleNamespace(partition=0, offset=0, value=b"a")]}

    def close(self, *, autocommit: bool) -> None:
        assert not autocommit
        OfOnePartition.open_clients -= 1


@pytest.mark.parametrize("silent", [0, 2, 3])
def test_ends_are_asked_for_again_by_another_client(
    monkeypatch: pytest.MonkeyPatch, silent: int
) -> None:
    monkeypatch.setattr(verdict, "KafkaConsumer", OfOnePartition)
    OfOnePartition.silent = silent
    if silent < 3:
        assert read_back(["there:1"], "t", [0]) == {(0, 0): b"a"}
    else:
        with pytest.raises(NotReadable, match="do not say where"):
            read_back(["there:1"], "t", [0])
    assert OfOnePartition.open_clients == 0
