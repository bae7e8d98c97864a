"""How a job ends that is stopped together with its front."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from streaming import job
from streaming.settings_loader import load_settings
from streaming.sinks.appender import JobStopping


@pytest.fixture(autouse=True)
def handlers_kept() -> Iterator[None]:
    numbers = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
    before = {number: signal.getsignal(number) for number in numbers}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


def test_a_job_whose_last_events_no_front_takes_any_more_ends_in_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def run(*_: object) -> None:
        raise JobStopping("2 events wait for the front: the front hung up")

    monkeypatch.setattr(job, "_run_with_lock", run)
    settings = load_settings(overrides=[f"data.dir={tmp_path}"], environment={})
    assert job.run_job(settings) == 0
