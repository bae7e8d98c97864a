"""Where the logs of replicas end, as their brokers say."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from state.json_values import int32_array, int64, partition_numbers, replica_lists, text
from state.matrix import NONE, Bools, Int32s, pad_rows


@dataclass(frozen=True, slots=True)
class LogEnds:
    """Where logs end, a row for each partition.

    replicas int32[n, C]: those that said it, padded with -1. last_epochs int32[n, C]: the leader
    epoch of the last record, -1 where the log has none. ends int64[n, C]: the offset after the last
    record.
    """

    replicas: Int32s
    last_epochs: Int32s
    ends: npt.NDArray[np.int64]

    def of(self, rows: Bools) -> LogEnds:
        """Return what is said of some of the partitions, marked in bool[n]."""
        return LogEnds(self.replicas[rows], self.last_epochs[rows], self.ends[rows])


def log_ends(values: object, count: int) -> LogEnds:
    """Read the logs of `count` partitions: of each a list of [replica, last epoch, end].

    Raises TypeError, ValueError.
    """
    if not isinstance(values, list) or set(map(type, values)) - {list}:
        raise TypeError(f"{values!r} is not a list of lists")
    if len(values) != count:
        raise ValueError(f"logs of {len(values)} partitions for {count}")
    replicas = pad_rows(replica_lists([[replica for replica, _, _ in one] for one in values]))
    epochs = int32_array([epoch for one in values for _, epoch, _ in one])
    ends = np.array([int64(end) for one in values for _, _, end in one], dtype=np.int64)
    for column in (epochs, ends):
        if (column < NONE).any():
            raise ValueError(f"{np.min(column)} is neither a leader epoch nor an offset")
    said = replicas != NONE
    return LogEnds(replicas, _spread(epochs, said), _spread(ends, said))


def _spread(values: npt.NDArray[Any], said: Bools) -> npt.NDArray[Any]:
    """Return values in the cells where said bool[n, C] holds, -1 in the others."""
    spread = np.full(said.shape, NONE, dtype=values.dtype)
    spread[said] = values
    return spread


@dataclass(frozen=True, slots=True)
class LogEndsReported:
    """Where logs of partitions of a topic end that have no leader; leader_epochs int32[n]: the
    partitions' when their replicas were asked.
    """

    topic: str
    partitions: Int32s
    leader_epochs: Int32s
    logs: LogEnds


def log_ends_reported(body: dict[str, Any]) -> LogEndsReported:
    """Read log_ends_reported."""
    partitions = partition_numbers(body["partitions"])
    epochs = int32_array(body["leader_epochs"])
    if len(epochs) != len(partitions):
        raise ValueError(f"{len(epochs)} leader epochs for {len(partitions)} partitions")
    return LogEndsReported(
        text(body["topic"]), partitions, epochs, log_ends(body["logs"], len(partitions))
    )
