"""A request on its way through the gateway, and the shape of what answers it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias

from streaming.security.acls import Client
from streaming.wire.passing import RequestPrefix
from streaming.wire.requests import RequestHeader
from streaming.wire.schema_codec import Body

_MESSAGE_CHARACTERS_MAX = 1_000


@dataclass(frozen=True, slots=True)
class BoundListener:
    """A listener's name and the address under which this node is reached on it."""

    name: str
    host: str
    port: int


@dataclass(frozen=True, slots=True)
class Call:
    """One decoded request; listener is the one its connection came in on, frame its bytes, client
    whoever asks.
    """

    header: RequestHeader
    body: Body
    listener: BoundListener
    frame: bytes
    client: Client

    @property
    def version(self) -> int:
        """The request's version, and so the response's."""
        return self.header.api_version


class HangUp(Exception):
    """The request ends its connection; the message says why. answer: what is sent before, if
    anything, a whole response with its header.
    """

    def __init__(self, reason: str, answer: bytes | None = None) -> None:
        super().__init__(reason)
        self.answer = answer


class NotReady(HangUp):
    """What the answer depends on is not known yet; clients ask another node, or again."""


class NotAuthenticated(HangUp):
    """Somebody is not let in; the message is for our log."""


def shortened(message: str) -> str:
    """Return a message as clients and logs get it: one that repeats what clients sent may be longer
    than an answer can hold.
    """
    if len(message) <= _MESSAGE_CHARACTERS_MAX:
        return message
    return f"{message[:_MESSAGE_CHARACTERS_MAX]}..."


Mute: TypeAlias = Callable[[int], None]
"""Lets a client wait for so many milliseconds, once it has its answer."""


class Served(Protocol):
    """What answers the requests of one connection."""

    @property
    def listener(self) -> BoundListener:
        """Where they come in."""
        ...

    def largest_bytes(self, configured_bytes: int) -> int:
        """Return how large a request may be."""
        ...

    def at_once(self, api_key: int, request_frame: bytes) -> bytes | None:
        """Return the answer to a request that need not wait, None for others; asked first of each
        request. Raises WireError.
        """
        ...

    def try_answer(
        self, api_key: int, request_frame: bytes, client_host: str, answer: Answer
    ) -> bool:
        """Answer a request without a task, perhaps later; return whether that is possible. Raises
        WireError.
        """
        ...

    async def answer(self, request_frame: bytes) -> bytes:
        """Return a whole response, its header included; raises WireError, HangUp and whatever a
        handler does.
        """
        ...


Handler: TypeAlias = Callable[[Call], Awaitable[Body | bytes]]
"""Answers one API: returns the response's body, or its bytes when it encoded them itself."""

PassedHandler: TypeAlias = Callable[[BoundListener, RequestPrefix, bytes], Awaitable[bytes]]
"""Answers a request that was not decoded: returns a whole response, its header included."""


@dataclass(frozen=True, slots=True)
class AtOnce:
    """Answers one API without waiting for anything: a request's frame in, a whole response out, its
    header included; raises WireError.
    """

    answer: Callable[[bytes], bytes]


Answer: TypeAlias = Callable[[bytes], None]
"""Takes a whole response, its header included; called once, on the gateway's event loop."""

TryAnswer: TypeAlias = Callable[[bytes, str, Answer], bool]
"""Gets a request's frame, the client's host as Java writes it (/127.0.0.1) and what takes the
response, perhaps later; returns whether it answers the request; raises WireError.
"""


@dataclass(frozen=True, slots=True)
class WithoutTask:
    """Answers one API without a task, at once or later; what is not taken is answered by the
    handler, if there is one.
    """

    try_answer: TryAnswer
    otherwise: Handler | None = None


@dataclass(frozen=True, slots=True)
class Apis:
    """What the gateway answers.

    By API key: handlers answer what is decoded, at_once what need not wait, and without_task is
    tried before the handler. passed: the APIs whose requests are passed to a broker undecoded;
    passed_versions: the one version that is, of an API that is decoded otherwise.
    close: to await at the end.
    """

    handlers: Mapping[int, Handler]
    passed: Collection[int]
    pass_on: PassedHandler
    close: Callable[[], Awaitable[None]]
    at_once: Mapping[int, Callable[[bytes], bytes]] = field(default_factory=dict)
    without_task: Mapping[int, TryAnswer] = field(default_factory=dict)
    passed_versions: Mapping[int, int] = field(default_factory=dict)
