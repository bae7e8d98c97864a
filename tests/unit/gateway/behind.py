"""What stands behind a guard in its tests, and who is in front of it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from streaming.gateway.calls import Answer, BoundListener
from streaming.security.acls import Client
from streaming.security.authorizer import AclAuthorizer, AuthorizerFailed, Inquiry, Right
from streaming.wire.requests import decode_by_schema
from streaming.wire.responses import encode_response

CLIENT = Client("User:eve", "10.0.0.1")


class Behind:
    """Notes what it is asked, and answers each request with one body, or with no real answer."""

    listener = BoundListener("CLIENT", "here", 1)

    def __init__(
        self, body: dict[str, Any] | None = None, *, quick: bool = True, taking: bool = True
    ) -> None:
        """quick: whether it answers at once, taking: or without a task."""
        self.asked: list[bytes] = []
        self._body = body
        self._quick, self._taking = quick, taking

    def largest_bytes(self, configured_bytes: int) -> int:
        return configured_bytes

    def at_once(self, _: int, request_frame: bytes) -> bytes | None:
        self.asked.append(request_frame)
        return b"at once" if self._quick else None

    def try_answer(self, _: int, request_frame: bytes, __: str, answer: Answer) -> bool:
        self.asked.append(request_frame)
        if self._taking:
            answer(b"without a task")
        return self._taking

    async def answer(self, request_frame: bytes) -> bytes:
        self.asked.append(request_frame)
        if self._body is None:
            return b"answer"
        header = decode_by_schema(request_frame).header
        return encode_response(
            header.api_key, header.api_version, header.correlation_id, self._body
        )


class AskedFor:
    """An authorizer that has to be asked, and says what another one would; notes what for."""

    ready = True

    def __init__(self, by: AclAuthorizer) -> None:
        self.asked: list[tuple[Inquiry, Mapping[Right, bool]]] = []
        self.failing = False
        self._by = by

    def is_super_user(self, client: Client) -> bool:
        return self._by.is_super_user(client)

    def permits(self, client: Client, right: Right) -> bool | None:
        return None

    async def ask(self, inquiry: Inquiry, rights: Mapping[Right, bool]) -> Mapping[Right, bool]:
        await asyncio.sleep(0)
        self.asked.append((inquiry, dict(rights)))
        if self.failing:
            raise AuthorizerFailed("the authorizer: it is full")
        return await self._by.ask(inquiry, rights)
