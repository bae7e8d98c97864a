"""Has requests decided, and tells failures as error codes."""

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
        brokers ask the controller again, whoever it is then.
        """
        self._decider = decider
        self._timeout_s = timeout_s
        self._paused = paused

    async def reply(self, kind: EventKind, key: str, payload: dict[str, Any]) -> dict[str, Any]:
        """Return the reply, or {"error": code} when there is none: NOT_CONTROLLER makes who asked
        look for the controller, REQUEST_TIMED_OUT ask again.
        """
        try:
            return await self._decider.submit(kind, key, payload, self._timeout_s)
        except Paused as paused:
            return {"error": self._paused, "message": str(paused)}
        except NotController:
            return {"error": ProtocolError.NOT_CONTROLLER}
        except DecisionTimedOut:
            return {"error": ProtocolError.REQUEST_TIMED_OUT}
