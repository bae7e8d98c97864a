"""Rows of a log as an Arrow record batch."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pyarrow as pa

from streaming.log.embedded_format import Row

_TYPES = (pa.int64(), pa.int64(), pa.string(), pa.string(), pa.binary())
_NAMES = ("offset", "time_ms", "kind", "key", "payload")
LOG_SCHEMA = pa.schema(list(zip(_NAMES, _TYPES, strict=True)))


def rows_to_batch(chunks: Iterable[Sequence[Row]]) -> pa.RecordBatch:
    """All rows as one batch with the columns of LOG_SCHEMA."""
    # Chunk by chunk, since very many live tuples make Python's garbage collector slow.
    batches = [_chunk_to_batch(rows) for rows in chunks if rows]
    if not batches:
        return pa.RecordBatch.from_pylist([], schema=LOG_SCHEMA)
    return batches[0] if len(batches) == 1 else pa.concat_batches(batches)


def _chunk_to_batch(rows: Sequence[Row]) -> pa.RecordBatch:
    columns = zip(*rows, strict=True)
    arrays = [pa.array(column, type_) for column, type_ in zip(columns, _TYPES, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=LOG_SCHEMA)
