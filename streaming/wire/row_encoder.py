"""Encodes columns of partitions into one Kafka array, without a Python loop over partitions.

Rows whose arrays have the same lengths have the same byte layout. Each such group is assembled as
one structured array and then copied row by row, by numpy, to the offsets that cumulative sums of
all rows' sizes give.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streaming.wire import primitives
from streaming.wire.partition_rows import PartitionRows

_NO_BROKER = -1
_Offsets = NDArray[np.int64]
_Group = slice | NDArray[np.intp]


@dataclass(frozen=True, slots=True)
class Scalar:
    """A field of fixed width: values [n], written as wire_type (a big-endian numpy type)."""

    values: NDArray[Any]
    wire_type: str = ">i4"


@dataclass(frozen=True, slots=True)
class BrokerIds:
    """A field that is an array of int32: values [n, R], padded with -1 at the end."""

    values: NDArray[np.int32]


Column = Scalar | BrokerIds


@dataclass(frozen=True, slots=True)
class ArrayFormat:
    """How a version arranges partitions.

    grouped: an array of topics that hold arrays of partitions, else partitions that each repeat
    the topic's name. partition_tags: a partition is a struct of a flexible version.
    """

    grouped: bool
    flexible: bool
    topic_ids: bool = False
    partition_tags: bool = False


def encode_partition_array(
    rows: PartitionRows, columns: Sequence[Column], array_format: ArrayFormat
) -> bytearray:
    """Encode all rows as the RPC's array field, its length in front."""
    lengths = [_id_counts(column.values) for column in columns if isinstance(column, BrokerIds)]
    sizes = _record_sizes(columns, lengths, len(rows), array_format)
    place = _place_by_topic if array_format.grouped else _place_ungrouped
    buffer, offsets = place(rows, sizes, array_format)
    for group in _groups_of_equal_layout(columns, lengths, len(rows)):
        records = _records(columns, lengths, group, array_format.flexible)
        _scatter(records, buffer, offsets[group])
    return buffer


def encode_rows(
    columns: Sequence[Column], row_count: int, flexible: bool
) -> tuple[bytes, NDArray[np.int64]]:
    """Encode rows as structs one after the other, without an array's length in front.

    Returns the bytes and int64[n + 1]: where each row starts, and where the last one ends.
    """
    array_format = ArrayFormat(grouped=False, flexible=flexible, partition_tags=flexible)
    lengths = [_id_counts(column.values) for column in columns if isinstance(column, BrokerIds)]
    bounds = np.zeros(row_count + 1, np.int64)
    np.cumsum(_record_sizes(columns, lengths, row_count, array_format), out=bounds[1:])
    buffer = bytearray(int(bounds[-1]))
    for group in _groups_of_equal_layout(columns, lengths, row_count):
        _scatter(_records(columns, lengths, group, flexible), buffer, bounds[:-1][group])
    return bytes(buffer), bounds


def _id_counts(ids: NDArray[np.int32]) -> NDArray[np.int64]:
    counts = np.zeros(len(ids), np.int64)
    for position in range(ids.shape[1]):
        counts += ids[:, position] != _NO_BROKER
    return counts


def _record_sizes(
    columns: Sequence[Column],
    lengths: Sequence[NDArray[np.int64]],
    row_count: int,
    array_format: ArrayFormat,
) -> _Offsets:
    scalars = (column for column in columns if isinstance(column, Scalar))
    fixed = sum(np.dtype(column.wire_type).itemsize for column in scalars)
    sizes = np.full(row_count, fixed + array_format.partition_tags, np.int64)
    for counts in lengths:
        longest = int(np.max(counts, initial=0))
        by_count = [
            len(primitives.array_length(count, array_format.flexible)) + 4 * count
            for count in range(longest + 1)
        ]
        sizes += np.asarray(by_count, np.int64)[counts]
    return sizes


def _place_by_topic(
    rows: PartitionRows, sizes: _Offsets, array_format: ArrayFormat
) -> tuple[bytearray, _Offsets]:
    """Lay out topics and their rows; returns the buffer with topics written, and row offsets."""
    counts = np.bincount(rows.topic_index, minlength=len(rows.topic_names))
    topics = np.flatnonzero(counts)
    counts = counts[topics]
    length = primitives.array_length(len(topics), array_format.flexible)
    headers = [
        _topic_header(rows, topic, count, array_format)
        for topic, count in zip(topics.tolist(), counts.tolist(), strict=True)
    ]
    header_sizes = np.fromiter(map(len, headers), np.int64, len(headers))
    first_rows = np.cumsum(counts) - counts
    gaps = np.zeros(len(rows), np.int64)
    gaps[first_rows] = header_sizes
    gaps[first_rows[1:]] += array_format.flexible  # tags that close the topic before
    offsets = len(length) + np.cumsum(gaps) + np.cumsum(sizes) - sizes
    closing = len(topics) > 0 and array_format.flexible
    total = len(length) + int(gaps.sum() + sizes.sum()) + closing
    # Zeros, because no one writes the empty tagged fields of topics and partitions.
    buffer = bytearray(total)
    buffer[: len(length)] = length
    for header, start in zip(headers, (offsets[first_rows] - header_sizes).tolist(), strict=True):
        buffer[start : start + len(header)] = header
    return buffer, offsets


