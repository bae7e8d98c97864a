"""Column blocks: round trips, equal bytes for equal content, and damage."""

from __future__ import annotations

import contextlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from state.blocks import decode_block, encode_block
from state.errors import CorruptBlock

DTYPES = ("<i4", "<i8", "i1", "u1", "?", "<u4")
BLOCK = encode_block(
    {"a": np.array([1, 2], dtype=np.int32), "b": np.array([[True], [False]])}, {"names": ["x"]}
)


@st.composite
def blocks(draw: st.DrawFn) -> tuple[dict[str, np.ndarray], dict[str, object]]:
    rows = draw(st.integers(0, 5))
    names = draw(st.lists(st.text(max_size=4), min_size=1, max_size=4, unique=True))
    columns = {}
    for name in names:
        shape = (rows, draw(st.integers(0, 3))) if draw(st.booleans()) else (rows,)
        columns[name] = draw(arrays.arrays(draw(st.sampled_from(DTYPES)), shape))
    return columns, draw(st.dictionaries(st.text(max_size=3), st.integers(-5, 5), max_size=2))


@given(blocks())
def test_what_is_written_is_read(block: tuple[dict[str, np.ndarray], dict[str, object]]) -> None:
    columns, extra = block
    data = encode_block(columns, extra)
    read, read_extra = decode_block(data)
    assert list(read) == list(columns)
    assert read_extra == extra
    for name, column in columns.items():
        assert read[name].dtype == column.dtype
        np.testing.assert_array_equal(read[name], column)
    assert encode_block(read, read_extra) == data


def test_memory_order_does_not_show() -> None:
    matrix = np.arange(6, dtype=np.int32).reshape(2, 3)
    assert encode_block({"m": np.asfortranarray(matrix)}, {}) == encode_block({"m": matrix}, {})


@pytest.mark.parametrize("length", range(len(BLOCK)))
def test_a_cut_block_is_refused(length: int) -> None:
    with pytest.raises(CorruptBlock):
        decode_block(BLOCK[:length])


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "not a column block of version 1"),
        (b"HB\x02" + BLOCK[3:], "not a column block of version 1"),
        (BLOCK + b"\0", "its header says"),
        (BLOCK.replace(b'"<i4"', b'"<f4"'), "unknown type '<f4'"),
        (BLOCK.replace(b'[2,[["a"', b'["",[["a"'), "broken column block|its header says"),
        (BLOCK.replace(b'"a"', b"a  "), "broken column block"),
    ],
)
def test_damage_is_named(data: bytes, reason: str) -> None:
    with pytest.raises(CorruptBlock, match=reason):
        decode_block(data)


@given(st.binary(max_size=60), st.integers(0, len(BLOCK) - 1), st.integers(0, 7))
def test_other_bytes_never_raise_anything_else(noise: bytes, place: int, bit: int) -> None:
    flipped = bytearray(BLOCK)
    flipped[place] ^= 1 << bit
    for data in (noise, BLOCK[:7] + noise, bytes(flipped)):
        with contextlib.suppress(CorruptBlock):
            decode_block(data)
