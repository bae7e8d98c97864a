"""What random logs of consumer groups are made of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from state.protocol_errors import ProtocolError
from tests.unit.state.group_support import metadata

GROUPS = ("g", "h", "quite another", "group of a simple consumer")
PARTITIONS = {name: number % 3 for number, name in enumerate(GROUPS)}
INSTANCES = ("i1", "i2", None, None, None)
REFUSALS = (
    ProtocolError.UNKNOWN_TOPIC_OR_PARTITION,
    ProtocolError.NOT_LEADER_OR_FOLLOWER,
    ProtocolError.REQUEST_TIMED_OUT,
    ProtocolError.MESSAGE_TOO_LARGE,
    ProtocolError.NOT_ENOUGH_REPLICAS,
    ProtocolError.KAFKA_STORAGE_ERROR,
)
LEAVE_DELAY = "group.leave.rebalance.delay.ms"
CONFIG = {
    "group.min.session.timeout.ms": 1_000,
    "group.max.session.timeout.ms": 60_000,
    "group.initial.rebalance.delay.ms": 300,
    "group.max.size": 4,
    "offsets.retention.ms": 30_000,
    "offset.metadata.max.bytes": 16,
}

LONGEST_WAIT_MS = 4_000
"""How long a JoinGroup or SyncGroup waits at most: the longest rebalance timeout."""

PROTOCOLS = (
    [["range", metadata("a")]],
    [["range", metadata("a", "b")], ["roundrobin", ""]],
    [["roundrobin", metadata("b")], ["range", metadata("a")]],
)

WEIGHTS = {
    "start": 5,
    "rejoin": 5,
    "sync": 4,
    "settle": 4,
    "heartbeat": 2,
    "idle": 3,
    "leave": 1,
    "commit": 3,
    "append": 2,
    "marker": 1,
    "remove": 1,
    "expire": 1,
    "wait": 5,
    "refuse": 1,
    "hold": 2,
    "release": 2,
    "repeat": 2,
    "reload": 1,
    "configure": 1,
}
"""How often each intent is drawn beside the others."""


@dataclass(slots=True)
class Client:
    """What a client knows of itself."""

    group: str
    instance: str | None
    protocols: list[list[str]]
    member: str = ""
    generation: int = -1
    leads: bool = False
    others: tuple[str, ...] = ()


def loaded_metadata(member: str) -> dict[str, Any]:
    """Return what group_observed says of a stable group with one member."""
    one = {
        "member": member,
        "instance": None,
        "client": "c",
        "host": "/h",
        "session_timeout_ms": 3_000,
        "rebalance_timeout_ms": 2_000,
        "metadata": metadata("a"),
        "assignment": "AAAA",
    }
    return {
        "generation": 7,
        "protocol_type": "consumer",
        "protocol": "range",
        "leader": member,
        "state_since_ms": None,
        "members": [one],
    }


def loaded(group: str, member: str | None, epoch: int, now_ms: int) -> dict[str, Any]:
    """Return what group_observed says of a group with offsets and, perhaps, one member."""
    return {
        "group": group,
        "partition": PARTITIONS[group],
        "epoch": epoch,
        "metadata": None if member is None else loaded_metadata(member),
        "offsets": [["a", 0, 5, -1, "", now_ms, None, 9 - (1 << 62)]],
        "pending": [[1, [["b", 0, 6, -1, "", now_ms, None, 8 - (1 << 62)]]]],
    }
