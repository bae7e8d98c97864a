"""Looking again and again at what another process shows."""

from __future__ import annotations

import time
from collections.abc import Iterator


def polls(limit_s: float, every_s: float) -> Iterator[None]:
    """Yield at once and then every so often, for the last time when the limit is over.

    Who sees what it waits for leaves the loop; what comes after the loop is that it did not come.
    """
    end_s = time.monotonic() + limit_s
    while True:
        yield
        if time.monotonic() > end_s:
            return
        time.sleep(every_s)
