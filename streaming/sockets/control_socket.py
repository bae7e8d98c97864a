"""How a running front is given an order: connect to its Unix socket, write one JSON object and a
newline, read one JSON object.

The answer is {"offset": n}, the order's event in the log, or {"error": text}.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import orjson

from streaming.errors import HelmstreamError
from streaming.paths import DataDir
from streaming.sockets.front_socket import ask_front


class OrderRefused(HelmstreamError):
    """A front is there, but did not take the order."""


def give_order(data_dir: Path, order: Mapping[str, Any], timeout_s: float) -> int:
    """Give an order and return the offset of its event, which is durable; raises NotRunning and
    OrderRefused.
    """
    path = DataDir(data_dir).control_socket
    try:
        answer = orjson.loads(ask_front(data_dir, path, orjson.dumps(order) + b"\n", timeout_s))
    except (OSError, orjson.JSONDecodeError) as error:
        raise OrderRefused(f"no answer from {path}: {error}") from error
    if "error" in answer:
        raise OrderRefused(f"the order was not taken: {answer['error']}")
    offset: int = answer["offset"]
    return offset
