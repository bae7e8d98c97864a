"""Stands in front of what answers a connection, and lets through what its client may ask."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from streaming.gateway.answering import SHORT_FRAME_BYTES, answered_in_turn, apart
from streaming.gateway.calls import Answer, BoundListener, NotReady, Served
from streaming.gateway.ports import ClusterView
from streaming.gateway.rights.asked import Amended, Asked, Refused, Verdict
from streaming.gateway.rights.rules import FREE, RULES
from streaming.security.acls import Client
from streaming.security.authorizer import Authorizer, AuthorizerFailed
from streaming.wire.apis import ApiKey
from streaming.wire.errors import UnsupportedApi
from streaming.wire.passing import request_prefix
from streaming.wire.requests import encode_request
from streaming.wire.responses import decode_response, encode_response
from streaming.wire.schema_codec import Body

logger = logging.getLogger(__name__)

_ANSWERED_WITHOUT_TASK = frozenset({ApiKey.JOIN_GROUP, ApiKey.SYNC_GROUP, ApiKey.HEARTBEAT})
"""Nothing else answers these; they are judged by what they begin with, however long they are."""


T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class _Judged:
    """What is known of a request; the verdict stands only if nothing about it is open."""

    asked: Asked
    verdict: Verdict

    @property
    def goes_through(self) -> bool:
        """Whether it may be asked as it is."""
        return self.verdict is None and not self.asked.is_open


class Guard:
    """Answers one client as what it stands before does, as far as the client may ask.

    What may be asked as it is goes through as it came; of what may not be asked nothing is seen
    behind. Counts operations_denied.
    """

    def __init__(
        self,
        served: Served,
        client: Client,
        authorizer: Authorizer,
        view: ClusterView,
        counters: Counter[str],
    ) -> None:
        """Take what answers, who asks, and by what is judged whether it may."""
        self._served = served
        self._client = client
        self._by = (authorizer, view, counters)
        self._judged: _Judged | None = None
        self._client_host = ""

    @property
    def listener(self) -> BoundListener:
        """Where requests come in."""
        return self._served.listener

    def largest_bytes(self, configured_bytes: int) -> int:
        """Return how large a request may be."""
        return self._served.largest_bytes(configured_bytes)

    def at_once(self, api_key: int, request_frame: bytes) -> bytes | None:
        """Return a refusal, or what is behind this answers at once."""
        self._judged = None
        if api_key in FREE:
            return self._served.at_once(api_key, request_frame)
        if len(request_frame) > SHORT_FRAME_BYTES and api_key not in _ANSWERED_WITHOUT_TASK:
            return None  # it is judged apart
        judged = self._judge(request_frame)
        answer = None
        if not judged.asked.is_open:
            judged.asked.tell_refusals()
            if isinstance(judged.verdict, Refused):
                return _encoded(judged.asked, judged.verdict.body)
            if judged.verdict is None:
                answer = self._served.at_once(api_key, request_frame)
        if answer is None:
            self._judged = judged
        return answer

    def try_answer(
        self, api_key: int, request_frame: bytes, client_host: str, answer: Answer
    ) -> bool:
        """Answer without a task what may be asked as it is."""
        self._client_host = client_host
        as_it_is = api_key in FREE or (self._judged is not None and self._judged.goes_through)
        if not as_it_is:
            return False
        taken = self._served.try_answer(api_key, request_frame, client_host, answer)
        if taken:
            self._judged = None  # which may be large, and who asked may be silent from now on
        return taken

    async def answer(self, request_frame: bytes) -> bytes:
        """Answer what may be asked; raises as what is behind this."""
        if request_prefix(request_frame).api_key in FREE:
            return await self._served.answer(request_frame)
        judged, self._judged = self._judged, None
        if judged is None:
            judged = await apart(len(request_frame), lambda: self._judge(request_frame))
        asked, verdict = judged.asked, judged.verdict
        was_open, api_key = asked.is_open, asked.prefix.api_key
        if was_open:
            await _settle(asked)
            rule = RULES[api_key]
            verdict = await _settled(asked, len(request_frame), lambda: rule(asked))
        asked.tell_refusals()
        match verdict:
            case Refused(body):
                return await apart(len(request_frame), lambda: _encoded(asked, body))
            case Amended():
                return await self._amended(asked, verdict)
            case None if was_open and api_key in _ANSWERED_WITHOUT_TASK:
                return await answered_in_turn(self._served, request_frame, self._client_host)
            case None:
                return await self._served.answer(request_frame)

    def _judge(self, request_frame: bytes) -> _Judged:
        """Judge a request; a long one on another thread, as names are looked up in the image and
        nothing hangs on when. Raises UnsupportedApi for what has no rule, UnsupportedVersion,
        MalformedFrame.
        """
        prefix = request_prefix(request_frame)
        rule = RULES.get(prefix.api_key)
        if rule is None:
            raise UnsupportedApi(prefix.api_key, prefix.api_version, prefix.correlation_id)
        listener = self._served.listener.name
        asked = Asked(prefix, request_frame, self._client, listener, *self._by)
        return _Judged(asked, rule(asked))

    async def _amended(self, asked: Asked, amended: Amended) -> bytes:
        key, request = asked.prefix.api_key, asked.frame
        version = asked.version if amended.version is None else amended.version
        if amended.request is not None:
            header, body = asked.request.header, amended.request
            known = (header.correlation_id, header.client_id)
            request = await apart(len(request), lambda: encode_request(key, version, *known, body))
        answer = await self._served.answer(request)
        if amended.amend is None and version == asked.version:
            return answer
        amend = amended.amend or (lambda body: body)
        amended_answer = await _settled(
            asked,
            max(len(answer), len(asked.frame)),
            lambda: _encoded(asked, amend(decode_response(key, version, answer)[1])),
        )
        asked.tell_refusals()
        return amended_answer


async def _settled(asked: Asked, size_bytes: int, make: Callable[[], T]) -> T:
    """Return what is made of a request, again as often as that opens questions; long ones on
    another thread.
    """
    while True:
        made = await apart(size_bytes, make)
        if not asked.is_open:
            return made
        await _settle(asked)


async def _settle(asked: Asked) -> None:
    """Raises NotReady, on which a client asks again, where a refusal would be final."""
    try:
        await asked.settle()
    except AuthorizerFailed as error:
        logger.warning("%s", error)
        raise NotReady(str(error)) from error


def _encoded(asked: Asked, body: Body) -> bytes:
    prefix = asked.prefix
    return encode_response(prefix.api_key, prefix.api_version, prefix.correlation_id, body)
