"""Which writes go together in one multi: by number, by size, and by what went wrong before."""

from __future__ import annotations

from collections import deque

import pytest

from streaming.zk.chain import Chain
from streaming.zk.multis import culprit, next_batch, parts
from streaming.zk.ops import SetData, op_bytes
from streaming.zk.write_limits import WriteLimits

LIMITS = WriteLimits(max_ops_per_multi=3, jute_maxbuffer=20_000)
ROOM = LIMITS.max_bytes_per_multi
CHROOT_BYTES = 7


def chain(name: str, writes: int, data: bytes = b"") -> Chain:
    made = Chain(name)
    for place in range(writes):
        made.add(place, SetData(name, data, place))
    return made


def sent(waiting: deque[Chain]) -> list[tuple[str, int]]:
    batch, ops = next_batch(waiting, LIMITS, CHROOT_BYTES)
    assert [op.path for op in ops] == [one.path for one, count in batch for _ in range(count)]
    return [(one.path, count) for one, count in batch]


@pytest.mark.parametrize(
    ("sizes", "cut"),
    [
        pytest.param([], [], id="nothing"),
        pytest.param([1] * 7, [3, 3, 1], id="by number"),
        pytest.param([ROOM - 1, 1, 1], [2, 1], id="by size"),
        pytest.param([1, ROOM + 1, 1], [1, 1, 1], id="a large one goes alone"),
    ],
)
def test_writes_are_cut_into_multis(sizes, cut):
    found = list(parts(sizes, LIMITS))
    assert [len(part) for part in found] == cut
    assert [place for part in found for place in part] == list(range(len(sizes)))


def test_chains_go_together_in_their_order():
    waiting = deque([chain("/a", 2), chain("/b", 2), chain("/c", 1)])
    assert sent(waiting) == [("/a", 2), ("/b", 1)]
    assert [one.path for one in waiting] == ["/c"]


def test_a_chain_that_is_to_go_alone_goes_alone():
    alone = chain("/b", 1)
    alone.alone = True
    waiting = deque([chain("/a", 1), alone, chain("/c", 1)])
    assert [sent(waiting) for _ in range(3)] == [[("/a", 1)], [("/b", 1)], [("/c", 1)]]


def test_chroots_take_room_too():
    size = op_bytes(SetData("/a", b"", 0)) + CHROOT_BYTES
    filling = bytes(ROOM - 2 * size + CHROOT_BYTES)
    for data, together in ((filling, [("/a", 1), ("/b", 1)]), (filling + b"x", [("/a", 1)])):
        assert sent(deque([chain("/a", 1, data), chain("/b", 1)])) == together


def test_one_large_write_goes_alone():
    waiting = deque([chain("/a", 1, bytes(ROOM)), chain("/b", 1)])
    assert [sent(waiting), sent(waiting)] == [[("/a", 1)], [("/b", 1)]]


def test_the_write_that_made_a_multi_fail_is_found():
    batch = [(chain("/a", 2), 2), (chain("/b", 1), 1)]
    assert [culprit(batch, position) for position in range(3)] == [(0, 0), (0, 1), (1, 0)]
    with pytest.raises(IndexError, match="no write at 3"):
        culprit(batch, 3)
