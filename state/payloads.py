"""Typed payloads of the events.

Arrays of replicas are int32[n, R], padded on the right with -1.
"""

from __future__ import annotations

import base64
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from state.matrix import Int32s

NO_TOPIC_ID = bytes(16)


@dataclass(frozen=True, slots=True)
class ControllerElected:
    """We hold `/controller` under a new epoch; until resync_completed follows a fresh load.

    endpoints: where brokers and clients reach us, as in a broker's registration.
    """

    controller_id: int
    epoch: int
    epoch_zk_version: int
    endpoints: tuple[dict[str, Any], ...]
    config: dict[str, object]


@dataclass(frozen=True, slots=True)
class ControllerResigned:
    """We gave the controller role up; nothing may be decided until the next election."""

    reason: str


@dataclass(frozen=True, slots=True)
class BrokerRegistration:
    """A broker's registration; epoch is the czxid of its znode, endpoints are kept as they came."""

    id: int
    epoch: int
    rack: str | None
    endpoints: tuple[dict[str, Any], ...]


@dataclass(frozen=True, slots=True)
class BrokerRegistrationsChanged:
    """Brokers that came, went, came back with a new epoch, or changed their endpoints, in one
    observation.
    """

    registered: tuple[BrokerRegistration, ...]
    unregistered: tuple[int, ...]
    bounced: tuple[BrokerRegistration, ...]
    updated: tuple[BrokerRegistration, ...]


@dataclass(frozen=True, slots=True)
class ResyncCompleted:
    """The bulk load that followed the election is complete; topics is how many were observed."""

    topics: int


@dataclass(frozen=True, slots=True)
class ClusterConfigChanged:
    """Cluster-wide configuration values that decisions depend on."""

    config: dict[str, object]


@dataclass(frozen=True, slots=True)
class States:
    """Contents of partition state znodes, one row each.

    present bool[n]: the znode exists and is readable; the other columns mean nothing where it is
    False. leader, leader_epoch, controller_epoch, recovery, zk_version int32[n]; isr int32[n, R]
    padded with -1.
    """

    present: npt.NDArray[np.bool_]
    leader: Int32s
    leader_epoch: Int32s
    isr: Int32s
    controller_epoch: Int32s
    recovery: Int32s
    zk_version: Int32s


@dataclass(frozen=True, slots=True)
class TopicObserved:
    """A topic as ZooKeeper has it: its partitions' assignment, and their states where present.

    new_topic_id: the id that it gets when it has none yet; zero bytes: it gets none. unwritable:
    ZooKeeper has just rejected a write of it, so nothing is decided that writes it again.
    """

    topic: str
    topic_id: bytes
    new_topic_id: bytes
    unclean: bool | None
    min_insync: int | None
    zk_version: int
    partitions: Int32s
    replicas: Int32s
    adding: Int32s
    removing: Int32s
    states: States
    unwritable: bool


@dataclass(frozen=True, slots=True)
class TopicRemoved:
    """A topic's znode is gone; topic_id: of the topic that is, None when it had none.

    observed_again: it is there, but not as we believed, and what it holds follows. unmarked: it is
    not to be deleted, because it could not be marked.
    """

    topic: str
    topic_id: str | None
    observed_again: bool
    unmarked: bool


@dataclass(frozen=True, slots=True)
class TopicConfigChanged:
    """A topic's overrides of unclean.leader.election.enable and min.insync.replicas; None when it
    has none.
    """

    topic: str
    unclean: bool | None
    min_insync: int | None


