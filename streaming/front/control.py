"""Takes operators' orders on a socket and puts them into the log."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import orjson

from state.errors import MalformedEvent
from state.event_kinds import EventKind
from state.events import Event, parse_payload
from streaming.front.unix_server import UnixServer
from streaming.log.api import LogError, NewRecord
from streaming.log.events import AppendEvents, event

_ORDERS: Mapping[str, EventKind] = {
    "pause": EventKind.CONTROLLER_PAUSED,
    "resume": EventKind.CONTROLLER_RESUMED,
    "allow_shutdown": EventKind.CONTROLLED_SHUTDOWN_ALLOWED,
}
_OF_A_PAUSE = frozenset({EventKind.CONTROLLER_PAUSED, EventKind.CONTROLLER_RESUMED})
_TIMEOUT_S = 10.0
_STILL_PAUSED = "the job came back without its checkpoint during a pause"
_NOT_PAUSED = (
    "the controller is not paused, or its pause is not carried out yet, or is being ended already"
)


class ControlServer:
    """Reads one order from whoever connects, answers it, and hangs up
    (streaming.sockets.control_socket).
    """

    def __init__(
        self,
        path: Path,
        append: AppendEvents,
        end_offset: int,
        on_resumed: Callable[[int], None],
        is_paused_after: Callable[[int], bool],
    ) -> None:
        """Append orders with `append` to a log that ends at end_offset; on_resumed is called with
        the offset of a pause's end once that is durable. is_paused_after: whether all that was
        decided up to an event is written, and nothing is decided now.
        """
        self._append = append
        self._on_resumed = on_resumed
        self._is_paused_after = is_paused_after
        self._under_way: list[str] = []  # orders about pauses that are not durable yet: kinds
        self._newest = end_offset - 1  # of those that are: a front before us may have taken one
        self._newest_kind = ""  # of an order of this front
        self._server = UnixServer(path, self._serve)

    async def start(self) -> None:
        """Listen."""
        await self._server.start()

    async def stop(self) -> None:
        """Stop listening."""
        await self._server.stop()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(_TIMEOUT_S):
                line = await reader.readline()
            # Without a bound: a log that is slow takes the event even if nobody waits for it.
            writer.write(orjson.dumps(await self._take(line)))
            async with asyncio.timeout(_TIMEOUT_S):
                await writer.drain()
        except (OSError, TimeoutError, ValueError):
            pass  # whoever asked is gone, or sends no end of it
        finally:
            writer.close()

    def give(self, order: NewRecord) -> asyncio.Future[range]:
        """Append an order, of an operator or our own; what is about a pause has to be carried out
        before a pause may end.
        """
        appended = asyncio.wrap_future(self._append([order]))
        if order.kind in _OF_A_PAUSE:
            self._under_way.append(order.kind)
            appended.add_done_callback(partial(self._appended, order.kind))
        return appended

    def pauses_on(self, was_paused: bool) -> bool:
        """Return whether a pause goes on for a job that knows of none.

        was_paused: what jobs said before; the newest order of ours counts more, be it durable or
        not: they may not have folded it.
        """
        newest = self._under_way[-1] if self._under_way else self._newest_kind
        return newest == EventKind.CONTROLLER_PAUSED if newest else was_paused

    def pause_again(self, begins_at: int, reason: str | None) -> bool:
        """Append a pause that goes on again, unless a job that folds the log from an offset on
        comes to it; return whether that was done. reason: the operator's, if it is known.
        """
        is_ahead = bool(self._newest_kind) and not self._under_way and self._newest >= begins_at
        if not is_ahead:
            self.give(event(EventKind.CONTROLLER_PAUSED, {"reason": reason or _STILL_PAUSED}))
        return not is_ahead

    def _appended(self, kind: str, appended: asyncio.Future[range]) -> None:
        self._under_way.remove(kind)
        if appended.cancelled() or appended.exception() is not None:
            return
        self._newest, self._newest_kind = appended.result().start, kind
        if kind == EventKind.CONTROLLER_RESUMED:
            self._on_resumed(self._newest)

    async def _take(self, line: bytes) -> dict[str, Any]:
        try:
            order = order_event(line)
            if order.kind == EventKind.CONTROLLER_RESUMED and not self._may_resume():
                return {"error": _NOT_PAUSED}
            appended = await self.give(order)
        except (MalformedEvent, LogError) as error:
            return {"error": str(error)}
        return {"offset": appended.start}

    def _may_resume(self) -> bool:
        """Return whether everything may be read again under the same claim: what is decided and not
        written yet would be taken back by what is read before it is.
        """
        return not self._under_way and self._is_paused_after(self._newest)


def order_event(line: bytes) -> NewRecord:
    """Return the event of an order, {"order": name, ...} with the fields of its event; raises
    MalformedEvent.
    """
    try:
        body = dict(orjson.loads(line))
        kind = _ORDERS[body.pop("order")]
    except (ValueError, TypeError, KeyError) as error:
        raise MalformedEvent(f"{line[:200]!r} is no order: {error!r}") from None
    record = event(kind, body)
    parse_payload(Event(0, 0, record.kind, record.key, record.payload))
    return record
