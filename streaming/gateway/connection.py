"""One client connection: frames in, answers out, strictly in order."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import dataclass

from streaming.gateway.calls import Apis, BoundListener, Call, HangUp
from streaming.gateway.versions import unsupported_version_response
from streaming.wire.errors import FrameTooLarge, UnsupportedApi, UnsupportedVersion, WireError
from streaming.wire.frames import FrameSplitter, frame
from streaming.wire.messages import (
    APIS,
    ApiKey,
    Request,
    decode_request,
    encode_response,
    encode_response_header,
)
from streaming.wire.passing import RequestPrefix, request_prefix

logger = logging.getLogger(__name__)

_CHUNK_BYTES = 64 * 1024


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
    """The connection must be closed; counter says which count it belongs to."""

    def __init__(self, counter: str, reason: str) -> None:
        super().__init__(reason)
        self.counter = counter


class Connection:
    """Serves one connection until either side closes it.

    One request is in flight at a time, as on a broker, which mutes a channel until its answer is
    sent: answers stay in order, and what a client can make us hold is one request and one answer.
    """

    def __init__(
        self,
        streams: tuple[asyncio.StreamReader, asyncio.StreamWriter],
        listener: BoundListener,
        apis: Apis,
        limits: Limits,
        counters: Counter[str],
    ) -> None:
        """Take the streams, where they came in, what is served, and what to count in."""
        self._reader, self._writer = streams
        self._listener = listener
        self._apis = apis
        self._limits = limits
        self._counters = counters
        # With this, drain() waits until the operating system has taken everything, so that a close
        # never throws away an answer.
        self._writer.transport.set_write_buffer_limits(high=0)
        host, port = (self._writer.get_extra_info("peername") or ("?", "?"))[:2]
        self._peer, self._client_host = f"{host}:{port}", f"/{host}"

    async def serve(self) -> None:
        """Answer requests until the end; what goes wrong ends this connection only."""
        try:
            async for request_frame in self._frames():
                await self._send(await self._answer(request_frame))
        except _Closing as closing:
            self._counters[closing.counter] += 1
            level = logging.DEBUG if closing.counter == "closed_idle" else logging.WARNING
            logger.log(level, "closing %s on %s: %s", self._peer, self._listener.name, closing)
        except OSError:
            pass  # the other side went away
        finally:
            self._writer.transport.abort()

    async def _frames(self) -> AsyncIterator[bytes]:
        splitter = FrameSplitter(self._limits.request_max_bytes)
        while chunk := await self._read():
            try:
                frames = splitter.feed(chunk)
            except FrameTooLarge as error:
                raise _Closing("closed_too_large", str(error)) from error
            except WireError as error:
                raise _Closing("closed_malformed", str(error)) from error
            for request_frame in frames:
                yield request_frame

    async def _read(self) -> bytes:
        idle_s = self._limits.idle_max_ms / 1000
        try:
            async with asyncio.timeout(idle_s):
                return await self._reader.read(_CHUNK_BYTES)
        except TimeoutError as error:
            raise _Closing("closed_idle", f"nothing received for {idle_s} s") from error

    async def _answer(self, request_frame: bytes) -> bytes:
        try:
            prefix = request_prefix(request_frame)
            if prefix.api_key in self._apis.passed:
                return await self._pass_on(prefix, request_frame)
            request = decode_request(request_frame, self._apis.handlers)
        except UnsupportedVersion as error:
            if error.api_key == ApiKey.API_VERSIONS:
                self._counters["unsupported_api_versions"] += 1
                return unsupported_version_response(error.correlation_id)
            raise _Closing("closed_unsupported", str(error)) from error
        except UnsupportedApi as error:
            raise _Closing("closed_unsupported", str(error)) from error
        except WireError as error:
            raise _Closing("closed_malformed", str(error)) from error
        return await self._handle(request, request_frame)

    async def _pass_on(self, prefix: RequestPrefix, request_frame: bytes) -> bytes:
        self._counters[f"requests_{self._apis.passed[prefix.api_key]}"] += 1
        try:
            return await self._apis.pass_on(self._listener, prefix, request_frame)
        except HangUp as error:
            raise _Closing("closed_refused", str(error)) from error

    async def _handle(self, request: Request, request_frame: bytes) -> bytes:
        header = request.header
        self._counters[f"requests_{APIS[header.api_key].name}"] += 1
        call = Call(header, request.body, self._listener, request_frame, self._client_host)
        try:
            body = await self._apis.handlers[header.api_key](call)
            if isinstance(body, bytes):
                prefix = (header.api_key, header.api_version, header.correlation_id)
                return encode_response_header(*prefix) + body
            return encode_response(header.api_key, header.api_version, header.correlation_id, body)
        except HangUp as error:
            raise _Closing("closed_refused", str(error)) from error
        except Exception as error:  # a bug of ours must cost this connection only
            logger.exception("request of %s failed: %s", self._peer, header)
            raise _Closing("closed_failed", repr(error)) from error

    async def _send(self, response: bytes) -> None:
        timeout_s = self._limits.write_timeout_ms / 1000
        self._writer.write(frame(response))
        try:
            async with asyncio.timeout(timeout_s):
                await self._writer.drain()
        except TimeoutError as error:
            reason = f"{len(response)} bytes were not read within {timeout_s} s"
            raise _Closing("closed_slow", reason) from error
