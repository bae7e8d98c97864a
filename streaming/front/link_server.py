"""The front's end of the link: one job at a time on a Unix socket."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

from streaming.front.unix_server import UnixServer
from streaming.link.from_job import Append, Hello
from streaming.link.messages import (
    HEADER_BYTES,
    Message,
    decode_message,
    encode_message,
    frame_lengths,
    unpack_parts,
)
from streaming.log.api import NewRecord, RecordRefused
from streaming.log.events import AppendEvents

logger = logging.getLogger(__name__)

_BUFFER_BYTES = 1 << 20
_PIECE_BYTES = 1 << 18


class JobHandler(Protocol):
    """What the front does with what a job says; called on the event loop, in order."""

    def job_connected(self, pid: int) -> None:
        """A job said hello."""

    def job_gone(self) -> None:
        """The job's connection broke."""

    def job_said(self, message: Message) -> Iterator[None]:
        """Any message but hello and append; others are served between two steps of the iterator,
        and the rest is not asked for when another job has come meanwhile.
        """
        ...


class LinkServer:
    """Listens on link.sock; the newest hello is the job, the connection before it is closed.

    Appends are answered when durable, in any order; their order of arrival is the log's.
    """

    def __init__(
        self,
        path: Path,
        append: AppendEvents,
        handler: JobHandler,
    ) -> None:
        """Remember where to listen; `start` does."""
        self._append = append
        self._handler = handler
        self._server = UnixServer(path, self._serve, buffer_bytes=_BUFFER_BYTES)
        self._job: asyncio.StreamWriter | None = None
        self._connections: set[asyncio.StreamWriter] = set()

    async def start(self) -> None:
        """Listen."""
        await self._server.start()

    async def stop(self) -> None:
        """Hang up and stop listening."""
        for writer in list(self._connections):
            writer.close()
        await self._server.stop()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._connections.add(writer)
        try:
            while True:
                await self._take(await _read_message(reader), writer)
        except (asyncio.IncompleteReadError, OSError):
            pass
        except (ValueError, KeyError, TypeError) as error:
            logger.exception("the job sent a broken message, its connection is closed: %s", error)
        finally:
            self._connections.discard(writer)
            writer.close()
            if self._job is writer:
                self._job = None
                self._handler.job_gone()

    async def _take(self, message: Message, writer: asyncio.StreamWriter) -> None:
        if message.type == Hello.kind:
            self._replace_job(writer, Hello.read(message.head).pid)
            return
        self._expect_newest(writer)
        if message.type == Append.kind:
            self._take_append(message, writer)
            return
        for _ in self._handler.job_said(message):
            await asyncio.sleep(0)
            self._expect_newest(writer)

    def _expect_newest(self, writer: asyncio.StreamWriter) -> None:
        if writer is not self._job:
            raise ConnectionResetError("only the newest job is listened to")

    def _replace_job(self, writer: asyncio.StreamWriter, pid: int) -> None:
        if self._job is not None and self._job is not writer:
            logger.info("a new job connects: the connection of the one before is closed")
            self._job.close()
            self._handler.job_gone()
        self._job = writer
        self._handler.job_connected(pid)

    def _take_append(self, message: Message, writer: asyncio.StreamWriter) -> None:
        asked = Append.read(message.head)
        payloads = unpack_parts(message.body, [size for _, _, size in asked.records])
        records = [
            NewRecord(kind, key, bytes(payload))
            for (kind, key, _), payload in zip(asked.records, payloads, strict=True)
        ]
        future = asyncio.wrap_future(self._append(records))
        future.add_done_callback(lambda done: _confirm(writer, asked.id, done))


def _confirm(writer: asyncio.StreamWriter, request_id: int, done: asyncio.Future[range]) -> None:
    error = "cancelled" if done.cancelled() else done.exception()
    answer = {"type": "appended", "id": request_id}
    if not writer.is_closing():
        if error is None:
            told: dict[str, object] = {"start": done.result().start}
        else:
            told = {"refused" if isinstance(error, RecordRefused) else "error": str(error)}
        writer.write(encode_message({**answer, **told}))


async def _read_message(reader: asyncio.StreamReader) -> Message:
    head_bytes, body_bytes = frame_lengths(await reader.readexactly(HEADER_BYTES))
    head = await reader.readexactly(head_bytes)
    if body_bytes <= _PIECE_BYTES:
        return decode_message(head, await reader.readexactly(body_bytes))
    # A body of megabytes is copied once, and others are served meanwhile.
    body = bytearray(body_bytes)
    for start in range(0, body_bytes, _PIECE_BYTES):
        piece = min(_PIECE_BYTES, body_bytes - start)
        body[start : start + piece] = await reader.readexactly(piece)
        await asyncio.sleep(0)
    return decode_message(head, memoryview(body).toreadonly())
