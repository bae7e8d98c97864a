"""The content of the machines as tables: one row a partition.

docs/state-format.md names the columns. `read_partitions` is for notebooks; the command
`helmstream state` shows the same rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession

from checkpoints.ddl import ddl
from checkpoints.read import open_states, state_frame
from state.matrix import NONE, Bools, Int32s
from state.partitions.legal import PartitionState, ReplicaState
from state.partitions.slot import Slot
from state.step import Machine
from state.topic_ids import topic_id_to_text

_IDS = pa.list_(pa.int32())
PARTITION_SCHEMA = pa.schema(
    [
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("topic_id", pa.string()),
        ("slot", pa.int32()),
        ("state", pa.string()),
        ("leader", pa.int32()),
        ("leader_epoch", pa.int32()),
        ("isr", _IDS),
        ("replicas", _IDS),
        ("partition_epoch", pa.int32()),
        ("controller_epoch", pa.int32()),
        ("recovery", pa.int32()),
        ("adding", _IDS),
        ("removing", _IDS),
        ("offline_dirs", _IDS),
        ("replica_states", pa.list_(pa.string())),
        ("deleting", pa.bool_()),
    ]
)
_PARTITION_STATES = np.array([state.name.lower() for state in PartitionState])
_REPLICA_STATES = np.array([state.name.lower() for state in ReplicaState])


def read_partitions(
    spark: SparkSession, checkpoint: Path, batch_id: int | None = None
) -> DataFrame:
    """Return the partitions as of a committed micro-batch, the last one by default.

    Columns: topic string, partition int, topic_id string (null: none), slot int, state string
    (non_existent: its deletion has started; new, online, offline), leader int (-1: none),
    leader_epoch int, isr and replicas array<int> in order, partition_epoch int (version of the
    state znode; -1: there is none, then leader and isr mean nothing), controller_epoch int,
    recovery int, adding, removing and offline_dirs array<int> (the replicas of which that is so),
    replica_states array<string> (as replicas), deleting boolean (queued for deletion). Decoded on
    the executors. Raises CheckpointMismatch when the batch is not retained.
    """
    return state_frame(spark, checkpoint, batch_id).mapInArrow(_open, ddl(PARTITION_SCHEMA))


def _open(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for key, machine in open_states(batches):
        if isinstance(machine, Slot):
            yield partition_rows(key, machine)


def partition_table(machines: Mapping[int, Machine]) -> pa.Table:
    """Return the partitions of all slots, by topic and partition, as PARTITION_SCHEMA says."""
    found = [
        partition_rows(key, machine)
        for key, machine in machines.items()
        if isinstance(machine, Slot)
    ]
    table = pa.Table.from_batches(found, PARTITION_SCHEMA)
    return table.sort_by([("topic", "ascending"), ("partition", "ascending")])


def partitions_of(partitions: pa.Table, topic: str) -> pa.Table:
    """Return a topic's rows of a partition table."""
    return partitions.filter(pc.equal(partitions["topic"], topic))


def topic_table(partitions: pa.Table) -> pa.Table:
    """Return one row a topic of a partition table, by name: topic, slot, how many partitions it has
    and how many of them are offline, under_replicated and reassigning, and whether it is deleting.
    """
    lengths = {
        name: pc.list_value_length(partitions[name])
        for name in ("isr", "replicas", "adding", "removing")
    }
    columns = {
        "partitions": pc.is_valid(partitions["topic"]),
        "offline": pc.equal(partitions["state"], "offline"),
        "under_replicated": pc.less(lengths["isr"], lengths["replicas"]),
        "reassigning": pc.greater(pc.add(lengths["adding"], lengths["removing"]), 0),
    }
    counted = pa.table(
        {name: partitions[name] for name in ("topic", "slot", "deleting")}
        | {name: column.cast(pa.int64()) for name, column in columns.items()}
    ).group_by("topic")
    sums = [(name, "sum") for name in columns]
    found = counted.aggregate([("slot", "max"), *sums, ("deleting", "any")])
    return found.rename_columns(["topic", "slot", *columns, "deleting"]).sort_by("topic")


def partition_rows(key: int, slot: Slot) -> pa.RecordBatch:
    """Return one slot's partitions as PARTITION_SCHEMA says, in no particular order."""
    rows, topics = slot.table.rows, slot.table.topics
    assigned = rows.replicas != NONE
    names = np.array([topic.name for topic in topics], dtype=object)
    ids = np.array([topic_id_to_text(topic.topic_id) for topic in topics], dtype=object)
    columns = {
        "topic": names[rows.topic] if len(rows) else [],
        "partition": rows.partition,
        "topic_id": ids[rows.topic] if len(rows) else [],
        "slot": np.full(len(rows), key, dtype=np.int32),
        "state": _PARTITION_STATES[rows.state],
        "leader": rows.leader,
        "leader_epoch": rows.leader_epoch,
        "isr": _lists(rows.isr, rows.isr != NONE),
        "replicas": _lists(rows.replicas, assigned),
        "partition_epoch": rows.zk_version,
        "controller_epoch": rows.controller_epoch,
        "recovery": rows.recovery.astype(np.int32),
        "adding": _lists(rows.replicas, rows.adding & assigned),
        "removing": _lists(rows.replicas, rows.removing & assigned),
        "offline_dirs": _lists(rows.replicas, rows.offline_dir & assigned),
        "replica_states": _lists(_REPLICA_STATES[rows.replica_state], assigned),
        "deleting": slot.table.is_of(slot.table.deletions),
    }
    arrays = [
        column
        if isinstance(column, pa.Array)
        else pa.array(column, PARTITION_SCHEMA.field(at).type)
        for at, column in enumerate(columns.values())
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=PARTITION_SCHEMA)


def _lists(matrix: Int32s, chosen: Bools) -> pa.Array:
    """Return one list a row: the cells of matrix [n, W] where chosen holds, in order."""
    ends = np.concatenate([[0], np.cumsum(chosen.sum(axis=1))]).astype(np.int32)
    values = pa.array(matrix[chosen])
    return pa.ListArray.from_arrays(pa.array(ends), values)
