"""Answers the requests that come in on one listener: decodes, hands over, encodes."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from streaming.gateway.calls import Answer, Apis, BoundListener, Call, Mute, Served
from streaming.gateway.versions import unsupported_version_response
from streaming.security.acls import Client
from streaming.security.principals import STRANGER
from streaming.wire.apis import APIS, ApiKey
from streaming.wire.errors import UnsupportedVersion
from streaming.wire.passing import RequestPrefix, request_prefix
from streaming.wire.requests import Request, decode_request
from streaming.wire.responses import encode_response, encode_response_header

T = TypeVar("T")

SHORT_FRAME_BYTES = 1 << 16
_LONG_FRAMES = ThreadPoolExecutor(1, "long-frame")
"""Takes requests apart that would keep all others waiting; one at a time, as they take memory."""

_COUNTER = {key: f"requests_{api.name}" for key, api in APIS.items()}


async def apart(frame_bytes: int, work: Callable[[], T]) -> T:
    """Return what work makes of a request or an answer; of a long one on a thread of its own."""
    if frame_bytes <= SHORT_FRAME_BYTES:
        return work()
    return await asyncio.get_running_loop().run_in_executor(_LONG_FRAMES, work)


async def answered_in_turn(served: Served, request_frame: bytes, client_host: str) -> bytes:
    """Return the answer to a request that was not tried before: at once, without a task, or in one;
    raises as `Served`.
    """
    api_key = int.from_bytes(request_frame[:2], "big")
    answer = served.at_once(api_key, request_frame)
    if answer is not None:
        return answer
    answered: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()

    def take(answer: bytes) -> None:
        if not answered.done():  # whoever asked may be gone
            answered.set_result(answer)

    if served.try_answer(api_key, request_frame, client_host, take):
        return await answered
    return await served.answer(request_frame)


class Answering:
    """What is served on one listener to one client; to a stranger until it is known who asks."""

    __slots__ = ("_apis", "_client", "_counters", "_mute", "listener")

    def __init__(
        self,
        listener: BoundListener,
        apis: Apis,
        counters: Counter[str],
        client: Client = STRANGER,
        mute: Mute = lambda _: None,
    ) -> None:
        """Take where requests come in, what is served, what to count in, who asks, and what keeps
        a client quiet that is told to be (KIP-219).
        """
        self.listener = listener
        self._apis = apis
        self._counters = counters
        self._client = client
        self._mute = mute

    def to(self, client: Client, mute: Mute) -> Answering:
        """Return what serves the same to a client."""
        return Answering(self.listener, self._apis, self._counters, client, mute)

    def largest_bytes(self, configured_bytes: int) -> int:
        """Return how large a request may be."""
        return configured_bytes

    def at_once(self, api_key: int, request_frame: bytes) -> bytes | None:
        """Return the answer to a request that need not wait, None for others; raises WireError."""
        answer_of = self._apis.at_once.get(api_key)
        if answer_of is None:
            return None
        answer = answer_of(request_frame)
        self._counters[_COUNTER[api_key]] += 1
        return answer

    def try_answer(
        self, api_key: int, request_frame: bytes, client_host: str, answer: Answer
    ) -> bool:
        """Answer a request without a task, perhaps later; return whether that is possible. Raises
        WireError.
        """
        try_answer = self._apis.without_task.get(api_key)
        taken = try_answer is not None and try_answer(request_frame, client_host, answer)
        if taken:
            self._counters[_COUNTER[api_key]] += 1
        return taken

    async def answer(self, request_frame: bytes) -> bytes:
        """Return a whole response, its header included; raises WireError, HangUp and whatever a
        handler does.
        """
        prefix = request_prefix(request_frame)
        passed_version = self._apis.passed_versions.get(prefix.api_key)
        if prefix.api_key in self._apis.passed or prefix.api_version == passed_version:
            return await self._pass_on(prefix, request_frame)
        try:
            request = await self._decoded(request_frame)
        except UnsupportedVersion as error:
            if error.api_key != ApiKey.API_VERSIONS:
                raise
            self._counters["unsupported_api_versions"] += 1
            return unsupported_version_response(error.correlation_id)
        return await self._handle(request, request_frame)

    async def _decoded(self, request_frame: bytes) -> Request:
        handlers = self._apis.handlers
        return await apart(len(request_frame), lambda: decode_request(request_frame, handlers))

    async def _pass_on(self, prefix: RequestPrefix, request_frame: bytes) -> bytes:
        self._counters[_COUNTER[prefix.api_key]] += 1
        return await self._apis.pass_on(self.listener, prefix, request_frame)

    async def _handle(self, request: Request, request_frame: bytes) -> bytes:
        header = request.header
        self._counters[_COUNTER[header.api_key]] += 1
        call = Call(header, request.body, self.listener, request_frame, self._client)
        body = await self._apis.handlers[header.api_key](call)
        if isinstance(body, bytes):
            prefix = (header.api_key, header.api_version, header.correlation_id)
            return encode_response_header(*prefix) + body
        if throttle_ms := body.get("throttle_time_ms"):
            self._counters["clients_throttled"] += 1
            self._mute(throttle_ms)
        return encode_response(header.api_key, header.api_version, header.correlation_id, body)
