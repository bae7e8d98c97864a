"""Requests about the cluster and its topics on their way to the machines and back."""

from __future__ import annotations

from typing import Any

from state.event_kinds import EventKind
from state.protocol_errors import ProtocolError
from streaming.gateway.ports import (
    DecisionClient,
    DecisionTimedOut,
    NotController,
    Paused,
    ReplyBody,
)


class ClusterRequests:
    """Has requests decided, and answers failures with error codes."""

    def __init__(
        self,
        decision_client: DecisionClient,
        timeout_s: float,
        paused: ProtocolError = ProtocolError.NOT_CONTROLLER,
    ) -> None:
        """timeout_s: how long a decision may take; paused: what is answered during a pause, on
        NOT_CONTROLLER brokers look for the controller and ask again.
        """
        self._decision_client = decision_client
        self._timeout_s = timeout_s
        self._paused = paused

    async def reply(self, kind: EventKind, key: str, payload: dict[str, Any]) -> ReplyBody:
        """Return the reply, or {"error": code} when there is none: on NOT_CONTROLLER clients look
        for the controller, on REQUEST_TIMED_OUT they ask again.
        """
        try:
            return await self._decision_client.submit(kind, key, payload, self._timeout_s)
        except Paused as paused:
            return {"error": self._paused, "message": str(paused)}
        except NotController:
            return {"error": ProtocolError.NOT_CONTROLLER}
        except DecisionTimedOut:
            return {"error": ProtocolError.REQUEST_TIMED_OUT}
