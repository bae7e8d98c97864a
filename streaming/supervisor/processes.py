"""Front and job as supervised child processes."""

from __future__ import annotations

import logging
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from streaming.embedded.process import ChildProcess, log_tail
from streaming.errors import ConfigurationError, HelmstreamError
from streaming.log.writer_lock import is_writer
from streaming.paths import DataDir
from streaming.preflight import check_data_dir
from streaming.process.back_off import BackOff
from streaming.starting.job_lock import is_job

logger = logging.getLogger(__name__)

FRONT = "front"
JOB = "job"
STANDBY = "--standby"
"""Option of a role that waits while another process has it."""

_FIRST_BACKOFF_S = 0.2
_LONGEST_BACKOFF_S = 30.0
_STABLE_S = 30.0
_PROVEN_S = 600.0
"""How long a process has its role whose configuration works; its first start may wait for minutes.
"""
_STOP_TIMEOUT_S = 20.0
_KILL_TIMEOUT_S = 10.0
LOG_BYTES_MAX = 64 * 1024 * 1024
_ERROR_MARK = "error: "  # how a role's last words start


class HopelessRole(HelmstreamError):
    """A role ended for a reason that starting it again cannot mend."""

    def __init__(self, role: str, exit_code: int, log_path: Path) -> None:
        super().__init__(f"the {role} cannot run: {_reason(log_path)} (its log is {log_path})")
        self.exit_code = exit_code


def _reason(log_path: Path) -> str:
    """Return a role's last words: one line, after which its JVM may have written more."""
    tail = log_tail(log_path)
    said = [line for line in tail.splitlines() if line.startswith(_ERROR_MARK)]
    return said[-1].removeprefix(_ERROR_MARK) if said else tail


def keep_bounded(log_path: Path, bytes_max: int = LOG_BYTES_MAX) -> None:
    """Move what a log has to `<name>.1`, over what was there, once it has more than bytes_max.

    It is copied and cut, since its process has it open: what is logged between the two is lost.
    """
    if log_path.exists() and log_path.stat().st_size > bytes_max:
        shutil.copyfile(log_path, log_path.with_name(f"{log_path.name}.1"))
        os.truncate(log_path, 0)


def role_command(role: str, data_dir: Path, config: Sequence[str]) -> list[str]:
    """Return the command line of a role; config are the --config and --set options to pass on."""
    command = [sys.executable, "-m", "streaming.cli", role, "--data-dir", str(data_dir)]
    return [*command, *config]


