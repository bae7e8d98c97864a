"""The lock that says who writes a log: a file in its folder, locked for as long as one writes."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

from streaming.log.api import LogError


class LogLocked(LogError):
    """Another writer has the folder."""


class WriterLock:
    """Locks a folder for this object; the kernel lets go when the process ends, however it ends.

    Raises:
        LogLocked: it is taken; names the folder and the process that holds it.
    """

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._fd = os.open(folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.pread(self._fd, 32, 0).decode("ascii", "replace").strip()
            os.close(self._fd)
            message = f"{folder} is already written by process {holder or 'unknown'}"
            raise LogLocked(message) from None
        os.ftruncate(self._fd, 0)
        os.pwrite(self._fd, f"{os.getpid()}\n".encode(), 0)

    def close(self) -> None:
        os.close(self._fd)

    def __enter__(self) -> WriterLock:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
