"""Holds the controller role whenever the job is fit to decide: term after term."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from enum import StrEnum
from typing import Protocol

from state.event_kinds import EventKind
from streaming.errors import HelmstreamError
from streaming.front.rivals import Rivals
from streaming.front.signals import GiveUpRole, IdTaken, RoleLost, Signals
from streaming.log.api import LogError
from streaming.log.events import EventAppender, event
from streaming.observers.notifications import Fenced
from streaming.process.back_off import BackOff
from streaming.process.counters import Counters
from streaming.zk.claim import ControllerClaim
from streaming.zk.errors import ZooKeeperError

logger = logging.getLogger(__name__)


class RolePhase(StrEnum):
    """Where the front stands with the controller role."""

    WAITING_FOR_JOB = "waiting_for_job"
    CLAIMING = "claiming"
    LOADING = "loading"
    ACTIVE = "active"
    RESIGNING = "resigning"
    LOST = "lost"
    STOPPED = "stopped"


LEGAL_PREVIOUS: dict[RolePhase, frozenset[RolePhase]] = {
    RolePhase.WAITING_FOR_JOB: frozenset({RolePhase.CLAIMING, RolePhase.RESIGNING, RolePhase.LOST}),
    RolePhase.CLAIMING: frozenset({RolePhase.WAITING_FOR_JOB}),
    RolePhase.LOADING: frozenset({RolePhase.CLAIMING}),
    RolePhase.ACTIVE: frozenset({RolePhase.LOADING}),
    RolePhase.RESIGNING: frozenset({RolePhase.LOADING, RolePhase.ACTIVE}),
    RolePhase.LOST: frozenset(
        {RolePhase.CLAIMING, RolePhase.LOADING, RolePhase.ACTIVE, RolePhase.RESIGNING}
    ),
    RolePhase.STOPPED: frozenset({RolePhase.WAITING_FOR_JOB}),
}
"""Which phases may come before each."""

_QUICK_LOSS_S = 600.0
_FIRST_PAUSE_S = 1.0
_LONGEST_PAUSE_S = 30.0
_RESIGNED_TIMEOUT_S = 3.0
"""Brokers wait for the role: a log that hangs must not keep it from them."""


class HeldTerm(Protocol):
    """What the role does with a term; see streaming.front.term.Term."""

    def connect_and_claim(self) -> ControllerClaim:
        """Take the role."""

    def load(self) -> None:
        """Append everything."""

    def follow(self) -> None:
        """Append what changes, until the term ends."""

    def give_back(self) -> bool:
        """Delete /controller if it is ours."""

    def close(self) -> None:
        """End the session."""


class ControllerRole:
    """The state machine of the role, on a thread of its own.

    Each claim has a new session: an old claim is never taken up again. After a loss soon after the
    claim the next claim waits, longer each time, so that two controllers from outside seldom fight;
    if the other one has our id, we end (streaming.front.rivals).
    A log that fails ends the thread: on_failure is told, and this process must end.
    """

    def __init__(
        self,
        log: EventAppender,
        signals: Signals,
        *,
        new_term: Callable[[Rivals], HeldTerm],
        on_phase: Callable[[RolePhase], None],
        on_failure: Callable[[Exception], None],
        counters: Counters,
    ) -> None:
        """Wait for the job first; on_phase and on_failure are called on the thread."""
        self._log = log
        self._signals = signals
        self._new_term = new_term
        self._on_phase = on_phase
        self._on_failure = on_failure
        self._counters = counters
        self._phase = RolePhase.WAITING_FOR_JOB
        self._claim: ControllerClaim | None = None
        self._rivals = Rivals()
        self._pause_s = 0.0
        self._back_off = BackOff(_FIRST_PAUSE_S, _LONGEST_PAUSE_S)
        self._thread = threading.Thread(target=self._run, name="controller", daemon=True)

    @property
    def phase(self) -> RolePhase:
        """Where we stand."""
        return self._phase

    @property
    def claim(self) -> ControllerClaim | None:
        """The claim of the present term, else None."""
        return self._claim

    @property
    def is_under_way(self) -> bool:
        """Whether the role is held, or about to be: brokers may be waited for before a claim."""
        return self._claim is not None or self._phase is RolePhase.CLAIMING

    def is_controller(self) -> bool:
        """Return whether requests may be decided now."""
        return self._phase is RolePhase.ACTIVE and not self._signals.leaving

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self, timeout_s: float) -> bool:
        """Give the role back and end the thread; False when it did not end in time."""
        self._signals.stop()
        if self._thread.is_alive():
            self._thread.join(timeout_s)
        return not self._thread.is_alive()

    def _run(self) -> None:
        try:
            while self._signals.wait_for_job(self._pause_s):
                self._serve_term()
                self._enter(RolePhase.WAITING_FOR_JOB)
            self._enter(RolePhase.STOPPED)
        except (HelmstreamError, LogError) as error:
            self._on_failure(error)  # it says all there is to say
        except Exception as error:
            logger.exception("the controller's thread ends")
            self._on_failure(error)

    def _serve_term(self) -> None:
        self._signals.start_term()
        self._enter(RolePhase.CLAIMING)
        term = self._new_term(self._rivals)
        claimed_s = time.monotonic()
        try:
            self._claim = term.connect_and_claim()
            claimed_s = time.monotonic()
            logger.info("controller with epoch %d", self._claim.epoch)
            self._hold(term)
        except GiveUpRole as wish:
            self._pause_s = 0.0
            self._back_off.reset()
            self._resign(term, str(wish))
        except (RoleLost, Fenced, ZooKeeperError) as loss:
            self._pause_s = self._pause_after_loss(time.monotonic() - claimed_s)
            self._lose(loss)
        finally:
            self._claim = None
            term.close()

    def _hold(self, term: HeldTerm) -> None:
        self._counters["controller_claims"] += 1
        self._enter(RolePhase.LOADING)
        term.load()
        self._enter(RolePhase.ACTIVE)
        term.follow()

    def _resign(self, term: HeldTerm, reason: str) -> None:
        """The event goes first: nothing is decided any more when a broker takes the role."""
        if self._claim is None:
            logger.info("the controller role is not claimed: %s", reason)
            self._enter(RolePhase.LOST)
            return
        logger.info("the controller role is given back: %s", reason)
        self._enter(RolePhase.RESIGNING)
        self._append_resigned(reason)
        try:
            term.give_back()
        except ZooKeeperError as error:
            logger.warning("/controller goes with our session only: %s", error)

    def _lose(self, loss: Exception) -> None:
        logger.log(loss_level(loss), "the controller role is lost: %s", loss)
        self._counters["controller_losses"] += 1
        self._enter(RolePhase.LOST)
        if self._claim is not None:
            self._append_resigned(str(loss))

    def _append_resigned(self, reason: str) -> None:
        appended = self._log.append_async(
            [event(EventKind.CONTROLLER_RESIGNED, {"reason": reason})]
        )
        try:
            appended.result(_RESIGNED_TIMEOUT_S)
        except TimeoutError:
            logger.warning("the role goes before the log has that it does")
        except LogError as error:  # the next front says so when it opens the log
            logger.warning("the role goes, and the log does not have that it does: %s", error)

    def _pause_after_loss(self, held_s: float) -> float:
        if self._claim is not None and held_s > _QUICK_LOSS_S:
            self._back_off.reset()
        return self._back_off.pause_s()

    def _enter(self, phase: RolePhase) -> None:
        assert self._phase in LEGAL_PREVIOUS[phase], f"{self._phase} is never followed by {phase}"
        self._phase = phase
        self._on_phase(phase)


def loss_level(loss: Exception) -> int:
    """Return the level at which a loss is logged: that somebody else took the role is no fault, but
    no role can be taken under an id that is a broker's.
    """
    nothing_to_mend = isinstance(loss, RoleLost | Fenced) and not isinstance(loss, IdTaken)
    return logging.INFO if nothing_to_mend else logging.WARNING
