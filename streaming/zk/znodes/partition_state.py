"""Partition state znodes (/brokers/topics/T/partitions/P/state), many at a time in columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import orjson
from numpy.typing import ArrayLike, NDArray

from state.json_values import int32_array, replica_lists
from state.matrix import Int32s, pad_columns, pad_rows
from streaming.zk.znodes.plain_states import plain_states

_PADDING = -1
_RECOVERY_STATES = (0, 1)
_FIELDS: dict[str, int | None] = {
    "leader": None,
    "leader_epoch": None,
    "controller_epoch": None,
    "leader_recovery_state": 0,
}
"""Those of a state but its ISR, and what stands for one that is absent, if it may be."""
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
    errors: dict[int, str] = {}
    rows = [row for row, znode in enumerate(znodes) if znode is not None]
    parts = list(_parsed(znodes, rows, errors))
    count, width = len(znodes), max((isr.shape[1] for _, _, isr in parts), default=0)
    present = np.zeros(count, dtype=np.bool_)
    values = np.full((count, len(_FIELDS)), _PADDING, dtype=np.int32)
    isrs = np.full((count, width), _PADDING, dtype=np.int32)
    for of_part, fields, isr in parts:
        present[of_part] = True
        values[of_part] = fields
        isrs[of_part, : isr.shape[1]] = isr
    versions = np.where(present, np.asarray(zk_versions), _PADDING).astype(np.int32)
    leader, leader_epoch, controller_epoch, recovery = (column.copy() for column in values.T)
    return PartitionStates(
        present, leader, leader_epoch, isrs, controller_epoch, recovery, versions, errors
    )


def _parsed(
    znodes: Sequence[bytes | None], rows: list[int], errors: dict[int, str]
) -> Iterator[tuple[list[int], Int32s, Int32s]]:
    """Yield rows with their fields and ISRs; where one is broken, halves until it is alone."""
    try:
        yield rows, *_fields_and_isr([znodes[row] for row in rows])
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError) as error:
        if len(rows) == 1:
            shown = (znodes[rows[0]] or b"")[:200]
            errors[rows[0]] = f"broken partition state: {error!r} in {shown!r}"
            return
        middle = len(rows) // 2
        yield from _parsed(znodes, rows[:middle], errors)
        yield from _parsed(znodes, rows[middle:], errors)


def _fields_and_isr(znodes: list[Any]) -> tuple[Int32s, Int32s]:
    """Return int32[n, 4] in the order of _FIELDS, and int32[n, R]."""
    if found := plain_states(znodes):
        return pad_columns(found[0], len(_FIELDS), _RECOVERY_STATES[0]), found[1]
    states = [orjson.loads(znode) for znode in znodes]
    fields = [
        int32_array([state.get(name, absent) for state in states])
        for name, absent in _FIELDS.items()
    ]
    recovery = fields[-1]
    if not np.isin(recovery, _RECOVERY_STATES).all():
        raise ValueError(f"leader_recovery_state {recovery} is none of {_RECOVERY_STATES}")
    return np.stack(fields, axis=1), pad_rows(replica_lists([state["isr"] for state in states]))


def _format(template: str, table: NDArray[Any]) -> list[bytes]:
    """Fill one template per row; one big % is several times faster than one per row."""
    lines = "\n".join([template] * len(table)) % tuple(table.ravel().tolist())
    return lines.encode("ascii").split(b"\n")
