"""One client connection: frames in, answers out, strictly in order."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter, deque
from dataclasses import dataclass
from enum import Enum

from streaming.gateway.admission import Admission, Admitted
from streaming.gateway.calls import HangUp, NotAuthenticated, NotReady
from streaming.gateway.serving import Serving
from streaming.wire.errors import FrameTooLarge, UnsupportedApi, UnsupportedVersion, WireError
from streaming.wire.frames import FrameSplitter, frame
from streaming.wire.requests import request_in_words

logger = logging.getLogger(__name__)

_LARGE_BYTES = 64 * 1024
"""An answer that is not may be in the buffers below TLS when it counts as sent."""
_EXPECTED = frozenset({"closed_idle", "closed_not_ready"})
"""What is no fault of anybody; all clients do it at once."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What a client may take; the first three are Kafka's max.connections,
    socket.request.max.bytes and connections.max.idle.ms.

    write_timeout_ms: how long an answer may wait for its reader before the reader is dropped.
    """

    max_connections: int = 10_000
    request_max_bytes: int = 100 * 1024 * 1024
    idle_max_ms: int = 600_000
    write_timeout_ms: int = 30_000


class _Closing(Exception):
    """The connection must be closed; counter: the name of what counts it."""

    def __init__(self, counter: str, reason: str) -> None:
        super().__init__(reason)
        self.counter = counter


class _Life(Enum):
    """How far a connection has come; one that was refused stays NEW."""

    NEW = "new"
    OPEN = "open"  # answers may be sent
    CLOSING = "closing"
    LOST = "lost"


class Connection(asyncio.Protocol):
    """Serves one connection until either side closes it.

    One request is in flight at a time, as on a broker, which mutes a channel until its answer is
    sent: answers stay in order, and what a client can make us hold is one request, one answer, and
    what was received at once behind that request.
    """

    def __init__(
        self,
        serving: Serving,
        limits: Limits,
        counters: Counter[str],
        admission: Admission,
    ) -> None:
        """Take who answers it, what a client may take, what to count in, and who gives it a place,
        which it has until it has ended and nothing of it is under way.
        """
        self._serving = serving
        self._limits = limits
        self._counters = counters
        self._admission = admission
        self._loop = asyncio.get_running_loop()
        self._splitter = FrameSplitter(limits.request_max_bytes)
        self._frames: deque[bytes] = deque()
        self._unread: deque[bytes] = deque()
        self._task: asyncio.Task[None] | None = None
        self._awaited = False  # an answer comes without a task
        self._trying = False  # and may come at once
        self._rest: memoryview | None = None
        self._slow: asyncio.TimerHandle | None = None
        self._muted: asyncio.TimerHandle | None = None
        self._idle: asyncio.TimerHandle | None = None
        self._heard_s = self._loop.time()
        self._eof = False
        self._life = _Life.NEW
        self._peer = self._client_host = "?"
        self._in_tls = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin, unless there are too many connections."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        if not self._admission.admit(self):
            transport.abort()
            return
        self._open()

    def take_over(self, transport: asyncio.Transport, before: Admitted) -> None:
        """Begin in the place that another one had, unless that is gone."""
        self._transport = transport
        if not self._admission.pass_on(before, self):
            transport.abort()
            return
        self._open()

    def _open(self) -> None:
        transport = self._transport
        self._life = _Life.OPEN
        self._in_tls = transport.get_extra_info("sslcontext") is not None
        # An answer counts as sent once the operating system has taken all of it, so that a close
        # never throws one away.
        transport.set_write_buffer_limits(high=1 if self._in_tls else 0)  # TLS pauses at high
        host, port = (transport.get_extra_info("peername") or ("?", "?"))[:2]
        self._peer, self._client_host = f"{host}:{port}", f"/{host}"
        try:
            self._answering = self._serving.to(transport, self._mute)
        except HangUp as refused:
            self._close(self._closing(refused, b""))
        else:
            self._look_idle()

    def connection_lost(self, error: Exception | None) -> None:
        """End; a request that is being answered is not cancelled."""
        for handle in (self._slow, self._muted, self._idle):
            if handle is not None:
                handle.cancel()
        if self._life is not _Life.NEW:
            self._life = _Life.LOST
            if self._task is None:
                self._leave()

    def _leave(self) -> None:
        """Give the place back, and be in no cycle any more: nobody looks for those of what lived as
        long as a connection does (`streaming.process.garbage`).
        """
        self._admission.leave(self)
        vars(self).pop("_answering", None)  # it knows how to mute us

    async def stop(self) -> None:
        """Hang up, and cancel what is under way."""
        self._transport.abort()
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    def data_received(self, data: bytes) -> None:
        """Take what the client sent; while an answer is under way, no more than once."""
        self._heard_s = self._loop.time()
        self._unread.append(data)
        if self._busy or self._muted is not None:
            self._transport.pause_reading()
        else:
            self._go_on()

    def eof_received(self) -> bool:
        """Answer what was asked before, then close. In TLS it is too late for an answer, and who
        leaves instead of waiting gets none.
        """
        self._eof = True
        self._go_on()
        return not self._in_tls

    def pause_writing(self) -> None:
        """The client does not read fast enough."""
        timeout_s = self._limits.write_timeout_ms / 1000
        reason = f"an answer was not read within {timeout_s} s"
        self._slow = self._loop.call_later(
            timeout_s, lambda: self._close(_Closing("closed_slow", reason))
        )

    def resume_writing(self) -> None:
        """The client has all of an answer."""
        if self._slow is not None:
            self._slow.cancel()
            self._slow = None
        if self._rest is not None and self._life is _Life.OPEN:
            self._send_large(self._rest)
        self._go_on()

    @property
    def _busy(self) -> bool:
        return self._task is not None or self._awaited or self._slow is not None

    def _go_on(self) -> None:
        """Begin with the next request, if it is its turn."""
        try:
            while not self._busy and self._life is _Life.OPEN:
                if self._muted is not None:
                    if self._eof:
                        self._hang_up()
                    return
                if self._frames:
                    self._begin(self._frames.popleft())
                elif self._unread:
                    self._frames.extend(self._split(self._unread.popleft()))
                elif self._eof:
                    self._hang_up()
                    return
                else:
                    self._transport.resume_reading()
                    return
        except _Closing as closing:
            self._close(closing)

    def _split(self, data: bytes) -> list[bytes]:
        self._splitter.limit_bytes = self._answering.largest_bytes(self._limits.request_max_bytes)
        try:
            return self._splitter.feed(data)
        except FrameTooLarge as error:
            raise _Closing("closed_too_large", str(error)) from error
        except WireError as error:
            raise _Closing("closed_malformed", str(error)) from error

    def _begin(self, request_frame: bytes) -> None:
        """Answer a request at once where that is possible, else in a task."""
        api_key = int.from_bytes(request_frame[:2], "big")
        try:
            answer = self._answering.at_once(api_key, request_frame)
            taken = answer is None and self._try_answer(api_key, request_frame)
        except Exception as error:
            raise self._closing(error, request_frame) from error
        if answer is not None:
            self._send(answer)
        elif not taken:
            self._task = self._loop.create_task(self._serve(request_frame))

    def _try_answer(self, api_key: int, request_frame: bytes) -> bool:
        """Return whether the request is answered without a task."""
        self._awaited = self._trying = True
        try:
            taken = self._answering.try_answer(
                api_key, request_frame, self._client_host, self._answered
            )
        finally:
            self._trying = False
        if not taken:
            self._awaited = False
        return taken

    def _answered(self, answer: bytes) -> None:
        self._awaited = False
        self._send(answer)
        self._heard_s = self._loop.time()
        if not self._trying:
            self._go_on()

    async def _serve(self, request_frame: bytes) -> None:
        try:
            answer = await self._answering.answer(request_frame)
        except Exception as error:  # noqa: BLE001 - whatever it is, it ends this connection only
            if isinstance(error, HangUp) and error.answer is not None:
                self._send(error.answer)
            self._close(self._closing(error, request_frame))
            error.__traceback__ = None  # its frames may know the future that it came from, and us
        else:
            self._send(answer)
        finally:
            self._task = None
            if self._life is _Life.LOST:
                self._leave()
        self._heard_s = self._loop.time()
        self._go_on()

    def _closing(self, error: Exception, request_frame: bytes) -> _Closing:
        """Return why a request ends its connection."""
        match error:
            case UnsupportedVersion() | UnsupportedApi():
                return _Closing("closed_unsupported", str(error))
            case WireError():
                return _Closing("closed_malformed", str(error))
            case NotAuthenticated():
                return _Closing("closed_unauthenticated", str(error))
            case NotReady():
                return _Closing("closed_not_ready", str(error))
            case HangUp():
                return _Closing("closed_refused", str(error))
            case _:  # a bug of ours must cost this connection only
                asked = request_in_words(request_frame)
                logger.error("request of %s failed: %s", self._peer, asked, exc_info=error)
                return _Closing("closed_failed", repr(error))

    def _mute(self, pause_ms: int) -> None:
        self._muted = self._loop.call_later(pause_ms / 1000, self._unmute)

    def _unmute(self) -> None:
        self._muted = None
        self._go_on()

    def _send(self, response: bytes) -> None:
        if self._life is not _Life.OPEN:
            return
        data = frame(response)
        if self._in_tls and len(data) > _LARGE_BYTES:
            self._send_large(memoryview(data))
        else:
            self._transport.write(data)

    def _send_large(self, data: memoryview) -> None:
        """Send what TLS counts as read when it has given it away: the first byte waits for what was
        sent before, the last one for the others.
        """
        self._rest = None
        self._transport.write(data[:1])
        if self._slow is not None:
            self._rest = data[1:]  # the client is to read first
            return
        self._transport.write(data[1:-1])
        self._transport.write(data[-1:])

    def _look_idle(self) -> None:
        """Close when nothing was received for too long, else look again when that may be."""
        idle_s = self._limits.idle_max_ms / 1000
        due_s = self._heard_s + idle_s
        now_s = self._loop.time()
        if self._busy:
            due_s = now_s + idle_s
        elif due_s <= now_s:
            self._close(_Closing("closed_idle", f"nothing received for {idle_s} s"))
            return
        self._idle = self._loop.call_at(due_s, self._look_idle)

    def _close(self, closing: _Closing) -> None:
        if self._life is _Life.OPEN:
            self._life = _Life.CLOSING
            self._counters[closing.counter] += 1
            level = logging.DEBUG if closing.counter in _EXPECTED else logging.WARNING
            listener = self._serving.listener.name
            logger.log(level, "closing %s on %s: %s", self._peer, listener, closing)
            self._hang_up()

    def _hang_up(self) -> None:
        # TLS may be in the middle of what it got when it calls us.
        self._loop.call_soon(self._transport.abort)
