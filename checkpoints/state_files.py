"""Machines out of the files of Spark's state store, without Spark.

A job knows them a moment after its start, long before Spark can tell them. What is not exactly as
expected is not guessed at: Spark reads it then.

Source: Spark's HDFSBackedStateStoreProvider (files of a version), UnsafeRow (rows), lz4-java's
LZ4BlockOutputStream (frames).
"""

from __future__ import annotations

import logging
import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import orjson
import pyarrow as pa
from pyspark.sql import SparkSession

from checkpoints.checksums import matches, sums_file
from checkpoints.packing import unpacked
from checkpoints.read import committed_batches, read_states
from checkpoints.replay import States
from state.errors import CorruptBlock

logger = logging.getLogger(__name__)

_MADE_WITH = {
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.HDFSBackedStateStoreProvider"
    ),
    "spark.sql.streaming.stateStore.encodingFormat": "unsaferow",
    "spark.sql.streaming.stateStore.compression.codec": "lz4",
    "spark.sql.streaming.stateStore.rowChecksum.enabled": "false",
    "spark.sql.streaming.flatMapGroupsWithState.stateFormatVersion": "2",
}
_PARTITIONS = "spark.sql.shuffle.partitions"

_FRAME = struct.Struct("<8sBiii")  # magic, method and level, packed and unpacked length, checksum
_FRAME_MAGIC = b"LZ4Block"
_METHOD, _STORED, _COMPRESSED = 0xF0, 0x10, 0x20
_CODEC = pa.Codec("lz4_raw")

_LENGTH = struct.Struct(">i")
_NONE = -1  # in place of a key's length: the end; of a value's: the key is removed
_KEY = struct.Struct("<8xi4x")  # no null bits set, one int
_FIELD = struct.Struct("<8xII")  # null bits, then the length and place of the only field


class StatesUnreadable(Exception):
    """State files that are not as this program knows them; Spark may read them all the same."""


def read_state_files(
    checkpoint: Path, batch_id: int | None = None, *, most_bytes: int | None = None
) -> States:
    """Return the machines' bytes by state key as of the last committed batch; none without one.

    batch_id: as of this batch instead, whose tasks are done. most_bytes: what the files may have.
    Raises StatesUnreadable naming the file, also when somebody else tidies the folder up meanwhile.
    """
    if batch_id is None:
        committed = committed_batches(checkpoint)
        if not committed:
            return {}
        batch_id = committed[-1]
    try:
        stores = [_changes(folder, batch_id + 1) for folder in _stores(checkpoint, batch_id)]
        size = sum(path.stat().st_size for changes in stores for path in changes)
        if most_bytes is not None and size > most_bytes:
            raise StatesUnreadable(f"{checkpoint}: {size} bytes are more than {most_bytes}")
        states: States = {}
        for changes in stores:
            states |= _store(changes)
    except (OSError, ValueError, LookupError, struct.error, pa.ArrowException) as error:
        raise StatesUnreadable(f"{checkpoint}: {error}") from error
    return dict(sorted(states.items()))


def stored_states(checkpoint: Path, spark: Callable[[], SparkSession]) -> States:
    """Return the machines' bytes by state key as of the last committed batch; none without one.

    spark: opens it; called only where Spark alone can read them. Raises what it raises.
    """
    try:
        return read_state_files(checkpoint)
    except StatesUnreadable as error:
        logger.info("Spark has to read the states: %s", error)
        return read_states(spark(), checkpoint)


def _stores(checkpoint: Path, batch: int) -> list[Path]:
    """Return the folder of each partition of the operator, which is the query's only one."""
    lines = (checkpoint / "offsets" / str(batch)).read_text().splitlines()
    made_with: dict[str, Any] = orjson.loads(lines[1])["conf"]
    for key, value in _MADE_WITH.items():
        if made_with.get(key) != value:
            raise StatesUnreadable(f"{checkpoint} was made with {key}={made_with.get(key)}")
    return [checkpoint / "state" / "0" / str(one) for one in range(int(made_with[_PARTITIONS]))]


def _changes(folder: Path, version: int) -> list[Path]:
    """Return the files of a partition as of a version: the last snapshot and what changed since."""
    changes: list[Path] = []
    while version and not (snapshot := folder / f"{version}.snapshot").exists():
        delta = folder / f"{version}.delta"
        if not delta.exists():  # of millions that there were, nearly all are
            raise StatesUnreadable(f"{delta} is missing")
        changes.append(delta)
        version -= 1
    if version:
        changes.append(snapshot)
    return changes[::-1]


def _store(changes: list[Path]) -> States:
    states: dict[int, bytes] = {}
    for path in changes:
        _change(states, path)
    return {key: _state(value) for key, value in states.items()}


def _change(states: dict[int, bytes], path: Path) -> None:
    data = memoryview(_opened(path))
    at = 0
    while (length := _LENGTH.unpack_from(data, at)[0]) != _NONE:
        at += _LENGTH.size
        (key,) = _KEY.unpack(data[at : at + length])
        at += length
        (length,) = _LENGTH.unpack_from(data, at)
        at += _LENGTH.size
        if length == _NONE:
            states.pop(key, None)
            continue
        states[key] = bytes(_part(data, at, length))
        at += length
    if at + _LENGTH.size != len(data):
        raise StatesUnreadable(f"{path} goes on behind its end")


def _state(value: bytes) -> bytes:
    """Return a machine's bytes out of a value: the only field of its only field."""
    row = memoryview(value)
    try:
        for _ in range(2):
            length, place = _FIELD.unpack_from(row)
            row = _part(row, place, length)
        return unpacked(bytes(row))
    except CorruptBlock as error:
        raise StatesUnreadable(str(error)) from error


def _opened(path: Path) -> bytes:
    """Return a file's content without its frames."""
    packed = path.read_bytes()
    if not matches(packed, sums_file(path).read_bytes()):
        raise StatesUnreadable(f"{path} does not match its checksums")
    return b"".join(_frames(path, memoryview(packed)))


def _frames(path: Path, data: memoryview) -> Iterator[bytes]:
    at = 0
    while at < len(data):
        magic, token, packed_bytes, unpacked_bytes, _ = _FRAME.unpack_from(data, at)
        method = token & _METHOD
        if magic != _FRAME_MAGIC or method not in {_STORED, _COMPRESSED}:
            raise StatesUnreadable(f"{path} has no frame at {at}")
        at += _FRAME.size
        frame = _part(data, at, packed_bytes)
        at += packed_bytes
        if unpacked_bytes:
            stored = method == _STORED
            yield bytes(frame) if stored else _CODEC.decompress(frame, unpacked_bytes, asbytes=True)


def _part(data: memoryview, at: int, length: int) -> memoryview:
    part = data[at : at + length]
    if length < 0 or len(part) != length:
        raise StatesUnreadable(f"{length} bytes at {at} of {len(data)}")
    return part
