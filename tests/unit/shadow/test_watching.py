"""When a shadow's first read is over is said at once, and in its report."""

from __future__ import annotations

import io
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import orjson
import pytest
from rich.console import Console

from streaming.log.api import NewRecord
from streaming.paths import DataDir
from streaming.settings_loader import load_settings
from streaming.shadow import run
from streaming.shadow.exit_codes import INCOMPLETE
from streaming.shadow.looks import Load, Look
from streaming.shadow.run import Options, run_shadow
from tests.unit.shadow.support import Beside, reader, session, state

READ_MS = 1_700_000_000_250
LINE = "watching since 2023-11-14T22:13:20.250Z: controller epoch 5, 1 partitions of 1 topics"


def first_look() -> Look:
    """A controller has been there for long."""
    inputs = [NewRecord(one.kind, one.key, one.payload) for one in Beside().engine.events]
    load = Load(5, {("t", 0): state(1, [1, 2, 3], 4, 9)}, first=True)
    return Look(READ_MS - 50, inputs, load=load, over_ms=READ_MS)


def ran(
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    looks: list[Look],
    *,
    signals: int,
    **console: Any,
) -> tuple[int, str, dict[str, Any]]:
    """Return what a shadow ends with that sees these looks, what it prints, and its summary."""

    def signalled(take: Callable[[], None]) -> None:
        for _ in range(signals):
            take()

    def look() -> Look:
        return looks.pop(0) if looks else Look(READ_MS)

    monkeypatch.setattr(run, "check_zookeeper", lambda *_: None)
    monkeypatch.setattr(run, "log_to_file", lambda _: None)
    monkeypatch.setattr(run, "on_stop_signal", signalled)
    monkeypatch.setattr(run, "reader_of", lambda _: nullcontext(session()))
    monkeypatch.setattr(run, "ClusterReader", lambda *_: reader(look))
    settings = load_settings(overrides=[f"data.dir={folder}"], environment={})
    printed = io.StringIO()
    options = Options(local=True, duration_s=None, report=None, all_of_them=False)
    code = run_shadow(settings, options, Console(file=printed, width=60, **console))
    last = DataDir(folder).shadow_report.read_bytes().splitlines()[-1]
    return code, printed.getvalue(), orjson.loads(last)["summary"]


@pytest.mark.parametrize("is_terminal", [False, True])
def test_the_line_comes_once_and_whole(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    is_terminal: bool,
) -> None:
    caplog.set_level("INFO")
    looks = [first_look(), Look(READ_MS)]
    _, printed, summary = ran(
        tmp_path, monkeypatch, looks, signals=1, force_terminal=is_terminal, color_system=None
    )
    assert printed.count(LINE) == 1
    assert [one.getMessage() for one in caplog.records].count(LINE) == 1
    assert summary["watching_since_ms"] == READ_MS


def test_it_does_not_come_before_the_first_read_is_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code, printed, summary = ran(tmp_path, monkeypatch, [], signals=2)
    assert (code, summary["watching_since_ms"]) == (INCOMPLETE, None)
    assert "watching since" not in printed


def test_another_controller_does_not_begin_it_anew() -> None:
    beside = Beside()
    began_ms = beside.shadow.watching_since_ms
    beside.wait()
    beside.load(state(1, [1, 2, 3], 4, 9), brokers=[1, 2, 3], epoch=6, first=False)
    assert beside.shadow.watching_since_ms == began_ms == 1_000_000
