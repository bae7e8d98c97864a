"""Has requests of administrators decided, and tells failures as error codes."""

from __future__ import annotations

from typing import Any

from state.events import EventKind
from state.protocol_errors import ProtocolError
from streaming.gateway.ports import ClusterView, Decider, DecisionTimedOut, NotController, Paused


class AdminRequests:
    """What CreatePartitions, ElectLeaders and AlterPartitionReassignments share."""

    def __init__(self, view: ClusterView, decider: Decider, timeout_max_s: float) -> None:
        """Take the cluster, who decides, and the longest wait."""
        self.view = view
        self._decider = decider
        self._timeout_max_s = timeout_max_s

    def ready(self) -> bool:
        """Return whether requests can be decided here now."""
        return self.view.image() is not None and self.view.is_controller()

    async def reply(
        self, kind: EventKind, topic: str, payload: dict[str, Any], timeout_ms: int
    ) -> dict[str, Any]:
        """Return the reply to an event about a topic, or {"error": code} when there is none."""
        if not self.ready():
            return {"error": ProtocolError.NOT_CONTROLLER}
        timeout_s = min(max(timeout_ms, 0) / 1000, self._timeout_max_s)
        try:
            return await self._decider.submit(kind, topic, payload, timeout_s)
        except Paused as paused:
            return {"error": ProtocolError.POLICY_VIOLATION, "message": str(paused)}
        except NotController:
            return {"error": ProtocolError.NOT_CONTROLLER}
        except DecisionTimedOut:
            return {"error": ProtocolError.REQUEST_TIMED_OUT}
