"""The job's end of the link: append events, hand over decisions and replies.

Calls may come from any thread. When the front goes away appends fail with LinkDown at once, and a
background thread connects again; what the job says after that starts with the whole image.
"""

from __future__ import annotations

import contextlib
import itertools
import logging
import os
import socket
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, InvalidStateError
from pathlib import Path
from typing import Any

from streaming.errors import HelmstreamError
from streaming.link.from_job import Append, Hello
from streaming.link.messages import (
    HEADER_BYTES,
    Message,
    decode_message,
    encode_message,
    frame_lengths,
    pack_parts,
)
from streaming.log.api import NewRecord

logger = logging.getLogger(__name__)

_RETRY_S = 0.2


class LinkDown(HelmstreamError):
    """The front cannot be reached now, or cannot append now."""


class AppendRefused(HelmstreamError):
    """The log takes no such record, now or later."""


class JobLink:
    """A connection to the front that comes back by itself.

    on_connected is called, on the link's own thread, each time a connection was made: it sends the
    image.
    """

    def __init__(self, path: Path, on_connected: Callable[[JobLink], None]) -> None:
        """Remember where the front listens; `start` connects."""
        self._path = path
        self._on_connected = on_connected
        self._ids = itertools.count()
        self._waiting: dict[int, Future[int]] = {}
        self._lock = threading.Lock()
        self._socket: socket.socket | None = None
        self._stopped = threading.Event()
        self._failure: Exception | None = None
        self._thread = threading.Thread(target=self._run, name="front-link", daemon=True)

    def start(self) -> None:
        """Connect in the background, and keep connected until `stop`."""
        self._thread.start()

    def check(self) -> None:
        """Raise what ended the background thread, if it failed: nothing connects again then."""
        if self._failure is not None:
            raise self._failure

    def stop(self) -> None:
        """Close the connection; may be called twice."""
        self._stopped.set()
        self._disconnect()

    def append(self, records: Sequence[NewRecord], timeout_s: float = 30.0) -> int:
        """Append events to the log and return the first one's offset once all are durable.

        Raises LinkDown when the front is away or does not answer in time; the records may then be
        in the log or not. Raises AppendRefused when there is no use in trying again.
        """
        request_id = next(self._ids)
        future: Future[int] = Future()
        self._waiting[request_id] = future
        try:
            head = Append.of(request_id, records).head()
            self.send(head, pack_parts([record.payload for record in records]))
            return future.result(timeout_s)
        except TimeoutError as error:
            raise LinkDown(f"the front did not confirm an append in {timeout_s} s") from error
        finally:
            self._waiting.pop(request_id, None)

    def send(self, head: dict[str, Any], body: bytes = b"") -> None:
        """Send one message; raises LinkDown."""
        frame = encode_message(head, body)
        with self._lock:
            if self._socket is None:
                raise LinkDown(f"no front listens on {self._path}")
            try:
                self._socket.sendall(frame)
            except OSError as error:
                raise LinkDown(f"the front hung up: {error}") from error

    def _run(self) -> None:
        try:
            self._stay_connected()
        except Exception as error:  # noqa: BLE001 - raised again by check
            self._failure = error

    def _stay_connected(self) -> None:
        while not self._stopped.is_set():
            connection = self._connect()
            if connection is None:
                self._stopped.wait(_RETRY_S)
                continue
            try:
                # Nobody else may say anything before hello: the front hangs up on strangers.
                connection.sendall(encode_message(Hello(os.getpid()).head()))
                with self._lock:
                    self._socket = connection
                if self._stopped.is_set():
                    return
                self._on_connected(self)
                self._receive(connection)
            except (OSError, LinkDown):
                pass
            except (ValueError, KeyError, TypeError) as error:
                logger.exception("the front sent a broken message, we connect again: %s", error)
            finally:
                self._disconnect()
                connection.close()

    def _connect(self) -> socket.socket | None:
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            connection.connect(str(self._path))
        except OSError:
            connection.close()
            return None
        return connection

    def _receive(self, connection: socket.socket) -> None:
        with connection.makefile("rb") as stream:
            while len(header := stream.read(HEADER_BYTES)) == HEADER_BYTES:
                head_bytes, body_bytes = frame_lengths(header)
                head, body = stream.read(head_bytes), stream.read(body_bytes)
                if len(head) == head_bytes and len(body) == body_bytes:
                    self._take(decode_message(head, body))

    def _take(self, message: Message) -> None:
        future = self._waiting.get(message.head.get("id", -1))
        if message.type != "appended" or future is None:
            return
        if "refused" in message.head:
            refused = f"the event log never takes an event: {message.head['refused']}"
            _fail(future, AppendRefused(refused))
        elif "error" in message.head:
            _fail(future, LinkDown(f"an append failed: {message.head['error']}"))
        else:
            start: int = message.head["start"]
            with _unless_ended():
                future.set_result(start)

    def _disconnect(self) -> None:
        connection = self._socket
        if connection is not None:
            # Without the lock: whoever has it may be sending to a front that does not read. The
            # reading thread holds the socket too, so closing alone would not end the connection.
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
            with self._lock:
                self._socket = None
            connection.close()
        for future in list(self._waiting.values()):
            _fail(future, LinkDown("the front hung up"))


def _fail(future: Future[int], error: Exception) -> None:
    with _unless_ended():
        future.set_exception(error)


def _unless_ended() -> contextlib.suppress:
    """Whoever stops the link and the thread that reads may both end a future."""
    return contextlib.suppress(InvalidStateError)
