"""Where the replicas of new partitions go.

Source: Kafka's AdminUtils (3.9). The start index and the first shift are random in Kafka; here they
come with the event, drawn where the request arrived.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

import numpy as np

from state.limits import REPLICAS_MAX
from state.matrix import Int32s, Rows
from state.protocol_errors import ProtocolError


class PlacementError(Exception):
    """Replicas cannot be placed; the message says why. error: as the client is told."""

    error: ClassVar[ProtocolError] = ProtocolError.UNKNOWN_SERVER_ERROR


class InvalidReplicationFactor(PlacementError):
    """The replication factor is below 1, or above the number of brokers or REPLICAS_MAX."""

    error = ProtocolError.INVALID_REPLICATION_FACTOR


class InvalidPartitions(PlacementError):
    """The number of partitions is not positive."""

    error = ProtocolError.INVALID_PARTITIONS


class IncompleteRacks(PlacementError):
    """Some brokers name a rack and some do not."""


def place_replicas(
    racks: Mapping[int, str | None],
    partitions: int,
    replication_factor: int,
    *,
    start_index: int,
    shift: int,
    first_partition: int = 0,
) -> Int32s:
    """Return int32[partitions, replication_factor], spread over brokers, and over racks where
    brokers name them.

    racks: the rack of each broker that may hold replicas. Brokers take turns as first replica from
    start_index on; followers are shifted, one further each time all brokers have had a turn.
    """
    if partitions <= 0:
        raise InvalidPartitions(f"number of partitions is {partitions}, it must be larger than 0")
    if replication_factor <= 0:
        raise InvalidReplicationFactor(
            f"replication factor is {replication_factor}, it must be larger than 0"
        )
    if replication_factor > REPLICAS_MAX:
        raise InvalidReplicationFactor(
            f"replication factor is {replication_factor}, "
            f"more than the {REPLICAS_MAX} replicas a partition may have"
        )
    if replication_factor > len(racks):
        raise InvalidReplicationFactor(
            f"replication factor is {replication_factor}, "
            f"larger than the {len(racks)} available brokers"
        )
    named = [rack for rack in racks.values() if rack is not None]
    if named and len(named) < len(racks):
        raise IncompleteRacks("not all brokers have rack information")
    numbers = np.arange(first_partition, first_partition + partitions)
    if named:
        complete = {broker: rack for broker, rack in racks.items() if rack is not None}
        return _rack_aware(complete, numbers, replication_factor, start_index, shift)
    return _rack_unaware(
        np.array(sorted(racks), dtype=np.int32), numbers, replication_factor, start_index, shift
    )


def _rack_unaware(
    brokers: Int32s,
    numbers: Rows,
    replicas: int,
    start_index: int,
    shift: int,
) -> Int32s:
    count = len(brokers)
    first = (numbers + start_index) % count
    if count == 1:
        return brokers[first][:, None]
    rounds = numbers // count - max(int(numbers[0]) - 1, 0) // count
    followers = np.arange(replicas - 1)
    step = 1 + (shift + rounds[:, None] + followers) % (count - 1)
    index = np.concatenate([first[:, None], (first[:, None] + step) % count], axis=1)
    placed: Int32s = brokers[index]
    return placed


def alternate_racks(racks: Mapping[int, str]) -> list[int]:
    """Return the brokers so that neighbours are in different racks: one of each rack in turn, racks
    by name.
    """
    by_rack: dict[str, list[int]] = {}
    for broker in sorted(racks):
        by_rack.setdefault(racks[broker], []).append(broker)
    lists = [by_rack[rack] for rack in sorted(by_rack)]
    longest = max(map(len, lists))
    return [brokers[turn] for turn in range(longest) for brokers in lists if turn < len(brokers)]


def _rack_aware(
    racks: Mapping[int, str],
    numbers: Rows,
    replicas: int,
    start_index: int,
    shift: int,
) -> Int32s:
    arranged = alternate_racks(racks)
    placed: list[list[int]] = []
    for number in numbers.tolist():
        if number > 0 and number % len(arranged) == 0:
            shift += 1
        first = (number + start_index) % len(arranged)
        placed.append(_place_partition(arranged, racks, first, shift, replicas))
    return np.array(placed, dtype=np.int32)


def _place_partition(
    arranged: Sequence[int], racks: Mapping[int, str], first: int, shift: int, replicas: int
) -> list[int]:
    """Return one partition's replicas: a broker is passed over while an unused rack, or an unused
    broker, is left.
    """
    count, rack_count = len(arranged), len(set(racks.values()))
    chosen = [arranged[first]]
    used = {racks[chosen[0]]}
    step = 0
    for _ in range(replicas - 1):
        while True:
            jump = 1 + (shift * rack_count + step) % (count - 1)
            broker = arranged[(first + jump) % count]
            step += 1
            fresh_rack = racks[broker] not in used or len(used) == rack_count
            if fresh_rack and (broker not in chosen or len(set(chosen)) == count):
                break
        chosen.append(broker)
        used.add(racks[broker])
    return chosen
