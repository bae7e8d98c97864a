"""Topics that a consumer's metadata subscribes to (Kafka's ConsumerProtocolSubscription)."""

from __future__ import annotations

import base64
import struct
from collections.abc import Iterable

CONSUMER = "consumer"
"""The protocol type whose metadata is a subscription."""


def subscribed_topics(metadata: Iterable[str]) -> tuple[str, ...] | None:
    """Return the topics of all members' metadata (base64), sorted; None when one cannot be read."""
    topics: set[str] = set()
    for one in metadata:
        try:
            topics.update(_topics(base64.b64decode(one)))
        except (struct.error, ValueError):
            return None
    return tuple(sorted(topics))


def _topics(data: bytes) -> Iterable[str]:
    """Yield the topics of a subscription that begins as one of version 0, with its user data
    (GroupMetadata.computeSubscribedTopics).
    """
    version, count = struct.unpack_from(">hi", data)
    if version < 0 or count < 0:
        raise ValueError(f"subscription version {version} with {count} topics")
    at = 6
    for _ in range(count):
        (length,) = struct.unpack_from(">h", data, at)
        at += 2
        if length < 0 or at + length > len(data):
            raise ValueError(f"topic name of {length} bytes at {at} of {len(data)}")
        yield data[at : at + length].decode()
        at += length
    (length,) = struct.unpack_from(">i", data, at)
    if at + 4 + length > len(data):
        raise ValueError(f"user data of {length} bytes at {at} of {len(data)}")
