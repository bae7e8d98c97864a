"""Waiting for what must come."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

WAIT_S = 90.0


def wait_for(what: str, true: Callable[[], Any], timeout_s: float = WAIT_S) -> Any:
    """Return what `true` finds once it finds something; fail after timeout_s."""
    deadline = time.monotonic() + timeout_s
    while not (found := true()):
        assert time.monotonic() < deadline, f"{what} did not come; last found: {found!r}"
        time.sleep(0.2)
    return found
