"""The rack under which this node is announced."""

from __future__ import annotations

from collections.abc import Mapping


def controller_rack(racks: Mapping[int, str | None]) -> str | None:
    """Return the rack of the broker with the lowest id if every broker has one, else None.

    Brokers place the topics that they create themselves by the racks of all nodes they know, and
    refuse to when some have a rack and others do not (AdminUtils.assignReplicasToBrokers).
    """
    known = [rack for _, rack in sorted(racks.items())]
    return known[0] if known and None not in known else None
