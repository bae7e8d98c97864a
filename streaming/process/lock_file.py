"""A file that one process at a time holds."""

from __future__ import annotations

import errno
import fcntl
import os
from pathlib import Path
from typing import Self

from checkpoints.durable import naming
from streaming.errors import ConfigurationError, HelmstreamError

_BYTES_MAX = 4_096
_NO_LOCKS = {
    errno.ENOTSUP: ConfigurationError,
    errno.EOPNOTSUPP: ConfigurationError,
    errno.ENOSYS: ConfigurationError,
    errno.ENOLCK: HelmstreamError,  # of NFS also while its lock service is away
}


class LockFile:
    """A locked file, in which its holder says who it is.

    The kernel lets go when the holder ends, however it ends; what it said stays. As a context
    manager it lets go at the end.
    """

    def __init__(self, path: Path) -> None:
        """Open the file, which is made if need be; `try_lock` locks it."""
        self._path = path
        path.parent.mkdir(parents=True, exist_ok=True)
        self._fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def try_lock(self) -> bool:
        """Lock the file if nobody else has; return whether it is ours.

        Raises ConfigurationError on a file system without such locks, HelmstreamError when it has
        none just now.
        """
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        except OSError as error:
            if error.errno not in _NO_LOCKS:
                raise
            raise _NO_LOCKS[error.errno](
                f"{self._path} cannot be locked ({error.strerror}), and two processes might use the"
                " folder at once; data.dir has to be on a file system with flock"
            ) from error
        return True

    def read(self) -> bytes:
        """Return what its holder, or the last one, said; at most 4 KiB."""
        return os.pread(self._fd, _BYTES_MAX, 0)

    def write(self, content: bytes) -> None:
        """Say something else; for the holder."""
        with naming(self._path):
            os.ftruncate(self._fd, 0)
            os.pwrite(self._fd, content, 0)

    def close(self) -> None:
        """Let go."""
        os.close(self._fd)
