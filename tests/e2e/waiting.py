"""Waiting for what must come."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from streaming.errors import NotRunning
from streaming.status_socket import NoStatus
from streaming.zk.errors import ZooKeeperError

WAIT_S = 240.0
"""A busy machine takes its time, to start Spark above all."""


def wait_for(what: str, true: Callable[[], Any], timeout_s: float = WAIT_S) -> Any:
    """Return what `true` finds once it finds something; fail after timeout_s.

    ZooKeeper or a front that does not answer is asked again.
    """
    deadline = time.monotonic() + timeout_s
    while not (found := _answer(true)) or isinstance(found, Exception):
        assert time.monotonic() < deadline, f"{what} did not come; last found: {found!r}"
        time.sleep(0.2)
    return found


def _answer(true: Callable[[], Any]) -> Any:
    try:
        return true()
    except (ZooKeeperError, NotRunning, NoStatus) as error:
        return error
