"""Column blocks: named numpy columns of equal length in one binary value.

Layout (version 1): b"HB" + version byte + uint32 header length + JSON header + the columns' bytes
one after the other, C order, little endian. The header is [rows, [[name, dtype, width or null],
...], extra]; `extra` is a JSON object for what is not a column (topic names, for instance). The
same columns give the same bytes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import orjson

from state.errors import CorruptBlock

Column: TypeAlias = npt.NDArray[Any]
_MAGIC = b"HB\x01"
_DTYPES = {name: np.dtype(name) for name in ("<i4", "<i8", "|i1", "|u1", "|b1", "<u4")}


def encode_block(columns: Mapping[str, Column], extra: Mapping[str, Any]) -> bytes:
    """Return the block's bytes; columns are [n] or [n, W] arrays in the order given."""
    rows = {len(column) for column in columns.values()}
    assert len(rows) == 1, f"columns of different lengths: {rows}"
    arrays = [np.ascontiguousarray(column) for column in columns.values()]
    layout = [
        [name, array.dtype.str, array.shape[1] if array.ndim == 2 else None]
        for name, array in zip(columns, arrays, strict=True)
    ]
    header = orjson.dumps([rows.pop(), layout, dict(extra)], option=orjson.OPT_SORT_KEYS)
    body = [array.tobytes() for array in arrays]
    return b"".join([_MAGIC, len(header).to_bytes(4, "little"), header, *body])


def decode_block(data: bytes | memoryview) -> tuple[dict[str, Column], dict[str, Any]]:
    """Return (columns, extra) of a block; the arrays are read-only views.

    Raises CorruptBlock naming what does not fit.
    """
    if data[:3] != _MAGIC:
        raise CorruptBlock(f"not a column block of version 1: starts with {bytes(data[:3])!r}")
    end = 7 + int.from_bytes(data[3:7], "little")
    try:
        rows, layout, extra = orjson.loads(data[7:end])
        columns: dict[str, Column] = {}
        for name, dtype, width in layout:
            if dtype not in _DTYPES:
                raise CorruptBlock(f"column {name!r} has unknown type {dtype!r}")
            shape = (rows,) if width is None else (rows, width)
            column: Column = np.ndarray(shape, _DTYPES[dtype], data, end)
            columns[name] = column
            end += column.nbytes
    except (ValueError, TypeError) as error:
        raise CorruptBlock(f"broken column block: {error}") from None
    if end != len(data):
        raise CorruptBlock(f"column block is {len(data)} bytes long, its header says {end}")
    return columns, extra
