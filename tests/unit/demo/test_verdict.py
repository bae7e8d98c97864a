"""What counts as lost and as a duplicate."""

from __future__ import annotations

from streaming.demo.producer import Acked
from streaming.demo.verdict import judge

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
