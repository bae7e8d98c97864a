"""What administrators ask for: through the gateway (with a request_id, to be answered) or through
znodes under /admin (without one).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from state.json_values import (
    int32,
    int32_array,
    optional_text,
    text,
)
from state.matrix import Int32s
from state.payloads.log_ends import LogEnds, log_ends
from state.protocol_errors import ProtocolError

PREFERRED_ELECTION_PATH = "/admin/preferred_replica_election"

REASSIGN_PARTITIONS_PATH = "/admin/reassign_partitions"

_ADMIN_PATHS = frozenset({PREFERRED_ELECTION_PATH, REASSIGN_PARTITIONS_PATH})


class ElectionType(StrEnum):
    """Elections that can be asked for (org.apache.kafka.common.ElectionType)."""

    PREFERRED = "preferred"
    UNCLEAN = "unclean"


NOT_ELECTED: Mapping[ElectionType, ProtocolError] = {
    ElectionType.PREFERRED: ProtocolError.PREFERRED_LEADER_NOT_AVAILABLE,
    ElectionType.UNCLEAN: ProtocolError.ELIGIBLE_LEADERS_NOT_AVAILABLE,
}
"""What an election that failed is answered with (KafkaController.processReplicaLeaderElection)."""


@dataclass(frozen=True, slots=True)
class ElectLeadersRequested:
    """Elections for partitions of one topic; request_id is None when nobody waits for an answer.

    logs: where those of the replicas end, None where nobody was asked.
    """

    request_id: str | None
    election_type: ElectionType
    topic: str
    partitions: Int32s
    logs: LogEnds | None


def elect_leaders_requested(body: dict[str, Any]) -> ElectLeadersRequested:
    """Read elect_leaders_requested."""
    partitions, logs = int32_array(body["partitions"]), body.get("logs")
    return ElectLeadersRequested(
        request_id=optional_text(body.get("request_id")),
        election_type=ElectionType(body["election_type"]),
        topic=text(body["topic"]),
        partitions=partitions,
        logs=None if logs is None else log_ends(logs, len(partitions)),
    )


@dataclass(frozen=True, slots=True)
class AlterReassignmentsRequested:
    """Reassignments of partitions of one topic; targets has the replicas each is to end with, None
    to take a reassignment back. request_id is None when nobody waits for an answer.
    """

    request_id: str | None
    topic: str
    partitions: Int32s
    targets: tuple[tuple[int, ...] | None, ...]


def alter_reassignments_requested(body: dict[str, Any]) -> AlterReassignmentsRequested:
    """Read alter_reassignments_requested."""
    partitions = int32_array(body["partitions"])
    targets = list(body["targets"])
    if len(targets) != len(partitions) or len(set(partitions.tolist())) != len(partitions):
        raise ValueError(f"{len(targets)} targets for partitions {partitions.tolist()}")
    return AlterReassignmentsRequested(
        request_id=optional_text(body.get("request_id")),
        topic=text(body["topic"]),
        partitions=partitions,
        targets=tuple(
            None if target is None else tuple(int32_array(target).tolist()) for target in targets
        ),
    )


@dataclass(frozen=True, slots=True)
class AdminZnodeObserved:
    """A request in a znode under /admin, all of which has been appended before this event."""

    path: str
    zk_version: int


def admin_znode_observed(body: dict[str, Any]) -> AdminZnodeObserved:
    """Read admin_znode_observed."""
    path = text(body["path"])
    if path not in _ADMIN_PATHS:
        raise ValueError(f"path {path!r} is none of {sorted(_ADMIN_PATHS)}")
    return AdminZnodeObserved(path, int32(body["zk_version"]))
