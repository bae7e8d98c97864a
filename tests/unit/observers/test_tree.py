"""What is marked as dirty until it is taken."""

from __future__ import annotations

from streaming.observers.tree import Dirty, DirtyPaths


def test_all_marks_are_taken_at_once_and_leave_nothing_behind():
    told = []
    dirty = DirtyPaths(lambda: told.append(bool(dirty)))
    assert not dirty
    assert dirty.drain() == Dirty()
    dirty.mark(Dirty(frozenset(["/a", "/b"])))
    dirty.mark(Dirty(frozenset(["/b", "/b/c"]), reappend=frozenset(["t"])))
    dirty.mark(Dirty(reappend=frozenset(["u"]), unwritable=frozenset(["u"])))
    assert told == [True] * 3
    taken = dirty.drain()
    assert taken == Dirty(
        frozenset(["/a", "/b", "/b/c"]), reappend=frozenset(["t", "u"]), unwritable=frozenset(["u"])
    )
    assert taken.below("/b") == ["c"]
    assert not dirty
    dirty.mark(Dirty(reload=True))
    dirty.mark(taken)
    dirty.mark(Dirty(reread_all=True))
    assert dirty.drain() == Dirty.union([taken, Dirty(reread_all=True, reload=True)])
