"""Requests that cannot be granted."""

from __future__ import annotations

from state.partitions.slot import Slot
from state.protocol_errors import ProtocolError


class Rejected(Exception):
    """The request cannot be granted: a protocol error and a sentence for its author."""

    def __init__(self, error: ProtocolError, message: str) -> None:
        """Take the error code and the message the client is shown."""
        super().__init__(message)
        self.error = error


def require_control(slot: Slot) -> None:
    """Raise Rejected unless this node controls the cluster."""
    if not slot.authority.is_active:
        raise Rejected(ProtocolError.NOT_CONTROLLER, "this node is not the controller now")
