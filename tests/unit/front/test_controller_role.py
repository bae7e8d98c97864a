"""The role's state machine against terms that do what a test says."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from concurrent.futures import Future
from pathlib import Path

import orjson
import pytest

from streaming.front import controller_role as role_module
from streaming.front.controller_role import LEGAL_PREVIOUS, ControllerRole, RolePhase
from streaming.front.signals import GiveUpRole, IdTaken, RoleLost, Signals
from streaming.log.api import AppendFailed, LogClosed, LogError
from streaming.observers.notifications import Fenced
from streaming.zk.claim import ControllerClaim
from streaming.zk.errors import SessionLost, ZooKeeperUnreachable
from streaming.zk.own_id import BrokersId
from streaming.zk.types import ZNode
from tests.unit.front.front_figures import image_of, made_front


class Log:
    """Takes reasons; one that hangs never says so. error: what it fails with."""

    def __init__(self, *, hangs: bool = False, error: LogError | None = None) -> None:
        self.reasons: list[str] = []
        self.hangs = hangs
        self.error = error

    def append(self, records) -> range:
        raise NotImplementedError

    def append_async(self, records) -> Future:
        self.reasons += [orjson.loads(record.payload)["reason"] for record in records]
        appended: Future[range] = Future()
        if self.error is not None:
            appended.set_exception(self.error)
        elif not self.hangs:
            appended.set_result(range(len(records)))
        return appended


class Term:
    """Raises an error at a step: claim, load, follow or give_back."""

    def __init__(self, signals: Signals, calls: list[str], step: str, error: Exception) -> None:
        self._signals, self._calls, self._step, self._error = signals, calls, step, error

    def _do(self, step: str) -> None:
        self._calls.append(step)
        if step == self._step:
            raise self._error

    def connect_and_claim(self) -> ControllerClaim:
        self._do("claim")
        return ControllerClaim(1000, 3, 3, 77)

    def load(self) -> None:
        self._do("load")

    def follow(self) -> None:
        self._do("follow")
        raise GiveUpRole("the test is over")

    def give_back(self) -> bool:
        self._do("give_back")
        return True

    def close(self) -> None:
        self._do("close")


def serve(
    step: str, error: Exception, log: Log | None = None
) -> tuple[list[str], list[RolePhase], Log, ControllerRole]:
    """Run one term that fails at a step, then stop."""
    signals, log, calls, phases = Signals(), log or Log(), [], []
    done = threading.Event()
    failures: list[Exception] = []

    def entered(phase: RolePhase) -> None:
        phases.append(phase)
        if phase is RolePhase.WAITING_FOR_JOB:
            signals.stop()
        if phase is RolePhase.STOPPED:
            done.set()

    def failed(error: Exception) -> None:
        failures.append(error)
        done.set()

    authority = ControllerRole(
        log,
        signals,
        new_term=lambda _: Term(signals, calls, step, error),
        on_phase=entered,
        on_failure=failed,
        counters=Counter(),
    )
    signals.set_job_healthy(True)
    authority.start()
    assert done.wait(10)
    if failures:
        raise failures[0]
    return calls, phases, log, authority


def test_the_role_is_given_back_after_the_event():
    calls, phases, log, _ = serve("follow", GiveUpRole("lease"))
    assert calls == ["claim", "load", "follow", "give_back", "close"]
    assert phases == [
        RolePhase.CLAIMING,
        RolePhase.LOADING,
        RolePhase.ACTIVE,
        RolePhase.RESIGNING,
        RolePhase.WAITING_FOR_JOB,
        RolePhase.STOPPED,
    ]
    assert log.reasons == ["lease"]


def test_the_role_is_given_back_though_the_log_never_answers(monkeypatch):
    monkeypatch.setattr(role_module, "_RESIGNED_TIMEOUT_S", 0.05)
    calls, _, log, _ = serve("follow", GiveUpRole("lease"), Log(hangs=True))
    assert calls[-2:] == ["give_back", "close"]
    assert log.reasons == ["lease"]


@pytest.mark.parametrize("step", ["load", "follow"])
def test_a_lost_role_is_not_given_back(step):
    calls, phases, log, _ = serve(step, RoleLost("taken"))
    assert "give_back" not in calls and calls[-1] == "close"
    assert RolePhase.LOST in phases and RolePhase.RESIGNING not in phases
    assert log.reasons == ["taken"]


def test_a_claim_that_failed_is_no_term():
    calls, phases, log, _ = serve("claim", ZooKeeperUnreachable("h:1", 5))
    assert calls == ["claim", "close"]
    assert phases[:2] == [RolePhase.CLAIMING, RolePhase.LOST]
    assert log.reasons == []


def test_a_zookeeper_that_is_gone_when_giving_back_is_no_failure():
    calls, _, log, _ = serve("give_back", SessionLost("gone"))
    assert calls[-2:] == ["give_back", "close"]
    assert log.reasons == ["the test is over"]


@pytest.mark.parametrize("step", ["claim", "load"])
def test_any_error_during_initialisation_gives_the_role_up(step, monkeypatch):
    """An error of ours too: the session ends, and this process with it."""
    closed = []
    monkeypatch.setattr(Term, "close", lambda term: closed.append(step))
    with pytest.raises(ValueError, match="a fault of ours"):
        serve(step, ValueError("a fault of ours"))
    assert closed == [step]


def test_a_log_that_fails_ends_the_thread_and_the_session(caplog):
    with pytest.raises(LogClosed):
        serve("follow", LogClosed("disk"))
    assert "Traceback" not in caplog.text


@pytest.mark.parametrize("failure", [LogClosed("the writer gave up"), AppendFailed("full")])
def test_the_role_is_given_back_without_a_log_that_could_say_so(failure, caplog):
    calls, phases, _, _ = serve("follow", GiveUpRole("stopped"), Log(error=failure))
    assert calls[-2:] == ["give_back", "close"]
    assert RolePhase.STOPPED in phases
    assert f"the log does not have that it does: {failure}" in caplog.text


@pytest.mark.parametrize(
    ("step", "error", "quick_s", "pauses"),
    [
        pytest.param("follow", RoleLost("taken"), 600, [0, 1, 2, 4], id="lost at once"),
        pytest.param("follow", RoleLost("taken"), -1, [0, 1, 1, 1], id="held for long"),
        pytest.param("claim", SessionLost("gone"), -1, [0, 1, 2, 4], id="never held"),
        pytest.param("follow", GiveUpRole("lease"), 600, [0, 0, 0, 0], id="given back"),
    ],
)
def test_pauses_grow_while_the_role_is_lost_quickly(monkeypatch, step, error, quick_s, pauses):
    waited = []

    def wait(_: Signals, pause_s: float) -> bool:
        waited.append(pause_s)
        return len(waited) < len(pauses)

    monkeypatch.setattr(Signals, "wait_for_job", wait)
    monkeypatch.setattr(role_module, "_QUICK_LOSS_S", quick_s)
    serve(step, error)
    assert waited == pauses


def test_every_phase_can_be_left_and_reached():
    assert set(LEGAL_PREVIOUS) == set(RolePhase)
    assert set().union(*LEGAL_PREVIOUS.values()) == set(RolePhase) - {RolePhase.STOPPED}


def test_signals_wake_who_waits_and_the_first_reason_counts():
    signals = Signals()
    signals.lose("first")
    signals.lose("second")
    with pytest.raises(RoleLost, match="first"):
        signals.wait_for_work([])
    signals.start_term()
    signals.give_up("lease")
    with pytest.raises(GiveUpRole, match="lease"):
        signals.check()
    signals.start_term()
    signals.check()
    signals.set_held(True)
    signals.wait_for_work(["work"])
    signals.stop()
    assert signals.wait_for_job(60.0) is False


def test_the_id_of_a_broker_ends_the_thread():
    unreadable = ZNode(b"", 0, 1, 1, 1, 0)
    with pytest.raises(BrokersId, match=r"7 is the id of .*: set it to an id that no broker has"):
        serve("claim", BrokersId(7, unreadable))


@pytest.mark.parametrize(
    ("loss", "level"),
    [
        (RoleLost("taken"), "INFO"),
        (Fenced("fenced"), "INFO"),
        (IdTaken("a broker's"), "WARNING"),
        (SessionLost("gone"), "WARNING"),
        (ZooKeeperUnreachable("h:1", 5), "WARNING"),
    ],
)
def test_that_somebody_else_took_the_role_is_no_fault(loss, level, caplog):
    with caplog.at_level("INFO", "streaming.front.controller_role"):
        serve("follow", loss)
    told = [one.levelname for one in caplog.records if "is lost" in one.message]
    assert told == [level]


def test_a_role_that_is_not_claimed_yet_is_given_up_when_the_lease_runs_out(tmp_path: Path) -> None:
    """A claim may wait for the first broker, and the job be gone by then."""

    async def left() -> list[bool]:
        front, log = made_front(tmp_path)
        found = []
        for phase in (RolePhase.WAITING_FOR_JOB, RolePhase.CLAIMING):
            front._role._phase = phase
            front._lease_expired("the job is away")
            found.append(front._signals.leaving)
        log.close()
        return found

    assert asyncio.run(left()) == [False, True]


@pytest.mark.parametrize(
    ("phase", "epoch", "current"),
    [
        (RolePhase.ACTIVE, 4, True),
        (RolePhase.ACTIVE, 5, True),
        (RolePhase.ACTIVE, 6, False),
        (RolePhase.LOADING, 4, False),
    ],
)
def test_the_image_is_not_current_when_another_controller_came_after_it(
    tmp_path: Path, phase: RolePhase, epoch: int, current: bool
) -> None:
    async def found() -> bool:
        front, log = made_front(tmp_path)
        front._role._phase = phase
        front._role._claim = ControllerClaim(1000, epoch, epoch, 77)
        assert not front.is_current()  # there is no image
        front._feed.image = image_of([])
        assert front._feed.image.controller_epoch == 4
        log.close()
        return front.is_current()

    assert asyncio.run(found()) is current
