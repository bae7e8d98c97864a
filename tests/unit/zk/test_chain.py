"""How a chain of writes to one znode is settled by what the znode is now."""

from __future__ import annotations

import pytest

from streaming.zk.chain import Chain
from streaming.zk.ops import Create, Delete, SetData
from streaming.zk.outcomes import OutcomeKind
from streaming.zk.types import ZNode


def znode(data: bytes, version: int) -> ZNode:
    return ZNode(data, version, czxid=1, mzxid=2, mtime_ms=3, ephemeral_owner=0)


def chain_of(*ops) -> Chain:
    chain = Chain("/a")
    for place, op in enumerate(ops):
        chain.add(place, op)
    return chain


SETS = (SetData("/a", b"one", 4), SetData("/a", b"two", 5), SetData("/a", b"three", 6))


@pytest.mark.parametrize(
    ("current", "written", "conflicts"),
    [
        (znode(b"before", 4), [], 0),
        (znode(b"one", 5), [5], 0),
        (znode(b"two", 6), [5, 6], 0),
        (znode(b"three", 7), [5, 6, 7], 0),
        (znode(b"other", 5), [], 3),
        (znode(b"two", 7), [], 3),
        (znode(b"older", 3), [], 3),
        (None, [], 3),
    ],
)
def test_a_chain_goes_on_where_the_znode_is(current, written, conflicts):
    chain = chain_of(*SETS)
    outcomes = [outcome for _, outcome in chain.judge(current)]
    assert [o.version for o in outcomes if o.kind is OutcomeKind.WRITTEN] == written
    assert [o.current for o in outcomes if o.kind is OutcomeKind.CONFLICT] == [current] * conflicts
    assert chain.done == len(outcomes)


@pytest.mark.parametrize(
    ("op", "current", "kind"),
    [
        (Create("/a", b"x"), None, None),
        (Create("/a", b"x"), znode(b"x", 0), OutcomeKind.WRITTEN),
        (Create("/a", b"x"), znode(b"x", 1), OutcomeKind.CONFLICT),
        (Create("/a", b"x"), znode(b"y", 0), OutcomeKind.CONFLICT),
        (Delete("/a", 3), None, OutcomeKind.WRITTEN),
        (Delete("/a", 3), znode(b"x", 3), None),
        (Delete("/a", 3), znode(b"x", 4), OutcomeKind.CONFLICT),
        (Delete("/a"), znode(b"x", 4), None),
        (SetData("/a", b"x", -1), znode(b"x", 9), OutcomeKind.WRITTEN),
        (SetData("/a", b"x", -1), znode(b"y", 9), None),
    ],
)
def test_what_a_znode_holds_tells_what_became_of_a_write_or_leaves_it_open(op, current, kind):
    outcomes = [outcome.kind for _, outcome in chain_of(op).judge(current)]
    assert outcomes == ([] if kind is None else [kind])


def test_a_new_znode_and_its_first_changes():
    chain = chain_of(Create("/a", b"x"), SetData("/a", b"y", 0), Delete("/a", 1))
    assert [o.version for _, o in chain.judge(znode(b"y", 1))] == [0, 1]
    assert chain.next_op == Delete("/a", 1)
    assert [o.version for _, o in chain.judge(None)] == [-1]
    assert chain.finished
