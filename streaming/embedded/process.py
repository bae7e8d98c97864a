"""Child processes that log to a file, are stopped by pid, and never outlive this process."""

from __future__ import annotations

import atexit
import os
import signal
import subprocess
import sys
import weakref
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from streaming.errors import HelmstreamError

_LOG_TAIL_BYTES = 4_000

# Runs in the child before the real program takes its place under the same pid: asks the kernel for
# SIGKILL on the parent's death, and gives up when the parent died before that. A program of its own
# and not a preexec_fn, which may deadlock in a process with threads.
_DIE_WITH_PARENT = """
import ctypes, os, signal, sys
PR_SET_PDEATHSIG = 1
ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
if os.getppid() != int(sys.argv[1]):
    sys.exit("the parent process is gone")
os.execvp(sys.argv[2], sys.argv[2:])
"""

# Linux sends the parent-death signal when the *thread* that made the child ends, so every child is
# made by one thread that lives as long as this process.
_starter = ThreadPoolExecutor(max_workers=1, thread_name_prefix="child-starter")


class ChildDied(HelmstreamError):
    """A child process ended although it should run; carries the end of its log."""

    def __init__(self, name: str, return_code: int, log_path: Path) -> None:
        super().__init__(
            f"{name} ended with code {return_code}; end of {log_path}:\n{log_tail(log_path)}"
        )
        self.name = name
        self.return_code = return_code
        self.log_path = log_path


class NotReady(HelmstreamError):
    """A child process runs but did not become ready in time; carries the end of its log."""

    def __init__(self, name: str, waited_s: float, log_path: Path) -> None:
        super().__init__(
            f"{name} was not ready after {waited_s:g} s; end of {log_path}:\n{log_tail(log_path)}"
        )
        self.name = name
        self.waited_s = waited_s
        self.log_path = log_path


class ChildProcess:
    """One running child process; output and errors are appended to a log file.

    It has a session of its own (a Ctrl-C at the terminal does not reach it: its parent stops it in
    order) and gets SIGKILL from the kernel when this process dies, however that happens. Where the
    kernel cannot do that (not Linux), children are killed when the interpreter exits.
    """

    def __init__(self, name: str, process: subprocess.Popen[bytes], log_path: Path) -> None:
        self.name = name
        self.log_path = log_path
        self._process = process

    @classmethod
    def start(
        cls,
        name: str,
        argv: Sequence[str],
        *,
        log_path: Path,
        cwd: Path | None = None,
        env: Mapping[str, str] | None = None,
    ) -> ChildProcess:
        """Start a program given with its full path; one that cannot be executed ends at once."""
        log_path.parent.mkdir(parents=True, exist_ok=True)
        process = _starter.submit(_spawn, list(argv), log_path, cwd, env).result()
        child = cls(name, process, log_path)
        if sys.platform != "linux":
            atexit.register(_kill_if_alive, weakref.ref(child))
        return child

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def return_code(self) -> int | None:
        """Exit code, negative signal number when killed, None while it runs."""
        return self._process.poll()

    @property
    def running(self) -> bool:
        return self.return_code is None

    def check_running(self) -> None:
        """Raise ChildDied when the process has ended."""
        code = self.return_code
        if code is not None:
            raise ChildDied(self.name, code, self.log_path)

    def wait(self, timeout_s: float) -> bool:
        """Wait for the end; False when it still runs after timeout_s."""
        try:
            self._process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            return False
        return True

    def kill(self, timeout_s: float = 60.0) -> None:
        """SIGKILL, and wait until the process is gone; works on a paused process too."""
        self._signal(signal.SIGKILL)
        self._process.wait(timeout_s)

    def ask_to_end(self) -> None:
        """SIGTERM; a paused process gets it too. May be called after its end."""
        self._signal(signal.SIGTERM)
        self._signal(signal.SIGCONT)

    def terminate(self, timeout_s: float) -> bool:
        """SIGTERM, wait, SIGKILL after timeout_s; True when it ended by itself in time."""
        self.ask_to_end()
        if self.wait(timeout_s):
            return True
        self.kill()
        return False

    def pause(self) -> None:
        """SIGSTOP, and wait until all threads have stopped: the process keeps its connections and
        answers nothing.
        """
        self._signal(signal.SIGSTOP)
        os.waitid(os.P_PID, self._process.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)

    def resume(self) -> None:
        """SIGCONT after pause()."""
        self._signal(signal.SIGCONT)

    def _signal(self, number: signal.Signals) -> None:
        self._process.send_signal(number)


def log_tail(log_path: Path) -> str:
    """Return the last few lines of a log file, or a note that there is none."""
    try:
        with log_path.open("rb") as log:
            log.seek(0, os.SEEK_END)
            log.seek(max(0, log.tell() - _LOG_TAIL_BYTES))
            return log.read().decode("utf-8", "replace").strip()
    except OSError as error:
        return f"(no log: {error})"


def _spawn(
    argv: list[str], log_path: Path, cwd: Path | None, env: Mapping[str, str] | None
) -> subprocess.Popen[bytes]:
    command = argv
    if sys.platform == "linux":
        command = [sys.executable, "-I", "-S", "-c", _DIE_WITH_PARENT, str(os.getpid()), *argv]
    with log_path.open("ab") as log:
        return subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            cwd=cwd,
            env=None if env is None else dict(env),
            start_new_session=True,
        )


def _kill_if_alive(reference: weakref.ref[ChildProcess]) -> None:
    child = reference()
    if child is not None and child.running:
        child.kill()
