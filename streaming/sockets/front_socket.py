"""How a running front is asked: connect to a Unix socket, write a request, read until it hangs
up.
"""

from __future__ import annotations

import socket
from pathlib import Path

from streaming.errors import NotRunning
from streaming.paths import DataDir

_CHUNK_BYTES = 65_536
_OF_A_SHADOW = (
    "it is a shadow's folder, and a shadow takes no requests: what it has to say is in"
    " log/shadow.log and its report; name a controller's folder with --data-dir"
)


def ask_front(data_dir: Path, path: Path, request: bytes, timeout_s: float) -> bytes:
    """Return the answer of the front of `data_dir` on one of its sockets; the request may be empty.

    Raises NotRunning when nobody listens, OSError when the answer does not come.
    """
    try:
        return _ask(path, request, timeout_s)
    except (FileNotFoundError, ConnectionRefusedError) as error:
        is_shadows = DataDir(data_dir).shadow_mark.exists()
        raise NotRunning(
            f"no helmstream is running with data.dir {data_dir.absolute()};"
            f" {_OF_A_SHADOW if is_shadows else 'start one with: helmstream run'}"
        ) from error


def _ask(path: Path, request: bytes, timeout_s: float) -> bytes:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(timeout_s)
        connection.connect(str(path))
        if request:
            connection.sendall(request)
        chunks = []
        while chunk := connection.recv(_CHUNK_BYTES):
            chunks.append(chunk)
    return b"".join(chunks)
