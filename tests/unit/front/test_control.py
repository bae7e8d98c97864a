"""Orders on the control socket: what is taken, what is refused, and what the commands say."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import orjson
import pytest

from state.errors import MalformedEvent
from streaming.cli import main
from streaming.control_socket import OrderRefused, control_path, give_order
from streaming.errors import NotRunning
from streaming.front.control import ControlServer, order_event
from streaming.log.api import LogClosed, NewRecord


@pytest.fixture
def data_dir() -> Iterator[Path]:
    """A folder with a short path: that of a Unix socket may not be long."""
    with tempfile.TemporaryDirectory(prefix="hs-") as folder:
        yield Path(folder)


class Log:
    def __init__(self, error: Exception | None = None) -> None:
        self.records: list[NewRecord] = []
        self.error = error

    def append(self, records: list[NewRecord]) -> Future[range]:
        appended: Future[range] = Future()
        if self.error is not None:
            appended.set_exception(self.error)
        else:
            start = 40 + len(self.records)
            self.records += records
            appended.set_result(range(start, start + len(records)))
        return appended


def ask(data_dir: Path, log: Log, call: Callable[[], Any]) -> tuple[Any, int]:
    """Call with a server at work; return what it returns and how often a pause ended."""
    resumed: list[None] = []

    async def scenario() -> Any:
        path = control_path(data_dir)
        server = ControlServer(path, log.append, lambda: resumed.append(None))
        await server.start()
        try:
            return await asyncio.to_thread(call)
        finally:
            await server.stop()

    return asyncio.run(scenario()), len(resumed)


def test_orders_become_events_and_the_end_of_a_pause_is_told(data_dir: Path) -> None:
    log = Log()
    orders = [
        {"order": "pause", "reason": "r"},
        {"order": "allow_shutdown", "broker_id": 3},
        {"order": "resume", "reason": ""},
    ]
    found, resumed = ask(data_dir, log, lambda: [give_order(data_dir, o, 10) for o in orders])
    assert (found, resumed) == ([40, 41, 42], 1)
    assert [(one.kind, one.key, orjson.loads(one.payload)) for one in log.records] == [
        ("controller_paused", "", {"reason": "r"}),
        ("controlled_shutdown_allowed", "", {"broker_id": 3}),
        ("controller_resumed", "", {"reason": ""}),
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


def test_a_log_that_refuses_is_told(data_dir: Path) -> None:
    def refused() -> None:
        with pytest.raises(OrderRefused, match="closed"):
            give_order(data_dir, {"order": "resume", "reason": ""}, 10)

    assert ask(data_dir, Log(LogClosed("closed")), refused) == (None, 0)


@pytest.mark.parametrize("line", [b"", b"[]", b"{", b"5\n"])
def test_lines_that_are_no_json_objects_are_refused(line: bytes) -> None:
    with pytest.raises(MalformedEvent, match="is no order"):
        order_event(line)


def test_without_a_front_there_is_nobody_to_take_an_order(data_dir: Path) -> None:
    with pytest.raises(NotRunning, match="no helmstream is running"):
        give_order(data_dir, {"order": "pause", "reason": ""}, 1)


def test_the_command_allows_a_shutdown(data_dir: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def command() -> int:
        with pytest.raises(SystemExit) as left:
            main(["allow-shutdown", "3", "--data-dir", str(data_dir)])
        return int(left.value.code or 0)

    assert ask(data_dir, Log(), command) == (0, 0)
    assert "broker 3 may shut down (event 40)" in capsys.readouterr().out
