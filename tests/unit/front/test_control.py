"""Orders on the control socket: what is taken, what is refused, and what the commands say."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import orjson
import pytest

from state.errors import MalformedEvent
from streaming.cli import main
from streaming.commands import control
from streaming.errors import NotRunning
from streaming.front import control as control_server
from streaming.front.control import ControlServer, order_event
from streaming.log.api import AppendFailed, NewRecord
from streaming.paths import DataDir
from streaming.sockets.control_socket import OrderRefused, give_order
from tests.fixtures.waiting import wait_for

Command = Callable[..., tuple[int, int]]
LONG_S, SHORT_S = 20.0, 3.0
"""For an effect that is there at once, and for one that never comes."""


@pytest.fixture
def data_dir() -> Iterator[Path]:
    """A folder with a short path: that of a Unix socket may not be long."""
    with tempfile.TemporaryDirectory(prefix="hs-") as folder:
        yield Path(folder)


FIRST = 40
"""Offset of the first order."""
PAUSE, RESUME = ({"order": name, "reason": ""} for name in ("pause", "resume"))


class Log:
    """What is appended counts from FIRST on; takes_s: how long that takes, once begun."""

    def __init__(self, error: Exception | None = None) -> None:
        self.records: list[NewRecord] = []
        self.error = error
        self.takes_s = 0.0

    def append(self, records: list[NewRecord]) -> Future[range]:
        appended: Future[range] = Future()
        appended.set_running_or_notify_cancel()
        if self.error is not None:
            appended.set_exception(self.error)
            return appended
        start = FIRST + len(self.records)
        self.records += records
        offsets = range(start, start + len(records))
        if self.takes_s:
            asyncio.get_running_loop().call_later(self.takes_s, appended.set_result, offsets)
        else:
            appended.set_result(offsets)
        return appended


class Job:
    """Has folded what is before `completed`, and is paused by that; `fold` takes the rest."""

    def __init__(self, log: Log, *, paused: bool = True, completed: int = FIRST) -> None:
        self.log = log
        self.paused = paused
        self.completed = completed

    def fold(self) -> None:
        for one in self.log.records[self.completed - FIRST :]:
            self.paused = one.kind == "controller_paused"
        self.completed = FIRST + len(self.log.records)

    def is_paused_after(self, offset: int) -> bool:
        return self.paused and self.completed > offset


def ask(
    data_dir: Path, log: Log, call: Callable[[], Any], job: Job | None = None
) -> tuple[Any, int]:
    """Call with a server at work, by default for a job that is paused; return what it returns and
    how often a pause ended.
    """
    resumed: list[int] = []
    folded = job or Job(log)

    async def scenario() -> Any:
        path = DataDir(data_dir).control_socket
        server = ControlServer(path, log.append, FIRST, resumed.append, folded.is_paused_after)
        await server.start()
        try:
            return await asyncio.to_thread(call)
        finally:
            await server.stop()

    return asyncio.run(scenario()), len(resumed)


def test_orders_become_events_and_the_end_of_a_pause_is_told(data_dir: Path) -> None:
    log = Log()
    orders = [
        {"order": "resume", "reason": ""},
        {"order": "allow_shutdown", "broker_id": 3},
        {"order": "pause", "reason": "r"},
    ]
    found, resumed = ask(data_dir, log, lambda: [give_order(data_dir, o, 10) for o in orders])
    assert (found, resumed) == ([40, 41, 42], 1)
    assert [(one.kind, one.key, orjson.loads(one.payload)) for one in log.records] == [
        ("controller_resumed", "", {"reason": ""}),
        ("controlled_shutdown_allowed", "", {"broker_id": 3}),
        ("controller_paused", "", {"reason": "r"}),
    ]


@pytest.mark.parametrize(
    "order",
    [{"order": "stop"}, {}, {"order": "pause"}, {"order": "allow_shutdown", "broker_id": "x"}],
)
def test_what_is_no_order_is_refused_and_not_appended(data_dir: Path, order: Any) -> None:
    log = Log()

    def refused() -> None:
        with pytest.raises(OrderRefused, match="the order was not taken"):
            give_order(data_dir, order, 10)

    assert ask(data_dir, log, refused) == (None, 0)
    assert log.records == []


def assert_refused(data_dir: Path) -> None:
    why = "is not paused, or its pause is not carried out yet, or is being ended already"
    with pytest.raises(OrderRefused, match=why):
        give_order(data_dir, RESUME, 10)


@pytest.mark.parametrize(("paused", "completed"), [(False, FIRST), (True, FIRST - 1)])
def test_only_a_pause_that_is_carried_out_ends(
    data_dir: Path, paused: bool, completed: int
) -> None:
    """What is decided and not written yet would be taken back by what is read before it is; what
    the log had before may be an end of the pause.
    """
    log = Log()
    job = Job(log, paused=paused, completed=completed)
    assert ask(data_dir, log, lambda: assert_refused(data_dir), job) == (None, 0)
    assert log.records == []


def test_a_pause_ends_once(data_dir: Path) -> None:
    """The second end would read everything again while what the first led to is on its way."""
    log = Log()
    job = Job(log)

    def orders() -> None:
        give_order(data_dir, RESUME, 10)
        assert_refused(data_dir)
        give_order(data_dir, PAUSE, 10)
        assert_refused(data_dir)  # the job is still paused as it was before
        job.fold()
        give_order(data_dir, RESUME, 10)
        job.fold()
        assert_refused(data_dir)

    assert ask(data_dir, log, orders, job) == (None, 2)
    assert [one.kind for one in log.records] == [
        "controller_resumed",
        "controller_paused",
        "controller_resumed",
    ]


@pytest.mark.parametrize(("orders", "loads"), [((RESUME, RESUME), 1), ((PAUSE, RESUME), 0)])
def test_no_pause_ends_while_an_order_is_under_way(
    data_dir: Path, orders: tuple[dict[str, str], ...], loads: int
) -> None:
    log = Log()
    log.takes_s = 0.5

    def both() -> None:
        with ThreadPoolExecutor() as threads:
            first = threads.submit(give_order, data_dir, orders[0], 10)
            wait_for("the first order", lambda: log.records)
            assert_refused(data_dir)
            first.result()

    assert ask(data_dir, log, both) == (None, loads)


def test_an_order_counts_however_long_the_log_takes(
    data_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An append that was begun is not taken back."""
    monkeypatch.setattr(control_server, "_TIMEOUT_S", 0.5)
    log = Log()
    job = Job(log)

    def orders() -> list[int]:
        log.takes_s = 0.6
        given = [give_order(data_dir, one, 10) for one in (RESUME, PAUSE)]
        log.takes_s = 0
        job.fold()
        return [*given, give_order(data_dir, RESUME, 10)]

    assert ask(data_dir, log, orders, job) == ([40, 41, 42], 2)


