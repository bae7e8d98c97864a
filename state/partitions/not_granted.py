"""Requests that cannot be granted."""

from __future__ import annotations

from state.partitions.slot import Slot
from state.protocol_errors import ProtocolError


class NotGranted(Exception):
    """The request cannot be granted: a protocol error and a sentence for its author."""

    def __init__(self, error: ProtocolError, message: str) -> None:
        """Take the error code and the message the client is shown."""
        super().__init__(message)
        self.error = error


def why_not_now(slot: Slot, topic: str) -> str | None:
    """Return why nothing can be said of a topic now; None when it can. It is answered with
    NOT_CONTROLLER, on which clients ask again.

    Kafka decides by what ZooKeeper has (ZkAdminManager): a topic that is being read again may exist
    or not, whatever its slot knows.
    """
    if not slot.authority.is_active:
        return "this node is not the controller now"
    if topic in slot.table.awaited:
        return f"topic '{topic}' is being read again, ask again"
    return None


def require_now(slot: Slot, topic: str) -> None:
    """Raise NotGranted while nothing can be said of a topic (`why_not_now`)."""
    if (reason := why_not_now(slot, topic)) is not None:
        raise NotGranted(ProtocolError.NOT_CONTROLLER, reason)
