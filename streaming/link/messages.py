"""Frames between front and job: a JSON head and a binary body.

uint32 head length, uint32 body length (little endian), head, body. The head's "type" names the
message: what a job says is in `from_job`, and the front says one thing:

  appended   {id, start}, {id, refused} or {id, error}
             the records of `append` are durable from offset start on; refused: the log never takes
             one of them
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

_LENGTHS = struct.Struct("<II")
HEADER_BYTES = _LENGTHS.size


@dataclass(frozen=True, slots=True)
class Message:
    """One frame, decoded."""

    head: dict[str, Any]
    body: bytes | memoryview

    @property
    def type(self) -> str:
        """The message's type."""
        kind: str = self.head["type"]
        return kind


def encode_message(head: Mapping[str, Any], body: bytes = b"") -> bytes:
    """Return the frame's bytes."""
    encoded = orjson.dumps(head, option=orjson.OPT_NON_STR_KEYS)
    return b"".join([_LENGTHS.pack(len(encoded), len(body)), encoded, body])


def frame_lengths(header: bytes) -> tuple[int, int]:
    """Return (head bytes, body bytes) announced by a frame's first HEADER_BYTES."""
    head, body = _LENGTHS.unpack(header)
    return head, body


def decode_message(head: bytes, body: bytes | memoryview) -> Message:
    """Return the message of a complete frame."""
    return Message(orjson.loads(head), body)


def pack_parts(parts: Sequence[bytes]) -> bytes:
    """Return the body that carries several values; their sizes travel in the head."""
    return b"".join(parts)


def unpack_parts(body: bytes | memoryview, sizes: Sequence[int]) -> list[memoryview]:
    """Return the values of a body as views on it; ValueError: the sizes do not add up."""
    if sum(sizes) != len(body):
        raise ValueError(f"body of {len(body)} bytes, its parts say {sum(sizes)}")
    body, parts, start = memoryview(body), [], 0
    for size in sizes:
        parts.append(body[start : start + size])
        start += size
    return parts
