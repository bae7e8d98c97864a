"""The lock that says who writes a log: a file in its folder, locked for as long as one writes."""

from __future__ import annotations

import os
import socket
from pathlib import Path

from streaming.log.api import LogError
from streaming.process.lock_file import LockFile

LOCK_FILE = "lock"


class LogLocked(LogError):
    """Another writer has the folder."""


class WriterLock(LockFile):
    """Locks a folder for this object.

    Raises:
        LogLocked: it is taken; names the folder and the process that holds it.
    """

    def __init__(self, folder: Path) -> None:
        super().__init__(folder / LOCK_FILE)
        if not self.try_lock():
            holder = self.read().decode("ascii", "replace").strip()
            self.close()
            raise LogLocked(f"{folder} is already written by process {holder or 'unknown'}")
        self.write(_named(os.getpid()))


def is_writer(folder: Path, pid: int) -> bool:
    """Return whether it is a process of this machine, by its id, that locked a folder last."""
    try:
        return (folder / LOCK_FILE).read_bytes() == _named(pid)
    except OSError:
        return False


def _named(pid: int) -> bytes:
    """Return what a holder says: in two containers processes may have the same id."""
    return f"{pid} on {socket.gethostname()}\n".encode("ascii", "replace")
