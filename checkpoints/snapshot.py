"""All machines as of one place in the log, in a Parquet file of their own.

What `helmstream checkpoint export` writes and `import` reads, and what a local replay goes on from.
docs/state-format.md describes the file.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import orjson
import pyarrow as pa
import pyarrow.parquet as pq

from checkpoints.durable import write_whole_by
from checkpoints.layout import CheckpointMismatch
from checkpoints.machine_format import FORMAT_VERSION
from checkpoints.replay import States
from state.routing import Layout

SNAPSHOT_VERSION = 1
_METADATA_KEY = b"helmstream"
_Read = TypeVar("_Read")
_SCHEMA = pa.schema([("machine", pa.int32()), ("state", pa.binary())])


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Encoded machines by state key; offset is one past the last event they have folded."""

    offset: int
    layout: Layout
    states: States


def write_snapshot(path: Path, snapshot: Snapshot) -> None:
    """Write the file, whole or not at all."""
    about = {
        "snapshot.format": SNAPSHOT_VERSION,
        "state.format": FORMAT_VERSION,
        "offset": snapshot.offset,
        "slots": snapshot.layout.slots,
        "group.slots": snapshot.layout.group_slots,
    }
    rows = sorted(snapshot.states.items())
    table = pa.table(
        [[key for key, _ in rows], [state for _, state in rows]],
        schema=_SCHEMA.with_metadata({_METADATA_KEY: orjson.dumps(about)}),
    )
    write_whole_by(path, lambda temporary: pq.write_table(table, temporary))


def read_snapshot(path: Path) -> Snapshot:
    """Return the snapshot in a file.

    Raises CheckpointMismatch when the file is none, or of another version. The machines' own
    versions are checked when they are decoded.
    """
    table = _read(pq.read_table, path)
    about = _about(path, table.schema)
    keys, states = (table.column(name).to_pylist() for name in ("machine", "state"))
    found = dict(zip(keys, states, strict=True))
    layout = Layout(about["slots"], about["group.slots"])
    return Snapshot(about["offset"], layout, found)


def snapshot_offset(path: Path) -> int:
    """Return the offset of the snapshot in a file, without its machines; raises as
    `read_snapshot`.
    """
    return int(_about(path, _read(pq.read_schema, path))["offset"])


def _read(read: Callable[[Path], _Read], path: Path) -> _Read:
    try:
        return read(path)
    except (pa.ArrowInvalid, OSError) as error:
        raise CheckpointMismatch(f"{path} is not a snapshot of machines: {error}") from None


def _about(path: Path, schema: pa.Schema) -> dict[str, Any]:
    about: dict[str, Any] = orjson.loads((schema.metadata or {}).get(_METADATA_KEY, b"{}"))
    if about.get("snapshot.format") != SNAPSHOT_VERSION:
        raise CheckpointMismatch(
            f"{path} has snapshot.format = {about.get('snapshot.format')}, "
            f"this program reads {SNAPSHOT_VERSION}"
        )
    return about
