"""How a job ends that is told to."""

from __future__ import annotations

import signal
import threading
from pathlib import Path

import pytest

from streaming import job
from streaming.settings_loader import load_settings
from streaming.sinks.appender import JobStopping

pytestmark = pytest.mark.usefixtures("handlers_kept")


def test_a_job_whose_last_events_no_front_takes_any_more_ends_in_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def run(*_: object) -> None:
        raise JobStopping("2 events wait for the front: the front hung up")

    monkeypatch.setattr(job, "_run_with_lock", run)
    settings = load_settings(overrides=[f"data.dir={tmp_path}"], environment={})
    assert job.run_job(settings) == 0


def test_a_hangup_stops_a_job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def run(_settings: object, _folders: object, _lock: object, stop: threading.Event, *_: object):
        signal.raise_signal(signal.SIGHUP)
        assert stop.is_set()

    monkeypatch.setattr(job, "_run_with_lock", run)
    settings = load_settings(overrides=[f"data.dir={tmp_path}"], environment={})
    assert job.run_job(settings) == 0
