"""Who is the job of a data folder: a lock that the kernel takes back when its holder dies.

The JVM that a killed driver leaves behind lives on for a moment and could still commit the batch it
was in; whoever takes the lock after it ends that JVM first, so two jobs never write one checkpoint.
"""

from __future__ import annotations

import os
import socket
from pathlib import Path
from typing import Any

import orjson
import psutil

from streaming.errors import HelmstreamError
from streaming.process.lock_file import LockFile
from streaming.process.polling import polls

TO_STAND_BY = "to wait until it is gone: helmstream run --standby"

_END_POLL_S = 0.01
_END_TIMEOUT_S = 10.0


class JobLocked(HelmstreamError):
    """Another process is the job of this data folder."""

    def __init__(self, path: Path, pid: object, advice: str) -> None:
        super().__init__(
            f"{path} is held by process {pid}: it is the job of this data folder; {advice}"
        )


class JobLock(LockFile):
    """The lock of the job; its holder says {"pid", "host", "jvm": {"pid", "started"}}."""

    def __init__(self, path: Path) -> None:
        """Open the file; `try_acquire` locks it."""
        super().__init__(path)

    def try_acquire(self) -> bool:
        """Take the lock if it is free, ending what its last holder left; return whether it is ours.

        Raises TimeoutExpired of psutil when the JVM of the last holder cannot be ended.
        """
        if not self.try_lock():
            return False
        _end_jvm(self._holder())
        self._note({"pid": os.getpid(), "host": socket.gethostname()})
        return True

    def acquire(self, advice: str = TO_STAND_BY) -> None:
        """Acquire the lock; raises JobLocked naming who has it, with an advice what to do."""
        if not self.try_acquire():
            raise JobLocked(self._path, self._holder().get("pid", "unknown"), advice)

    def note_jvm(self, pid: int) -> None:
        """Name the JVM that works for the holder."""
        self._note({**self._holder(), "jvm": {"pid": pid, "started": _started(pid)}})

    def done(self) -> None:
        """Say that the holder's JVM has nothing left to do; before an orderly end."""
        self._note({})

    def _holder(self) -> dict[str, Any]:
        try:
            found: dict[str, Any] = orjson.loads(self.read())
        except orjson.JSONDecodeError:  # a new file, or one whose writer died writing it
            return {}
        return found

    def _note(self, holder: dict[str, Any]) -> None:
        self.write(orjson.dumps(holder))


def is_job(path: Path, pid: int) -> bool:
    """Return whether it is a process of this machine, by its id, that took the lock last."""
    try:
        holder = orjson.loads(path.read_bytes())
    except (OSError, orjson.JSONDecodeError):  # there is none, or it is being written
        return False
    return (holder.get("pid"), holder.get("host")) == (pid, socket.gethostname())


def _end_jvm(holder: dict[str, Any]) -> None:
    """Kill the JVM of a holder that died on this machine, and wait until it is gone."""
    jvm = holder.get("jvm")
    if jvm is None or holder.get("host") != socket.gethostname():
        return
    try:
        process = psutil.Process(jvm["pid"])
        if _started(process.pid) == jvm.get("started"):
            process.kill()
            _await_end(process)
    except psutil.NoSuchProcess:
        return


def _await_end(process: psutil.Process) -> None:
    """Wait until a process that was killed can do nothing any more: to be reaped by whoever has it
    now may take another second. Raises TimeoutExpired, NoSuchProcess.
    """
    for _ in polls(_END_TIMEOUT_S, _END_POLL_S):
        # The first thread of many may be a zombie before the others are gone.
        if process.status() == psutil.STATUS_ZOMBIE and process.num_threads() <= 1:
            return
    raise psutil.TimeoutExpired(_END_TIMEOUT_S, process.pid)


def _started(pid: int) -> str:
    """Return what no other process of that number has: on Linux the boot and the ticks since then,
    which stay the same when the wall clock is set; elsewhere the time.
    """
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        stat = Path(f"/proc/{pid}/stat").read_text(errors="replace")
    except OSError:
        return str(psutil.Process(pid).create_time())
    # Field 22; the name, the second one, is in brackets and may have any characters.
    return f"{boot} {stat.rpartition(')')[2].split()[19]}"