def _topic_header(
    rows: PartitionRows, topic: int, partition_count: int, array_format: ArrayFormat
) -> bytes:
    topic_id = rows.topic_ids[topic].tobytes() if array_format.topic_ids else b""
    return (
        primitives.string(rows.topic_names[topic], array_format.flexible)
        + topic_id
        + primitives.array_length(partition_count, array_format.flexible)
    )


def _place_ungrouped(
    rows: PartitionRows, sizes: _Offsets, array_format: ArrayFormat
) -> tuple[bytearray, _Offsets]:
    """Lay out rows that each begin with their topic's name, and write the names."""
    names = [primitives.string(name, array_format.flexible) for name in rows.topic_names]
    name_sizes = np.fromiter(map(len, names), np.int64, len(names))
    row_name_sizes = name_sizes[rows.topic_index]
    length = primitives.array_length(len(rows), array_format.flexible)
    ends = len(length) + np.cumsum(sizes + row_name_sizes)
    offsets = ends - sizes
    buffer = bytearray(int(ends[-1]) if len(rows) else len(length))
    buffer[: len(length)] = length
    for name_size in np.unique(row_name_sizes):
        group = np.flatnonzero(row_name_sizes == name_size)
        # Names of other sizes are cut or padded, but no row of this group refers to them.
        encoded_names = np.array(names, f"S{name_size}")
        records = encoded_names[rows.topic_index[group]]
        _scatter(records, buffer, offsets[group] - name_size)
    return buffer, offsets


def _groups_of_equal_layout(
    columns: Sequence[Column], lengths: Sequence[NDArray[np.int64]], row_count: int
) -> Iterator[_Group]:
    if row_count == 0:
        return
    arrays = [column for column in columns if isinstance(column, BrokerIds)]
    layout = np.zeros(row_count, np.int64)
    layouts = 1
    for column, counts in zip(arrays, lengths, strict=True):
        width = column.values.shape[1] + 1
        layout = layout * width + counts
        layouts *= width
    if (layout == layout[0]).all():
        yield slice(None)
        return
    # Numpy sorts 16-bit keys by radix.
    keys = layout.astype(np.uint16) if layouts <= 1 << 16 else layout
    order = np.argsort(keys, kind="stable")
    yield from np.split(order, np.flatnonzero(np.diff(layout[order])) + 1)


def _records(
    columns: Sequence[Column],
    lengths: Sequence[NDArray[np.int64]],
    group: _Group,
    flexible: bool,
) -> NDArray[np.void]:
    """Assemble rows of one layout; the result has one packed record per row."""
    wire_fields: list[Any] = []
    values: list[NDArray[Any]] = []
    counts_of_arrays = iter(lengths)
    for column in columns:
        if isinstance(column, Scalar):
            wire_fields.append((f"f{len(wire_fields)}", column.wire_type))
            values.append(column.values[group])
            continue
        count = int(next(counts_of_arrays)[group][0])
        length = np.frombuffer(primitives.array_length(count, flexible), np.uint8)
        wire_fields.append((f"f{len(wire_fields)}", np.uint8, length.shape))
        values.append(length)
        wire_fields.append((f"f{len(wire_fields)}", ">i4", (count,)))
        values.append(column.values[group, :count])
    row_count = len(values[0])
    records = np.empty(row_count, np.dtype(wire_fields))
    for (name, *_), column_values in zip(wire_fields, values, strict=True):
        records[name] = column_values
    return records


def _scatter(records: NDArray[Any], buffer: bytearray, offsets: _Offsets) -> None:
    """Copy each record to its byte offset.

    The buffer is seen as one record at every byte (overlapping), so that numpy moves a whole
    record per index.
    """
    size = records.dtype.itemsize
    shape = (len(buffer) - size + 1,)
    windows: NDArray[np.void] = np.ndarray(shape, f"V{size}", buffer, strides=(1,))
    windows[offsets] = records.view(f"V{size}")
