"""Partition state znodes (/brokers/topics/T/partitions/P/state), many at a time in columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import orjson
from numpy.typing import ArrayLike, NDArray

from state.json_values import int32, replica_ids

_PADDING = -1
_RECOVERY_STATES = (0, 1)
_PLAIN = '{"controller_epoch":%d,"leader":%d,"version":1,"leader_epoch":%d,"isr":[%ISR%]}'
_RECOVERING = (
    '{"controller_epoch":%d,"leader":%d,"version":1,"leader_recovery_state":%d,'
    '"leader_epoch":%d,"isr":[%ISR%]}'
)


@dataclass(frozen=True, slots=True)
class PartitionStates:
    """Many partition states, in the order of their znodes.

    leader, leader_epoch, controller_epoch, recovery, zk_version int32[n]; isr int32[n, R] in znode
    order, padded with -1. present bool[n] is False where there is no znode, or a broken one: then
    errors has the row's reason. Rows that are not present hold -1 everywhere.
    """

    present: NDArray[np.bool_]
    leader: NDArray[np.int32]
    leader_epoch: NDArray[np.int32]
    isr: NDArray[np.int32]
    controller_epoch: NDArray[np.int32]
    recovery: NDArray[np.int32]
    zk_version: NDArray[np.int32]
    errors: dict[int, str]


def partition_state_bytes(
    leader: ArrayLike,
    leader_epoch: ArrayLike,
    isr: ArrayLike,
    controller_epoch: ArrayLike,
    recovery: ArrayLike,
) -> list[bytes]:
    """Write partition states exactly as Kafka's controller does, one znode per row.

    leader, leader_epoch, recovery [n]; isr [n, R] padded with -1 after its members;
    controller_epoch [n] or one number for all. recovery is the LeaderRecoveryState: 0 recovered
    (then the field is left out), 1 recovering. Source: TopicPartitionStateZNode.encode.
    """
    leaders = np.asarray(leader)
    members = np.asarray(isr)
    if not len(leaders):
        return []
    columns = np.stack(
        [
            np.broadcast_to(np.asarray(controller_epoch), leaders.shape),
            leaders,
            np.asarray(recovery),
            np.asarray(leader_epoch),
        ],
        axis=1,
    )
    sizes = (members != _PADDING).sum(axis=1)
    recovering = columns[:, 2] != 0
    znodes: list[bytes] = [b""] * len(leaders)
    for size in np.unique(sizes).tolist():
        for with_recovery in (False, True):
            rows = np.flatnonzero((sizes == size) & (recovering == with_recovery))
            if not rows.size:
                continue
            kept = columns[rows] if with_recovery else columns[rows][:, [0, 1, 3]]
            table = np.concatenate([kept, members[rows, :size]], axis=1)
            template = _RECOVERING if with_recovery else _PLAIN
            written = _format(template.replace("%ISR%", ",".join(["%d"] * size)), table)
            for row, znode in zip(rows.tolist(), written, strict=True):
                znodes[row] = znode
    return znodes


def parse_partition_states(
    znodes: Sequence[bytes | None], zk_versions: ArrayLike
) -> PartitionStates:
    """Read partition states; a broken znode is a row's error, never an exception. An ISR that names
    a broker twice, or has more than REPLICAS_MAX, is broken.

    zk_versions [n] are the znode versions, passed through. Source: TopicPartitionStateZNode.decode.
    """
    rows: list[int] = []
    scalars: list[tuple[int, int, int, int]] = []
    isrs: list[list[int]] = []
    errors: dict[int, str] = {}
    for row, znode in enumerate(znodes):
        if znode is None:
            continue
        try:
            state = orjson.loads(znode)
            fields = (
                state["leader"],
                state["leader_epoch"],
                state["controller_epoch"],
                state.get("leader_recovery_state", 0),
            )
            _check(fields, state["isr"])
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            errors[row] = f"broken partition state: {error!r} in {znode[:200]!r}"
            continue
        rows.append(row)
        scalars.append(fields)
        isrs.append(state["isr"])
    return _in_columns(rows, scalars, isrs, np.asarray(zk_versions), errors)


def _format(template: str, table: NDArray[Any]) -> list[bytes]:
    """Fill one template per row; one big % is several times faster than one per row."""
    lines = "\n".join([template] * len(table)) % tuple(table.ravel().tolist())
    return lines.encode("ascii").split(b"\n")


def _check(fields: tuple[int, int, int, int], isr: list[int]) -> None:
    for value in fields:
        int32(value)
    if fields[-1] not in _RECOVERY_STATES:
        raise ValueError(f"leader_recovery_state {fields[-1]} is none of {_RECOVERY_STATES}")
    replica_ids(isr)


def _in_columns(
    rows: list[int],
    scalars: list[tuple[int, int, int, int]],
    isrs: list[list[int]],
    zk_versions: NDArray[Any],
    errors: dict[int, str],
) -> PartitionStates:
    count = len(zk_versions)
    values = np.full((count, 4), _PADDING, dtype=np.int32)
    isr = np.full((count, max(map(len, isrs), default=0)), _PADDING, dtype=np.int32)
    present = np.zeros(count, dtype=np.bool_)
    if rows:
        present[rows] = True
        values[rows] = scalars
        sizes = np.array([len(members) for members in isrs])
        where = np.repeat(rows, sizes)
        ends = np.cumsum(sizes)
        position = np.arange(ends[-1]) - np.repeat(ends - sizes, sizes)
        isr[where, position] = np.fromiter(
            (member for members in isrs for member in members), dtype=np.int32, count=int(ends[-1])
        )
    versions = np.where(present, zk_versions, _PADDING).astype(np.int32)
    leader, leader_epoch, controller_epoch, recovery = (values[:, i].copy() for i in range(4))
    return PartitionStates(
        present, leader, leader_epoch, isr, controller_epoch, recovery, versions, errors
    )
