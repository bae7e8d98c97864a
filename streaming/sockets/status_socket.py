"""How a running front is asked for its status: connect to its Unix socket, read one JSON object.

The front writes the object when a connection is made and then closes it; nothing is sent to it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson

from streaming.errors import HelmstreamError
from streaming.paths import DataDir
from streaming.sockets.front_socket import ask_front


class NoStatus(HelmstreamError):
    """A front is there, but its answer did not come or is not a JSON object."""


def fetch_status(data_dir: Path, timeout_s: float) -> dict[str, Any]:
    """The status of the front of `data_dir`; raises NotRunning and NoStatus."""
    path = DataDir(data_dir).status_socket
    try:
        answer = ask_front(data_dir, path, b"", timeout_s)
    except OSError as error:
        raise NoStatus(f"no status from {path}: {error}") from error
    try:
        status = orjson.loads(answer)
    except orjson.JSONDecodeError as error:
        raise NoStatus(f"the status from {path} is not JSON: {error}") from error
    if not isinstance(status, dict):
        raise NoStatus(f"the status from {path} is not a JSON object")
    return status
