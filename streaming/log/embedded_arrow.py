"""Rows of a log as an Arrow record batch."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from streaming.log.embedded_format import Row
from streaming.log.event_rows import EVENT_COLUMNS

_TYPES = (pa.int64(), pa.int64(), pa.string(), pa.string(), pa.binary())
LOG_SCHEMA = pa.schema(list(zip(EVENT_COLUMNS, _TYPES, strict=True)))


def rows_to_batch(rows: Sequence[Row]) -> pa.RecordBatch:
    """One batch with the columns of LOG_SCHEMA; `rows` is not empty."""
    columns = zip(*rows, strict=True)
    arrays = [pa.array(column, type_) for column, type_ in zip(columns, _TYPES, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=LOG_SCHEMA)