@dataclass(frozen=True, slots=True)
class PartitionStatesObserved:
    """State znodes of some partitions of a topic, read again.

    cause: "notification" (a leader wrote them itself), "conflict" (our write met other content),
    "rejected" (ZooKeeper takes no such write), "read". uncreated bool[n]: it has no state yet, the
    write that was to create it did not happen.
    """

    topic: str
    cause: str
    partitions: Int32s
    states: States
    uncreated: npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class CreateTopicRequested:
    """CreateTopics for one topic; start_index and shift are the placement's random numbers, drawn
    at the gateway.
    """

    request_id: str
    topic: str
    topic_id: bytes
    partitions: int
    replication_factor: int
    assignment: dict[int, tuple[int, ...]] | None
    configs: dict[str, str]
    validate_only: bool
    start_index: int
    shift: int


@dataclass(frozen=True, slots=True)
class AlterPartitionRequested:
    """AlterPartition for one topic; isr int32[n, R] padded, the other columns int32[n]."""

    request_id: str
    broker_id: int
    broker_epoch: int
    version: int
    topic: str
    topic_id: str | None
    partitions: Int32s
    leader_epoch: Int32s
    partition_epoch: Int32s
    recovery: Int32s
    isr: Int32s


@dataclass(frozen=True, slots=True)
class ControlledShutdownRequested:
    """A broker asks to be relieved of its leaders; broker_epoch is -1 when the request's version
    has none.
    """

    request_id: str
    broker_id: int
    broker_epoch: int
    version: int


@dataclass(frozen=True, slots=True)
class LogDirFailureNotified:
    """Brokers that announced a failed log directory in ZooKeeper."""

    broker_ids: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class LeaderAndIsrAnswered:
    """Per-partition answers of a broker to LeaderAndIsr for one topic (protocol error codes)."""

    broker_id: int
    broker_epoch: int
    topic: str
    partitions: Int32s
    errors: Int32s


@dataclass(frozen=True, slots=True)
class ProducerIdsRequested:
    """A broker asks for a block of producer ids."""

    request_id: str
    broker_id: int
    broker_epoch: int


@dataclass(frozen=True, slots=True)
class ProducerIdBlockObserved:
    """Content of `/latest_producer_id_block`; block_end -1 and zk_version -1 when the znode is
    missing.
    """

    block_end: int
    zk_version: int


@dataclass(frozen=True, slots=True)
class TimerDue:
    """The clock reached an armed timer's deadline."""

    timer: str
    deadline_ms: int


@dataclass(frozen=True, slots=True)
class LeaderImbalanceReported:
    """Per broker: partitions that prefer it as leader, and how many of those are led by another.

    proposals: (topic, partition, broker) of partitions that could be given back to their preferred
    replica now, in that order; of each broker only the first ones.
    """

    preferred: dict[int, int]
    imbalanced: dict[int, int]
    proposals: tuple[tuple[str, int, int], ...]


Payload: TypeAlias = (
    ControllerElected
    | ControllerResigned
    | BrokerRegistrationsChanged
    | ResyncCompleted
    | ClusterConfigChanged
    | TopicObserved
    | TopicRemoved
    | TopicConfigChanged
    | PartitionStatesObserved
    | CreateTopicRequested
    | AlterPartitionRequested
    | ControlledShutdownRequested
    | LogDirFailureNotified
    | LeaderAndIsrAnswered
    | ProducerIdsRequested
    | ProducerIdBlockObserved
    | TimerDue
    | LeaderImbalanceReported
)


def topic_id_from_text(text: str | None) -> bytes:
    """Return the 16 bytes of a base64url topic id as znodes have it; zero bytes when the topic has
    none.

    Raises ValueError when the text is not 16 bytes in base64url without padding.
    """
    if text is None:
        return NO_TOPIC_ID
    raw = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
    if len(raw) != 16:
        raise ValueError(f"topic_id {text!r} is {len(raw)} bytes long, not 16")
    return raw


def topic_id_to_text(topic_id: bytes) -> str | None:
    """Return a topic id as znodes have it (base64url without padding), or None for the zero id."""
    if topic_id == NO_TOPIC_ID:
        return None
    return base64.urlsafe_b64encode(topic_id).rstrip(b"=").decode()
