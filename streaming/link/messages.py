"""Frames between front and job: a JSON head and a binary body.

uint32 head length, uint32 body length (little endian), head, body. The head's "type" names the
message:

job to front
  hello      {pid}
             a job connects and replaces the one before; the front answers nothing
  append     {id, records: [[kind, key, size], ...]}
             body: the payloads one after the other
  image      {timers: {name: deadline_ms}, paused?, end_offset?, query_folds?, without_term?,
             brokers?, queue_lengths?}
             body: ClusterImage.snapshot, which replaces the front's image, or nothing from a job
             that does not know the cluster before it is loaded; the armed timers are replaced;
             end_offset: up to where batches were complete, also while no front was there;
             query_folds: so does the query by now, beside the job's head start;
             without_term: the job begins behind the election, so everything is to be loaded again
  decisions  {batch_id, decisions: [[offset, kind, size], ...]}
             persisted decisions; body: their bodies
  replies    {replies: [...]}
             bodies of reply decisions as JSON objects
  batch      {batch_id, end_offset, fenced?, retain_from?, elections?, queue_lengths?, ...}
             a batch is complete up to (not including) end_offset;
             fenced: a write was refused by its epoch; retain_from: oldest event still needed;
             elections: {rule: partitions that it gave a leader}
  query      {end_offset}
             the query has folded up to there what was carried out before; a batch of the query that
             is complete has a batch_id, one of the job's head start has null
  reobserve  {topics: [...], unwritable?: [...]}
             topics to be observed again, because what was decided about them was not written;
             unwritable: those of them that ZooKeeper takes no write of
  delivery   {brokers: {id: {...}}, queue_lengths?}

brokers is {broker id: what it has confirmed}: in a delivery of those that confirmed something since
the last one, in an image of all. queue_lengths is {broker id: requests that it has not answered}.

front to job
  appended   {id, start}, {id, refused} or {id, error}
             the records are durable from offset start on; refused: the log never takes one of them
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
