"""Our own processes under random operations: whoever is front or job dies, or stands still."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import suppress

import psutil

from streaming.demo.cluster import DemoCluster
from streaming.embedded.process import ChildProcess
from streaming.supervisor.processes import JOB
from tests.e2e.standby import STOP_S, follows, start_standby
from tests.e2e.waiting import wait_for

_JVM = "java"
_END_S = 30.0


class Roles:
    """Front and job of a cluster, and with a standby those that wait for their turn."""

    def __init__(self, demo: DemoCluster, *, with_standby: bool = False) -> None:
        """Take a running cluster; returns when its standby follows, if it is to have one."""
        self._demo = demo
        self._with_standby = with_standby
        self._standby: ChildProcess | None = None
        if with_standby:
            self._start_standby()
            wait_for("a standby that follows", lambda: follows(demo.folders.root))

    def kill(self, role: str) -> bool:
        """SIGKILL whoever has a role; return whether anybody had it."""

        def end(process: psutil.Process) -> None:
            process.kill()
            wait_for(f"the end of a {role}", lambda: not _runs(process), _END_S)

        return self._to_holder(role, end)

    def stand_still(self, role: str, away_s: float, *, jvm: bool = False) -> bool:
        """SIGSTOP whoever has a role for a while, or a job's JVM instead; return whether anybody
        had it.
        """

        def pause(process: psutil.Process) -> None:
            stopped = _jvms(process) if jvm else [process]
            for one in stopped:
                one.suspend()
            time.sleep(away_s)
            for one in stopped:
                one.resume()

        return self._to_holder(role, pause)

    def abandon(self) -> None:
        """End all of them; nobody starts them again."""
        self.stop_standby()
        self._demo.kill_ours()

    def take_back(self) -> None:
        """Start all of them again."""
        self._demo.start_ours()
        if self._with_standby:
            self._start_standby()

    def stop_standby(self) -> None:
        """Let the standby end, if there is one."""
        if self._standby is not None:
            self._standby.terminate(STOP_S)

    def is_job(self, pid: int) -> bool:
        """Whether a process has the job's role, and runs."""
        return any(one.pid == pid for one in self._holders(JOB))

    def _start_standby(self) -> None:
        self._standby = start_standby(self._demo.folders.root, self._demo.supervisor.config)

    def _to_holder(self, role: str, do: Callable[[psutil.Process], None]) -> bool:
        for process in self._holders(role):
            with suppress(psutil.NoSuchProcess):
                do(process)
            return True
        return False

    def _holders(self, role: str) -> Iterator[psutil.Process]:
        """Whoever has a role; a process that was killed has it until another one takes it. Without
        a standby there is one only, which has no lock where it is not the real job.
        """
        if not self._with_standby:
            child = self._demo.supervisor.roles[role].child
            if child is not None and child.running:
                yield psutil.Process(child.pid)
            return
        has_role = self._demo.supervisor.roles[role].has_role
        for supervisor in self._supervisors():
            for process in supervisor.children():
                if has_role(process.pid) and _runs(process):
                    yield process

    def _supervisors(self) -> Iterator[psutil.Process]:
        yield psutil.Process()
        if self._standby is not None and self._standby.running:
            yield psutil.Process(self._standby.pid)


def _runs(process: psutil.Process) -> bool:
    try:
        return process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def _jvms(process: psutil.Process) -> list[psutil.Process]:
    return [one for one in process.children(recursive=True) if one.name() == _JVM]
