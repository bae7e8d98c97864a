"""The content of the group machines as a table: one row a consumer group."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from checkpoints.ddl import ddl
from checkpoints.read import open_states, state_frame
from state.groups.group import Group
from state.groups.slot import GroupSlot
from state.step import Machine

_TEXT, _INT, _LONG = pa.string(), pa.int32(), pa.int64()
_MEMBER = pa.struct([("id", _TEXT), ("instance", _TEXT), ("client", _TEXT), ("host", _TEXT)])
_OFFSET = pa.struct(
    [
        ("topic", _TEXT),
        ("partition", _INT),
        ("offset", _LONG),
        ("metadata", _TEXT),
        ("commit_ms", _LONG),
    ]
)
GROUP_SCHEMA = pa.schema(
    [
        ("group", _TEXT),
        ("slot", _INT),
        ("bucket", _INT),
        ("partition", _INT),
        ("state", _TEXT),
        ("generation", _INT),
        ("protocol_type", _TEXT),
        ("protocol", _TEXT),
        ("leader", _TEXT),
        ("members", pa.list_(_MEMBER)),
        ("offsets", pa.list_(_OFFSET)),
    ]
)


def read_groups(spark: SparkSession, checkpoint: Path, batch_id: int | None = None) -> DataFrame:
    """Return the consumer groups as of a committed micro-batch, the last one by default.

    Columns: group string, slot and bucket int (where it is), partition int (of
    `__consumer_offsets`), state string, generation int, protocol_type, protocol and leader string
    (null: none), members array of (id, instance, client, host), offsets array of (topic, partition,
    offset, metadata, commit_ms), the committed ones. Decoded on the executors. Raises
    CheckpointMismatch when the batch is not retained.
    """
    return state_frame(spark, checkpoint, batch_id).mapInArrow(_open, ddl(GROUP_SCHEMA))


def _open(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for key, machine in open_states(batches):
        if isinstance(machine, GroupSlot):
            rows = list(group_rows(key, machine))
            yield pa.RecordBatch.from_pylist(rows, schema=GROUP_SCHEMA)


def group_table(machines: Mapping[int, Machine]) -> list[dict[str, Any]]:
    """Return the groups of all group slots by name, as GROUP_SCHEMA says."""
    return sorted(each_group(machines), key=lambda row: str(row["group"]))


def each_group(machines: Mapping[int, Machine]) -> Iterator[dict[str, Any]]:
    """Yield the groups of all group slots as GROUP_SCHEMA says, in no particular order."""
    for key, machine in machines.items():
        if isinstance(machine, GroupSlot):
            yield from group_rows(key, machine)


def group_rows(key: int, slot: GroupSlot) -> Iterator[dict[str, Any]]:
    """Yield one group slot's groups, in no particular order."""
    for number in slot.numbers():
        for name in slot.bucket(number).entries:
            if (group := slot.bucket(number).get(name)) is not None:
                yield _row(key, number, group)


def _row(key: int, bucket: int, group: Group) -> dict[str, Any]:
    return {
        "group": group.name,
        "slot": key,
        "bucket": bucket,
        "partition": group.partition,
        "state": str(group.state),
        "generation": group.generation,
        "protocol_type": group.protocol_type,
        "protocol": group.protocol,
        "leader": group.leader,
        "members": [
            {"id": one.id, "instance": one.instance, "client": one.client, "host": one.host}
            for one in group.members.values()
        ],
        "offsets": [
            {
                "topic": topic,
                "partition": partition,
                "offset": row.offset,
                "metadata": row.metadata,
                "commit_ms": row.commit_ms,
            }
            for (topic, partition), row in sorted(group.store.rows.items())
        ],
    }
