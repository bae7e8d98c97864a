"""How many connections the limit of open files lets through."""

from __future__ import annotations

import logging
import resource

import pytest

from streaming.process.open_files import (
    JOB_FILES,
    RESERVED,
    admissible_connections,
    allow_open_files,
)


@pytest.fixture
def limits(monkeypatch: pytest.MonkeyPatch) -> dict[str, tuple[int, int]]:
    """The process's limits, made up: (soft, hard) under "now"."""
    held = {"now": (1_024, 20_000)}
    monkeypatch.setattr(resource, "getrlimit", lambda _: held["now"])
    monkeypatch.setattr(resource, "setrlimit", lambda _, pair: held.update(now=pair))
    return held


def test_the_soft_limit_is_raised_to_what_the_connections_take(
    limits: dict[str, tuple[int, int]],
) -> None:
    assert admissible_connections(10_000) == 10_000
    assert limits["now"] == (10_000 + RESERVED, 20_000)


def test_a_limit_that_is_high_enough_is_left_alone(limits: dict[str, tuple[int, int]]) -> None:
    limits["now"] = (2_048, 20_000)
    assert admissible_connections(500) == 500
    assert limits["now"] == (2_048, 20_000)


def test_connections_leave_files_for_the_rest_when_there_are_too_few(
    limits: dict[str, tuple[int, int]], caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        assert admissible_connections(30_000) == 20_000 - RESERVED
    assert limits["now"] == (20_000, 20_000)
    assert "max.connections is 30000, but only 18976 connections are served" in caplog.text


def test_no_limit_at_all(limits: dict[str, tuple[int, int]]) -> None:
    limits["now"] = (resource.RLIM_INFINITY, resource.RLIM_INFINITY)
    assert admissible_connections(30_000) == 30_000
    assert limits["now"] == (resource.RLIM_INFINITY, resource.RLIM_INFINITY)


def test_the_job_may_have_a_connection_to_each_of_many_brokers(
    limits: dict[str, tuple[int, int]],
) -> None:
    assert allow_open_files(JOB_FILES) == JOB_FILES
    assert limits["now"] == (JOB_FILES, 20_000)
    limits["now"] = (1_024, 4_096)
    assert allow_open_files(JOB_FILES) == 4_096
    assert limits["now"] == (4_096, 4_096)
