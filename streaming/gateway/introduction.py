"""A connection of whose client somebody else has to be asked who it is."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from streaming.gateway.answering import answered_in_turn
from streaming.gateway.calls import (
    Answer,
    BoundListener,
    NotAuthenticated,
    NotReady,
    Served,
    shortened,
)
from streaming.security.acls import Client
from streaming.security.identity import Refused, Undecided


class Introduction:
    """Has the place of what answers one connection. Who its client is, is asked with the first
    request: who asks nothing costs nothing.
    """

    def __init__(
        self,
        before: Served,
        find: Callable[[], Awaitable[Client]],
        serve: Callable[[Client], Served],
    ) -> None:
        """Take what is served to a stranger, what returns who the client is, or raises Refused or
        Undecided, and what returns what answers it.
        """
        self._before = before
        self._find = find
        self._serve = serve
        self._served: Served | None = None
        self._client_host = ""

    @property
    def listener(self) -> BoundListener:
        """Where requests come in."""
        return self._before.listener

    def largest_bytes(self, configured_bytes: int) -> int:
        """Return how large a request may be."""
        return (self._served or self._before).largest_bytes(configured_bytes)

    def at_once(self, api_key: int, request_frame: bytes) -> bytes | None:
        """Answer as what is behind this, once that is known."""
        return None if self._served is None else self._served.at_once(api_key, request_frame)

    def try_answer(
        self, api_key: int, request_frame: bytes, client_host: str, answer: Answer
    ) -> bool:
        """Answer as what is behind this, once that is known."""
        if self._served is None:
            self._client_host = client_host
            return False
        return self._served.try_answer(api_key, request_frame, client_host, answer)

    async def answer(self, request_frame: bytes) -> bytes:
        """Answer as what is behind this; raises as that, NotAuthenticated, and NotReady while it
        cannot be asked who the client is.
        """
        if self._served is not None:
            return await self._served.answer(request_frame)
        try:
            client = await self._find()
        except Refused as refused:
            raise NotAuthenticated(shortened(str(refused))) from None
        except Undecided as undecided:
            raise NotReady(shortened(str(undecided))) from None
        self._served = self._serve(client)
        return await answered_in_turn(self._served, request_frame, self._client_host)
