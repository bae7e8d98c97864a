"""Has requests decided, and answers failures with error codes."""

from __future__ import annotations

from typing import Any

from state.event_kinds import EventKind
from state.protocol_errors import ProtocolError
from streaming.gateway.ports import Decider, DecisionTimedOut, NotController, Paused


class Deciding:
    """Waits for decisions on behalf of the APIs that need one."""

    def __init__(
        self,
        decider: Decider,
        timeout_s: float,
        paused: ProtocolError = ProtocolError.NOT_CONTROLLER,
    ) -> None:
        """Take who decides, how long a request waits for it, and what is answered during a pause:
        on NOT_CONTROLLER brokers look for the controller and ask again.
        """
        self._decider = decider
        self._timeout_s = timeout_s
        self._paused = paused

    async def reply(self, kind: EventKind, key: str, payload: dict[str, Any]) -> dict[str, Any]:
        """Return the reply, or {"error": code} when there is none: on NOT_CONTROLLER clients look
        for the controller, on REQUEST_TIMED_OUT they ask again.
        """
        try:
            return await self._decider.submit(kind, key, payload, self._timeout_s)
        except Paused as paused:
            return {"error": self._paused, "message": str(paused)}
        except NotController:
            return {"error": ProtocolError.NOT_CONTROLLER}
        except DecisionTimedOut:
            return {"error": ProtocolError.REQUEST_TIMED_OUT}
