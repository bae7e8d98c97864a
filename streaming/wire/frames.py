"""Splits a byte stream into Kafka's length-prefixed frames, without doing any I/O."""

from __future__ import annotations

import struct

from streaming.wire.errors import FrameTooLarge, MalformedFrame

_SIZE = struct.Struct(">i")
SIZE_BYTES = _SIZE.size
DEFAULT_LIMIT_BYTES = 100 * 1024 * 1024


class FrameSplitter:
    """Collects bytes of one connection and returns complete frames without their size prefix.

    limit_bytes is the largest accepted frame (Kafka's socket.request.max.bytes); it may be changed
    between frames. After an exception the stream has no known boundary any more: close the
    connection.
    """

    __slots__ = ("_buffer", "limit_bytes")

    def __init__(self, limit_bytes: int = DEFAULT_LIMIT_BYTES) -> None:
        self._buffer = bytearray()
        self.limit_bytes = limit_bytes

    def feed(self, data: bytes) -> list[bytes]:
        """Add received bytes and return the frames they complete, in order.

        Raises FrameTooLarge or MalformedFrame (negative size) as soon as the four size bytes
        are known, before the body is buffered.
        """
        if not self._buffer and len(data) >= _SIZE.size:
            (size_bytes,) = _SIZE.unpack_from(data)
            if len(data) - _SIZE.size == size_bytes <= self.limit_bytes:
                return [data[_SIZE.size :]]  # a client that waits for its answers sends just one
        self._buffer += data
        frames = []
        start = 0
        while (end := self._frame_end(start)) is not None and end <= len(self._buffer):
            frames.append(bytes(memoryview(self._buffer)[start + _SIZE.size : end]))
            start = end
        del self._buffer[:start]
        return frames

    def _frame_end(self, start: int) -> int | None:
        if len(self._buffer) - start < _SIZE.size:
            return None
        return start + _SIZE.size + body_size(self._buffer, self.limit_bytes, start)


def body_size(data: bytes | bytearray, limit_bytes: int, start: int = 0) -> int:
    """Read the size in front of a message; raises FrameTooLarge, MalformedFrame (negative)."""
    (size_bytes,) = _SIZE.unpack_from(data, start)
    if size_bytes < 0:
        raise MalformedFrame(f"negative frame size {size_bytes}")
    if size_bytes > limit_bytes:
        raise FrameTooLarge(size_bytes, limit_bytes)
    return int(size_bytes)


def size_prefix(size_bytes: int) -> bytes:
    """Return the four big-endian bytes that go in front of a message."""
    return _SIZE.pack(size_bytes)


def frame(body: bytes) -> bytes:
    """Put its size in front of a message."""
    return size_prefix(len(body)) + body
