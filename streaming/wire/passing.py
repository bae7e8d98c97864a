"""The few bytes that change when a request is passed on and its answer comes back.

Every request starts with API key int16, version int16, correlation id int32, and every answer with
the correlation id, in all versions of all APIs: nothing else has to be known about them.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

from streaming.wire.errors import MalformedFrame

_REQUEST_PREFIX = struct.Struct(">hhi")
_CORRELATION_ID = struct.Struct(">i")
_ID_IN_REQUEST = 4


@dataclass(frozen=True, slots=True)
class RequestPrefix:
    """What every request starts with."""

    api_key: int
    api_version: int
    correlation_id: int


def request_prefix(request: bytes) -> RequestPrefix:
    """Read the start of a request (without its size); raises MalformedFrame."""
    if len(request) < _REQUEST_PREFIX.size:
        raise MalformedFrame(f"request header cut off at byte {len(request)}")
    return RequestPrefix(*_REQUEST_PREFIX.unpack_from(request))


def request_with_id(request: bytes, correlation_id: int) -> bytes:
    """Return a request with another correlation id."""
    end = _ID_IN_REQUEST + _CORRELATION_ID.size
    return request[:_ID_IN_REQUEST] + _CORRELATION_ID.pack(correlation_id) + request[end:]


def answer_id(answer: bytes) -> int:
    """Return an answer's correlation id; raises MalformedFrame."""
    if len(answer) < _CORRELATION_ID.size:
        raise MalformedFrame(f"response header cut off at byte {len(answer)}")
    return int(_CORRELATION_ID.unpack_from(answer)[0])


def answer_with_id_of(answer: bytes, request: bytes) -> bytes:
    """Return an answer with the correlation id of a request."""
    end = _ID_IN_REQUEST + _CORRELATION_ID.size
    return request[_ID_IN_REQUEST:end] + answer[_CORRELATION_ID.size :]


def answer_with_id(answer: bytes, correlation_id: int) -> bytes:
    """Return an answer with another correlation id."""
    return _CORRELATION_ID.pack(correlation_id) + answer[_CORRELATION_ID.size :]