def test_what_the_log_refuses_may_be_ordered_again(data_dir: Path) -> None:
    log = Log(AppendFailed("full"))

    def orders() -> int:
        for one in (PAUSE, RESUME):
            with pytest.raises(OrderRefused, match="full"):
                give_order(data_dir, one, 10)
        log.error = None
        return give_order(data_dir, RESUME, 10)

    assert ask(data_dir, log, orders) == (FIRST, 1)


@pytest.mark.parametrize("line", [b"", b"[]", b"{", b"5\n"])
def test_lines_that_are_no_json_objects_are_refused(line: bytes) -> None:
    with pytest.raises(MalformedEvent, match="is no order"):
        order_event(line)


def test_without_a_front_there_is_nobody_to_take_an_order(data_dir: Path) -> None:
    with pytest.raises(NotRunning, match="no helmstream is running"):
        give_order(data_dir, {"order": "pause", "reason": ""}, 1)


def status(completed: int, **more: Any) -> dict[str, Any]:
    """What a front shows; the first order becomes event 40."""
    told = {"role": "active", "paused": False, "brokers": [1, 3]}
    return told | {"job": {"completed_offset": completed}} | more


@pytest.fixture
def command(data_dir: Path, monkeypatch: pytest.MonkeyPatch) -> Command:
    """Run a command beside a front whose status is these, one after the other, the last one for
    ever; return the exit code and how many events were appended.
    """

    def run(
        words: list[str], *statuses: dict[str, Any], timeout_s: float = LONG_S
    ) -> tuple[int, int]:
        shown = list(statuses)
        monkeypatch.setattr(
            control, "fetch_status", lambda *_: shown.pop(0) if len(shown) > 1 else shown[0]
        )
        log = Log()

        def call() -> int:
            with pytest.raises(SystemExit) as left:
                main([*words, "--data-dir", str(data_dir), "--timeout", str(timeout_s)])
            return int(left.value.code or 0)

        code, _ = ask(data_dir, log, call)
        return code, len(log.records)

    return run


