"""The writes of one call: made while others are under way, and in their order for each znode."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from hypothesis import given
from hypothesis import strategies as st

from streaming.zk.errors import ConnectionLost
from streaming.zk.fenced import FencedWriter
from streaming.zk.ops import Create, Delete, MultiOp, SetData, WriteOp
from streaming.zk.outcomes import OutcomeKind
from streaming.zk.write_limits import WriteLimits
from streaming.zk.write_source import WriteSource
from streaming.zk.znodes.controller import CONTROLLER_EPOCH_PATH
from tests.property.control_zookeeper import Answered, MemorySession

LIMITS = WriteLimits(max_ops_per_multi=3, jute_maxbuffer=20_000, max_in_flight=2)
TOO_LARGE = b'"%s"' % bytes(LIMITS.max_bytes_per_write).replace(b"\0", b"x")
ASKED = st.tuples(st.sampled_from(["/a", "/b", "/c", "/d", "/e", "/f"]), st.integers(-1, 2))
"""A znode, and the version that it is to have; -1 to be made."""


class Losing(MemorySession):
    """Answers of some multis are lost, after they were made or before."""

    def __init__(self, lost: Sequence[tuple[int, bool]] = ()) -> None:
        super().__init__()
        self.create(CONTROLLER_EPOCH_PATH, b"1")
        self._lost = dict(lost)
        self.multis: list[int] = []

    def multi_async(self, ops: Sequence[MultiOp]) -> Answered:
        made = self._lost.get(len(self.multis))
        self.multis.append(len(ops) - 1)
        answer = super().multi_async(ops) if made in {None, True} else None
        return answer if made is None else Answered(ConnectionLost("lost"))


def writer(session: MemorySession) -> FencedWriter:
    return FencedWriter(session, 0, LIMITS)


def one_by_one(
    ops: Sequence[Create | SetData],
) -> tuple[dict[str, tuple[bytes, int]], list[OutcomeKind]]:
    """Return the znodes and outcomes when each write is a call, and none follows a conflict at its
    znode; what is too large is always made, to be rejected.
    """
    session = Losing()
    given_up: dict[str, OutcomeKind] = {}
    kinds = []
    for op in ops:
        kind = None if op.data == TOO_LARGE else given_up.get(op.path)
        if kind is None:
            kind = writer(session).write([op])[0].kind
        if kind is OutcomeKind.CONFLICT:
            given_up[op.path] = kind
        kinds.append(kind)
    return nodes(session), kinds


def nodes(session: MemorySession) -> dict[str, tuple[bytes, int]]:
    return {path: (node.data, node.version) for path, node in session.nodes.items()}


@given(asked=st.lists(ASKED, max_size=20), large=st.sets(st.integers(0, 19), max_size=2))
def test_writes_of_one_call_do_what_they_do_one_by_one(asked, large):
    """Whether they fit the znodes or not; no two write the same."""
    ops: list[Create | SetData] = []
    for number, (path, version) in enumerate(asked):
        data = TOO_LARGE if number in large else str(number).encode()
        ops.append(Create(path, data) if version < 0 else SetData(path, data, version))
    session = Losing()
    found = [one.kind for one in writer(session).write(iter(ops))]
    assert (nodes(session), found) == one_by_one(ops)


@given(
    paths=st.lists(st.integers(0, 12).map("/{}".format), max_size=20),
    lost=st.lists(st.tuples(st.integers(0, 6), st.booleans()), max_size=2),
)
def test_lost_connections_lose_and_double_nothing(paths, lost):
    """The first write to a znode creates it, the others set it, at the versions that makes."""
    ops: list[WriteOp] = []
    versions: dict[str, int] = {}
    for number, path in enumerate(paths):
        data = str(number).encode()
        known = versions.get(path)
        ops.append(Create(path, data) if known is None else SetData(path, data, known))
        versions[path] = 0 if known is None else known + 1
    session = Losing(lost)
    outcomes = writer(session).write(iter(ops))
    assert {one.kind for one in outcomes} <= {OutcomeKind.WRITTEN}
    last = {op.path: op.data for op in ops if not isinstance(op, Delete)}
    written = {path: (data, versions[path]) for path, data in last.items()}
    assert {path: node for path, node in nodes(session).items() if path in written} == written


@given(
    children=st.lists(st.integers(0, 9), max_size=12),
    taken=st.sets(st.integers(0, 11), max_size=3),
    lost=st.lists(st.tuples(st.integers(0, 12), st.booleans()), max_size=2),
)
def test_a_multi_that_fails_costs_no_znode_below_its_own(children, taken, lost):
    """Children go in multis behind their parents, which are made again when theirs failed."""
    session = Losing(lost)
    session.create("/taken", b"0")
    ops = []
    for number, count in enumerate(children):
        ops += [Create(f"/{number}"), *(Create(f"/{number}/{child}") for child in range(count))]
        ops += [Create("/taken", b"1")] if number in taken else []
    outcomes = writer(session).write(iter(ops))
    conflicts = [op.path for op, one in zip(ops, outcomes, strict=True) if one.kind != "written"]
    assert set(conflicts) <= {"/taken"}
    assert {op.path for op in ops} <= set(session.nodes)


def test_writes_are_made_while_others_are_under_way():
    session = Losing()
    sent_when_made = []

    def making() -> Iterator[WriteOp]:
        for number in range(12):
            sent_when_made.append(sum(session.multis))
            yield Create(f"/{number}")

    assert len(writer(session).write(making())) == 12
    assert sent_when_made == [0, 0, 0, 3, 3, 3, 6, 6, 6, 9, 9, 9]


def test_a_fenced_call_knows_of_all_its_writes():
    session = Losing()
    session.change(CONTROLLER_EPOCH_PATH, b"2")
    outcomes = writer(session).write(Create(f"/{number}") for number in range(20))
    assert [one.kind for one in outcomes] == [OutcomeKind.FENCED] * 20
    assert sum(session.multis) <= LIMITS.max_ops_per_multi * LIMITS.max_in_flight


def test_what_goes_straight_ends_before_a_znode_that_has_a_write_already():
    ops = [Create("/a"), Create("/b"), Create("/c"), Create("/d"), SetData("/a", b"", 0)]
    source = WriteSource(iter(ops), LIMITS, 0)
    assert source.next_multi() == range(3)
    assert source.next_multi() is None
    assert source.rest() == range(3, 5)
    assert source.ops == ops


def test_what_goes_straight_is_cut_by_size_too():
    large = bytes(LIMITS.max_bytes_per_multi // 2)
    source = WriteSource([Create(f"/{n}", large) for n in range(3)], LIMITS, 0)
    assert [source.next_multi() for _ in range(4)] == [range(1), range(1, 2), range(2, 3), None]
    assert source.rest() == range(3, 3)
