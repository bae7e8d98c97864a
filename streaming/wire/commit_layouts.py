"""OffsetCommit requests that differ in their offsets alone, read by comparing them.

A member commits the same partitions again and again. Its request is decoded once; a later one that
is the same but for correlation id, offsets and leader epochs has only these read.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from streaming.wire.apis import APIS, ApiKey
from streaming.wire.errors import WireError
from streaming.wire.offset_commits import (
    EPOCH_SINCE,
    FLEXIBLE_SINCE,
    THROTTLE_SINCE,
    encode_commit_errors,
)
from streaming.wire.reading import varint
from streaming.wire.requests import decode_request
from streaming.wire.responses import encode_response_header

Numbers: TypeAlias = tuple[bytes, ...]
"""Offset and leader epoch of each partition, 12 bytes as they stand in the request."""

NUMBERS_BYTES = 12
_LAYOUTS_MAX = 1 << 13
_REQUEST_BYTES_MAX = 1 << 20
"""Of a request that is compared at all: some 50,000 partitions."""
_REQUESTS_BYTES_MAX = 1 << 24
"""Of the requests whose layouts are kept: a layout takes about ten times its request's bytes."""
_ID_AT, _ID_BYTES = 4, 4
_CLIENT_AT = 8
_LENGTH = struct.Struct(">h")
_GENERATION_BYTES = 4


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class CommitLayout:
    """What requests have in common; equal to itself only.

    partitions and metadata are in the order of the request; errors: by topic its partitions.
    """

    version: int
    group: str
    member: str
    instance: str | None
    generation: int
    partitions: tuple[tuple[str, int], ...]
    metadata: tuple[str, ...]
    _topics: tuple[tuple[str, int], ...]
    _numbers: struct.Struct
    _mask: int
    _fixed: int
    _answers: dict[int, bytes] = field(default_factory=dict)

    def fits(self, request: bytes) -> bool:
        """Return whether a request of the same length has this layout."""
        return int.from_bytes(request) & self._mask == self._fixed

    def numbers(self, request: bytes) -> Numbers:
        """Return the offsets of a request that fits."""
        return self._numbers.unpack(request)

    def answer(self, error: int) -> bytes:
        """Return a response that gives all partitions the same error, with correlation id 0."""
        known = self._answers.get(error)
        if known is None:
            known = self._answers[error] = self._encoded(error)
        return known

    def _encoded(self, error: int) -> bytes:
        numbers = (number for _, number in self.partitions)
        errors = [
            (name, [(next(numbers), error) for _ in range(count)]) for name, count in self._topics
        ]
        head = encode_response_header(ApiKey.OFFSET_COMMIT, self.version, 0)
        return head + encode_commit_errors(
            errors,
            throttle=self.version >= THROTTLE_SINCE,
            flexible=APIS[ApiKey.OFFSET_COMMIT].response.is_flexible(self.version),
        )


class CommitLayouts:
    """The layouts that were kept last, one for each member and length of request, as long as they
    are used.
    """

    def __init__(self) -> None:
        """Know none."""
        self._known: dict[tuple[int, bytes], CommitLayout] = {}
        self._unused: dict[tuple[int, bytes], CommitLayout] = {}
        self._bytes = 0

    def read(self, request: bytes) -> CommitLayout | None:
        """Return the layout that a request fits; None for one that has to be read otherwise: of a
        version without leader epochs, without partitions, very long, or malformed.
        """
        version = request[3] if _CLIENT_AT < len(request) <= _REQUEST_BYTES_MAX else 0
        if version < EPOCH_SINCE:
            return None
        try:
            known = self._used(_key(request))
            return known if known is not None and known.fits(request) else _layout(request)
        except (WireError, struct.error, IndexError, ValueError):
            return None

    def _used(self, key: tuple[int, bytes]) -> CommitLayout | None:
        known = self._known.get(key)
        if known is None and (known := self._unused.pop(key, None)) is not None:
            self._known[key] = known
        return known

    def keep(self, request: bytes, layout: CommitLayout) -> None:
        """Know the layout of a request from now on: of one whose sender may commit, as anybody can
        send any number of others.
        """
        key = _key(request)
        self._forget(key)
        self._known[key] = layout
        self._bytes += len(request)
        while self._count > _LAYOUTS_MAX or self._bytes > _REQUESTS_BYTES_MAX:
            self._forget(next(iter(self._unused or self._known)))

    def forget_unused(self) -> None:
        """Forget those that nobody has used since this was called last: of members that are gone,
        or commit otherwise.
        """
        self._bytes -= sum(length for length, _ in self._unused)
        self._known, self._unused = {}, self._known

    @property
    def _count(self) -> int:
        return len(self._known) + len(self._unused)

    def _forget(self, key: tuple[int, bytes]) -> None:
        for layouts in (self._known, self._unused):
            if layouts.pop(key, None) is not None:
                self._bytes -= key[0]


def _key(request: bytes) -> tuple[int, bytes]:
    return len(request), request[_CLIENT_AT : _end_of_member(request[3], request)]


def _end_of_member(version: int, request: bytes) -> int:
    """Return where the fields that say who commits end: client, group, generation, member."""
    (client_bytes,) = _LENGTH.unpack_from(request, _CLIENT_AT)
    at = _CLIENT_AT + _LENGTH.size + max(int(client_bytes), 0)
    if version < FLEXIBLE_SINCE:
        return _after_plain(request, _after_plain(request, at) + _GENERATION_BYTES)
    # Tagged fields of the header would make what is taken for the group something else of it,
    # which no more than spoils the key.
    length, at = varint(request, at + 1)
    length, at = varint(request, at + length - 1 + _GENERATION_BYTES)
    return at + length - 1


def _after_plain(request: bytes, at: int) -> int:
    (length,) = _LENGTH.unpack_from(request, at)
    return at + _LENGTH.size + int(length)


def _layout(request: bytes) -> CommitLayout | None:
    decoded = decode_request(request, (ApiKey.OFFSET_COMMIT,))
    body = decoded.body
    rows, places = body["offsets"], body["places"]
    if not rows:
        return None
    mask = _mask(len(request), places)
    return CommitLayout(
        decoded.header.api_version,
        body["group_id"],
        body["member_id"],
        body["group_instance_id"],
        body["generation_id_or_member_epoch"],
        tuple((topic, number) for topic, number, *_ in rows),
        tuple(metadata for *_, metadata in rows),
        tuple(body["topics"]),
        _reader(len(request), places),
        mask,
        int.from_bytes(request) & mask,
    )


def _mask(length: int, places: Iterable[int]) -> int:
    """Return a number whose bits are set where requests of a layout are the same."""
    same = bytearray(b"\xff" * length)
    same[_ID_AT : _ID_AT + _ID_BYTES] = bytes(_ID_BYTES)
    for at in places:
        same[at : at + NUMBERS_BYTES] = bytes(NUMBERS_BYTES)
    return int.from_bytes(same)


def _reader(length: int, places: Sequence[int]) -> struct.Struct:
    """Return what reads the numbers of a whole request."""
    fields, end = [">"], 0
    for at in places:
        fields.append(f"{at - end}x{NUMBERS_BYTES}s")
        end = at + NUMBERS_BYTES
    return struct.Struct("".join([*fields, f"{length - end}x"]))
