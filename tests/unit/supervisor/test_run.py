"""What `helmstream run` refuses before it starts anything."""

from __future__ import annotations

import io
import os
from pathlib import Path

import pytest
from rich.console import Console

from streaming.errors import NoZooKeeper
from streaming.log.writer_lock import LogLocked, WriterLock
from streaming.paths import DataDir
from streaming.settings_loader import load_settings
from streaming.starting.job_lock import JobLock, JobLocked
from streaming.supervisor.run import check_folder_free, run


def run_in(folder: Path, *overrides: str) -> None:
    given = [f"data.dir={folder}", "zookeeper.connect=127.0.0.1:1", *overrides]
    run(load_settings(overrides=given, environment={}), [], Console(file=io.StringIO()))


def test_a_folder_that_has_a_job_is_refused(tmp_path: Path) -> None:
    with JobLock(DataDir(tmp_path).job_lock) as lock:
        lock.acquire()
        with pytest.raises(JobLocked, match=f"process {os.getpid()}.* helmstream run --standby"):
            run_in(tmp_path)
    assert not (tmp_path / "log").exists()


@pytest.mark.parametrize("url", ["", "kafka://127.0.0.1:1/events"])
def test_a_folder_that_has_a_front_is_refused(tmp_path: Path, url: str) -> None:
    with (
        WriterLock(DataDir(tmp_path).events),
        pytest.raises(LogLocked, match=f"already written by process {os.getpid()}"),
    ):
        run_in(tmp_path, f"event.log.url={url}")
    assert not (tmp_path / "log").exists()


def test_looking_holds_nothing(tmp_path: Path) -> None:
    settings = load_settings(overrides=[f"data.dir={tmp_path}"], environment={})
    check_folder_free(settings)
    check_folder_free(settings)


def test_the_port_of_every_listener_is_looked_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked_at: list[tuple[object, ...]] = []
    monkeypatch.setattr("streaming.supervisor.run.find_java", lambda: None)
    monkeypatch.setattr(
        "streaming.supervisor.run.check_bindable", lambda *address: looked_at.append(address)
    )
    with pytest.raises(NoZooKeeper):
        run_in(tmp_path, "gateway.port=9190", "gateway.listeners=CLIENT,INTERNAL")
    assert looked_at == [("127.0.0.1", 9190), ("127.0.0.1", 9191)]
    looked_at.clear()
    with pytest.raises(NoZooKeeper):
        run_in(tmp_path, "metrics.port=9404", "metrics.host=127.0.0.2")
    assert looked_at[1:] == [("127.0.0.2", 9404, "metrics")]
