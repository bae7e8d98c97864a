"""The assignment of a topic as it goes to its znode."""

from __future__ import annotations

from collections.abc import Mapping

from state.bodies import RemoveReassignments, RewriteAssignment
from state.cluster.authority import Authority
from state.decisions import Decision, DecisionKind, json_decision
from state.matrix import Bools, Int32s, any_in_row, keep, unpad_rows
from state.partitions.table import PartitionTable
from state.topic_ids import topic_id_to_text


def assignment_decision(
    table: PartitionTable, authority: Authority, offset: int, topic: int, kind: DecisionKind
) -> Decision:
    """Return the decision to write a topic's znode as the table has it, and count its version up;
    topic is its index.
    """
    known = table.topics[topic]
    rows, at = table.rows, table.rows_of(known.name)
    partitions, replicas = rows.partition[at], rows.replicas[at]
    body: RewriteAssignment = {
        "topic": known.name,
        "topic_id": topic_id_to_text(known.topic_id),
        "expected_version": known.zk_version,
        "controller_epoch": authority.epoch,
        **authority.fence(),
        "assignment": {
            str(partition): ids
            for partition, ids in zip(partitions.tolist(), unpad_rows(replicas), strict=True)
        },
        "adding": _listed(partitions, replicas, rows.adding[at]),
        "removing": _listed(partitions, replicas, rows.removing[at]),
    }
    known.zk_version += 1
    return json_decision(offset, kind, body)


def reassignment_end(
    authority: Authority, offset: int, topic: str, partitions: Mapping[int, list[int] | None]
) -> Decision:
    """Return the decision that partitions go out of /admin/reassign_partitions: where they are
    asked to have these replicas, or whatever they are asked to have (None).
    """
    body: RemoveReassignments = {
        "topic": topic,
        "partitions": [(partition, partitions[partition]) for partition in sorted(partitions)],
        **authority.fence(),
    }
    return json_decision(offset, DecisionKind.REMOVE_REASSIGNMENTS, body)


def _listed(partitions: Int32s, replicas: Int32s, mask: Bools) -> dict[str, list[int]]:
    some = any_in_row(mask)
    lists = keep(replicas[some], mask[some])
    return {
        str(partition): ids
        for partition, ids in zip(partitions[some].tolist(), unpad_rows(lists), strict=True)
    }
