"""A server in a child process: what all of them have in common."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from streaming.embedded.class_archives import ClassArchive
from streaming.embedded.java import Java
from streaming.embedded.process import ChildProcess, NotReady
from streaming.process.polling import polls

_POLL_S = 0.05


class EmbeddedServer:
    """A server with a folder, which is started and ended again and again."""

    def __init__(self, name: str, data_dir: Path, log_path: Path) -> None:
        self.name = name
        self.data_dir = data_dir
        self.log_path = log_path
        self._child: ChildProcess | None = None
        self._classes = ClassArchive()

    @property
    def pid(self) -> int | None:
        return None if self._child is None else self._child.pid

    @property
    def running(self) -> bool:
        return self._child is not None and self._child.running

    def kill(self) -> None:
        """SIGKILL: what it acknowledged is on disk; nothing when it was not started."""
        if self._child is not None:
            self._child.kill()
            self._child = None

    def terminate(self, timeout_s: float) -> bool:
        """SIGTERM and wait, then SIGKILL; True when it ended by itself in time."""
        if self._child is None:
            return True
        ended = self._child.terminate(timeout_s)
        self._child = None
        self._classes.keep()
        return ended

    def pause(self) -> None:
        """SIGSTOP: it keeps its connections and answers nothing."""
        self._started().pause()

    def resume(self) -> None:
        """SIGCONT after pause()."""
        self._started().resume()

    def _launch(self, java: Java, options: Sequence[str], class_path: str, *main: str) -> None:
        """Start the JVM without waiting; main: its class, and what that is told."""
        self._classes = ClassArchive.of(java, class_path, main[0])
        argv = [str(java.executable), *self._classes.options, *options, "-cp", class_path, *main]
        self._child = ChildProcess.start(self.name, argv, log_path=self.log_path)

    def _wait_until(self, ready: Callable[[], bool], timeout_s: float) -> None:
        """Wait until it is ready; raises ChildDied and NotReady."""
        child = self._started()
        for _ in polls(timeout_s, _POLL_S):
            if ready():
                return
            child.check_running()
        self.kill()
        raise NotReady(self.name, timeout_s, self.log_path)

    def _started(self) -> ChildProcess:
        if self._child is None:
            raise RuntimeError(f"{self.name} was not started")
        return self._child
