"""Waiting for what must come, of a whole cluster."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from streaming.errors import NotRunning
from streaming.sockets.status_socket import NoStatus
from streaming.zk.errors import ZooKeeperError
from tests.fixtures import waiting

WAIT_S = 240.0
"""A busy machine takes its time, to start Spark above all."""


def wait_for(what: str, true: Callable[[], Any], timeout_s: float = WAIT_S) -> Any:
    """Return what `true` finds once it finds something; fail after timeout_s.

    ZooKeeper or a front that does not answer is asked again.
    """
    unanswered = (ZooKeeperError, NotRunning, NoStatus)
    return waiting.wait_for(what, true, timeout_s, poll_s=0.2, again=unanswered)
