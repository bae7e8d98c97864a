"""Reads the notices that brokers and tools leave, each a znode of its own."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import TypeVar

from streaming.process.counters import Counters
from streaming.zk.multiread import read_many
from streaming.zk.reader import ZkReader

logger = logging.getLogger(__name__)

T = TypeVar("T")


def read_notices(
    session: ZkReader, paths: Sequence[str], parse: Callable[[bytes], T], counters: Counters
) -> list[T]:
    """Return what notices say, in the order of their paths; one that is gone says nothing.

    One that cannot be read (parse raises ValueError) is logged, and counted as
    broken_notifications. Errors as read_many.
    """
    found: list[T] = []
    if not paths:
        return found
    for path, data in zip(paths, read_many(session, paths).data, strict=True):
        if data is None:
            continue
        try:
            found.append(parse(data))
        except ValueError as error:
            logger.warning("%s is passed over: %s", path, error)
            counters["broken_notifications"] += 1
    return found