def test_a_shutdown_is_allowed_once_a_job_has_folded_it(
    command: Command, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command(["allow-shutdown", "3"], status(40), status(40), status(41)) == (0, 1)
    assert "broker 3 may shut down (event 40)" in capsys.readouterr().out
    assert command(["allow-shutdown", "3"], status(40), timeout_s=SHORT_S) == (1, 1)
    assert "no job has folded it" in " ".join(capsys.readouterr().err.split())


def test_it_is_said_that_no_shutdown_is_refused_anyway(
    command: Command, capsys: pytest.CaptureFixture[str]
) -> None:
    for checks in (False, True):
        assert command(["allow-shutdown", "3"], status(41, checks_shutdowns=checks)) == (0, 1)
        told = " ".join(capsys.readouterr().out.split())
        assert "broker 3 may shut down (event 40)" in told
        assert ("safety.check.enable is off" in told) is not checks


@pytest.mark.parametrize(
    ("shown", "why"),
    [
        (status(99), "broker 7 is not registered; registered are: 1, 3"),
        (status(0, role="waiting_for_job", brokers=None), "the role is waiting_for_job"),
    ],
)
def test_a_shutdown_of_which_nothing_would_come_is_refused(
    command: Command, capsys: pytest.CaptureFixture[str], shown: dict[str, Any], why: str
) -> None:
    assert command(["allow-shutdown", "7"], shown) == (1, 0)
    assert why in capsys.readouterr().err


def test_a_second_pause_says_that_there_was_one(
    command: Command, capsys: pytest.CaptureFixture[str]
) -> None:
    first = [status(40), status(41, paused=True)]
    assert command(["pause"], *first) == (0, 1)
    assert "already" not in capsys.readouterr().out
    before = status(40, paused=True, pause_reason="new [disks]")
    assert command(["pause"], before, status(41, paused=True)) == (0, 1)
    told = " ".join(capsys.readouterr().out.split())
    assert told.startswith("it was paused already (reason: new [disks]) paused (event 40);")
    assert command(["pause"], *[status(41, paused=True)] * 2) == (0, 1)
    assert capsys.readouterr().out.startswith("it was paused already\n")


def test_a_front_without_a_job_does_not_know_that_a_pause_is_over(
    command: Command, capsys: pytest.CaptureFixture[str]
) -> None:
    """It starts as if there were none."""
    assert command(["resume"], status(0), timeout_s=SHORT_S) == (1, 1)
    assert "no job has folded it" in " ".join(capsys.readouterr().err.split())
    waiting = [status(0), status(40, paused=True), status(41, paused=True)]
    assert command(["resume"], *waiting, status(41)) == (0, 1)
    assert "resumed (event 40)" in capsys.readouterr().out
