"""What the controller's thread waits for, set from any thread."""

from __future__ import annotations

import math
import threading
import time


class GiveUpRole(Exception):
    """The role is to be given back in order: the lease ran out, or this process stops."""


class RoleLost(Exception):
    """The role is gone: somebody else has it, the session is over, or a write was fenced."""


class IdTaken(RoleLost):
    """Another process is registered under our id, perhaps a broker: the role cannot be taken."""


class Signals:
    """The wishes and facts that make the controller's thread move on.

    `held` says whether the ZooKeeper session is connected; a wish to give up and a loss stand until
    a new term starts; `stop` stands for good.
    """

    def __init__(self) -> None:
        """Start with nothing to do, no job and no session."""
        self._changed = threading.Condition()
        self._job_healthy = False
        self._held = False
        self._stopping = False
        self._give_up: str | None = None
        self._lost: str | None = None

    @property
    def leaving(self) -> bool:
        """Whether the present term is about to end."""
        return self._stopping or self._give_up is not None or self._lost is not None

    @property
    def in_doubt(self) -> bool:
        """Whether the session is not connected now, so that the role may be gone."""
        return not self._held

    def start_term(self) -> None:
        """Forget what ended the term before."""
        with self._changed:
            self._give_up = self._lost = None
            self._held = False

    def notify(self) -> None:
        """Wake the thread: something it reads elsewhere changed."""
        with self._changed:
            self._changed.notify_all()

    def set_job_healthy(self, healthy: bool) -> None:
        """Say whether a job is connected and has folded everything."""
        with self._changed:
            self._job_healthy = healthy
            self._changed.notify_all()

    def set_held(self, held: bool) -> None:
        """Say whether the session is connected."""
        with self._changed:
            self._held = held
            self._changed.notify_all()

    def give_up(self, reason: str) -> None:
        """Ask for the role to be given back in order; the first reason counts."""
        with self._changed:
            self._give_up = self._give_up or reason
            self._changed.notify_all()

    def lose(self, reason: str) -> None:
        """Say that the role is gone; the first reason counts."""
        with self._changed:
            self._lost = self._lost or reason
            self._changed.notify_all()

    def stop(self) -> None:
        """Ask the thread to end."""
        with self._changed:
            self._stopping = True
            self._changed.notify_all()

    def check(self) -> None:
        """Raise RoleLost or GiveUpRole when the term must end."""
        if self._lost is not None:
            raise RoleLost(self._lost)
        if self._stopping:
            raise GiveUpRole("stopped")
        if self._give_up is not None:
            raise GiveUpRole(self._give_up)

    def wait_for_job(self, pause_s: float) -> bool:
        """Wait pause_s, then until the job is healthy; False when the process stops instead."""
        until_s = time.monotonic() + pause_s
        with self._changed:
            self._changed.wait_for(lambda: self._stopping, timeout=max(pause_s, 0.0))
            while not self._stopping:
                if self._job_healthy and time.monotonic() >= until_s:
                    return True
                self._changed.wait()
        return False

    def wait_for_work(self, work: object, until_s: float = math.inf) -> None:
        """Wait until `work` is true, or the monotonic clock says until_s, and the session is
        connected; raises as `check`.
        """
        with self._changed:
            while not self.leaving:
                left_s = until_s - time.monotonic()
                if self._held and (work or left_s <= 0):
                    break
                # Without a session nothing can be done, however late it is.
                self._changed.wait(left_s if 0 < left_s < threading.TIMEOUT_MAX else None)
        self.check()