@dataclass(slots=True)
class Supervised:
    """One role: how to start it, its present process, and when it may be started again."""

    role: str
    command: list[str]
    log_path: Path
    standby: bool = False
    has_role: Callable[[int], bool] = lambda _: False
    """Whether the process of that id has the role, which one that waits for it does not."""
    child: ChildProcess | None = None
    starts: int = 0
    started_at: float = 0.0
    in_role_since: float | None = None
    is_proven: bool = False
    back_off: BackOff = field(default_factory=lambda: BackOff(_FIRST_BACKOFF_S, _LONGEST_BACKOFF_S))
    start_after: float = 0.0
    bound_after: float = 0.0

    def start(self) -> None:
        """Start the process now; one that is started again waits if a standby has its role now."""
        waits = [STANDBY] if self.standby or self.starts else []
        command = [*self.command, *waits]
        self.child = ChildProcess.start(self.role, command, log_path=self.log_path)
        self.starts += 1
        self.started_at = time.monotonic()
        self.in_role_since = None if waits else self.started_at

    def keep_running(self) -> None:
        """Start a process that has ended again, waiting longer each time it ends soon or cannot be
        started; keep its log within bounds.

        Raises HopelessRole when it ended because of its configuration, unless it had its role with
        that for long before: then something around it is not as it was, and may be again.
        """
        now = time.monotonic()
        if now >= self.bound_after:
            self._keep_log_bounded(now)
        if self.child is not None and self.child.running:
            if self.in_role_since is None and self.has_role(self.child.pid):
                self.in_role_since = now
            return
        if self.child is not None:
            self._ended(self.child, now)
        if now >= self.start_after:
            self._start_again(now)

    def _keep_log_bounded(self, now: float) -> None:
        """A full disk ends no role; it is looked at again later."""
        try:
            keep_bounded(self.log_path)
            self.bound_after = 0.0
        except OSError as error:
            if not self.bound_after:
                logger.warning("%s is not kept within bounds: %s", self.log_path, error)
            self.bound_after = now + _LONGEST_BACKOFF_S

    def _start_again(self, now: float) -> None:
        """Start it; no memory, descriptors or space for that is no reason to end the others."""
        try:
            self.start()
        except OSError as error:
            logger.warning("%s cannot be started: %s", self.role, error)
            self.start_after = now + self.back_off.pause_s()

    def _ended(self, child: ChildProcess, now: float) -> None:
        ran_s = now - self.started_at
        if ran_s > _STABLE_S:
            self.back_off.reset()
        # To wait for the role takes no more than to read the configuration.
        self.is_proven |= now - (self.in_role_since or now) > _PROVEN_S
        ending, log = _ending(child.return_code), self.log_path
        if child.return_code != ConfigurationError.exit_code:
            logger.warning("%s %s, see %s; it is started again", self.role, ending, log)
        elif self.is_proven:
            said = "%s %s: %s (its log is %s); it is started again"
            logger.error(said, self.role, ending, _reason(log), log)
        else:
            raise HopelessRole(self.role, child.return_code, log)
        self.start_after = now + self.back_off.pause_s()
        self.child = None

    def ask_to_end(self) -> None:
        """Ask the process to end, if one runs."""
        if self.child is not None:
            self.child.ask_to_end()

    def await_end(self, timeout_s: float) -> None:
        """Wait until the process is gone, and kill it after timeout_s; one that the kernel does not
        let go of, as with a disk that hangs, is left to it.
        """
        child, self.child = self.child, None
        if child is None or child.wait(timeout_s):
            return
        try:
            child.kill(_KILL_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            logger.error("%s was killed and is still there: process %d", self.role, child.pid)


def stop_together(roles: Iterable[Supervised]) -> None:
    """Ask all to end at once, and wait for all: none is kept by how long another one takes."""
    stopped = list(roles)
    for role in stopped:
        role.ask_to_end()
    end_s = time.monotonic() + _STOP_TIMEOUT_S
    for role in stopped:
        role.await_end(max(end_s - time.monotonic(), 0.0))


def _ending(return_code: int | None) -> str:
    """Return in words how a process ended; a signal's number comes as a negative code."""
    if return_code is not None and return_code < 0:
        return f"was killed by signal {-return_code}"
    return f"ended with code {return_code}"


@dataclass(slots=True)
class Supervisor:
    """The front and the job of one data folder; those of a standby wait for others to be gone."""

    data_dir: Path
    config: Sequence[str]
    standby: bool = False
    roles: dict[str, Supervised] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Prepare both roles; nothing runs yet."""
        folders = DataDir(self.data_dir)
        who = {FRONT: partial(is_writer, folders.events), JOB: partial(is_job, folders.job_lock)}
        for role, has_role in who.items():
            command = role_command(role, self.data_dir, self.config)
            name = f"{role}.standby.log" if self.standby else f"{role}.log"
            log_path = folders.printed / name
            self.roles[role] = Supervised(role, command, log_path, self.standby, has_role)

    def start(self) -> None:
        """Start both; the job connects to the front when it is ready. Raises ConfigurationError."""
        check_data_dir(self.data_dir)
        for role in self.roles.values():
            role.start()

    def watch(self, until: Callable[[], bool], poll_s: float = 0.1) -> None:
        """Keep both running until the condition holds; raises HopelessRole."""
        while not until():
            self.keep_running()
            time.sleep(poll_s)

    def keep_running(self) -> None:
        """Start what has ended, once its back-off is over; raises HopelessRole."""
        for role in self.roles.values():
            role.keep_running()

    def kill(self, role: str) -> None:
        """SIGKILL one role's process, as a crash would."""
        child = self.roles[role].child
        if child is not None:
            child.kill()

    def stop(self) -> None:
        """Stop both. The front gives the controller role back meanwhile: without a job nothing is
        decided, and brokers are to elect at once.
        """
        stop_together(self.roles[role] for role in (FRONT, JOB))
