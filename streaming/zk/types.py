"""What ZooKeeper tells: the state of a session, a znode, a watch that fired."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class SessionState(StrEnum):
    """What we know about our session; named by what it means for whoever holds a role by it."""

    HELD = "held"  # connected: ephemeral znodes stand
    IN_DOUBT = "in_doubt"  # disconnected: they stand until the server times the session out
    LOST = "lost"  # expired or closed: they are gone


class WatchKind(StrEnum):
    """What a one-shot watch saw."""

    CREATED = "CREATED"
    DELETED = "DELETED"
    CHANGED = "CHANGED"
    CHILDREN_CHANGED = "CHILD"


@dataclass(frozen=True, slots=True)
class WatchEvent:
    """A one-shot watch fired: what happened, and to which znode."""

    kind: WatchKind
    path: str


@dataclass(frozen=True, slots=True)
class ZNode:
    """A znode's data and the parts of its stat that Kafka's rules use."""

    data: bytes
    version: int
    czxid: int
    mzxid: int
    mtime_ms: int
    ephemeral_owner: int
