"""The decision stream where its log cluster does not answer."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

from streaming.log import copying, publisher
from streaming.log.api import LogUnavailable, NewRecord
from streaming.log.embedded import EmbeddedLogReader, EmbeddedLogWriter
from streaming.log.location import topic_of
from streaming.log.publisher import DecisionPublisher
from streaming.process.wall_clock import wall_clock_ms
from tests.fixtures.waiting import wait_for

TOPIC = topic_of("kafka://127.0.0.1:1/decisions")
RETENTION_MS = 1_000_000


def test_it_ends_while_its_log_cluster_does_not_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    connecting, answered = threading.Event(), threading.Event()

    def never_connected(*_: Any, **__: Any) -> None:
        connecting.set()
        answered.wait()
        raise LogUnavailable("nobody answers")

    monkeypatch.setattr(publisher, "KafkaLogWriter", never_connected)
    monkeypatch.setattr(publisher, "_END_TIMEOUT_S", 0.01)
    stream = DecisionPublisher(tmp_path, TOPIC, RETENTION_MS)
    connecting.wait()
    closing = threading.Thread(target=stream.close, daemon=True)
    closing.start()
    closing.join(30)
    ended = not closing.is_alive()
    answered.set()
    stream._thread.join(30)  # what it logs belongs to this test
    assert ended


def test_it_goes_on_after_an_error_that_nobody_knows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    opened = threading.Semaphore(0)

    def broken(*_: Any, **__: Any) -> None:
        opened.release()
        raise ValueError("something new")

    monkeypatch.setattr(publisher, "KafkaLogWriter", broken)
    monkeypatch.setattr(publisher, "_RETRY_S", 0.01)
    stream = DecisionPublisher(tmp_path, TOPIC, RETENTION_MS)
    again = [opened.acquire(timeout=30) for _ in range(2)]
    stream.close()
    assert again == [True, True]
    assert "something new" in caplog.text


def test_it_deletes_from_the_topic_what_is_older_than_the_retention(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old_ms = wall_clock_ms() - 2 * RETENTION_MS
    with EmbeddedLogWriter(tmp_path / "decisions") as decisions:
        times_ms = [old_ms] * 3 + [None] * 2
        decisions.append(
            [NewRecord("reply", f"{at}:0", b"{}", time_ms) for at, time_ms in enumerate(times_ms)]
        )
    copy = tmp_path / "topic"
    EmbeddedLogWriter(copy, segment_bytes=1).close()
    monkeypatch.setattr(
        publisher, "KafkaLogWriter", lambda *_, **__: EmbeddedLogWriter(copy, segment_bytes=1)
    )
    monkeypatch.setattr(publisher, "KafkaLogReader", lambda *_: EmbeddedLogReader(copy))
    monkeypatch.setattr(publisher, "_CUT_EVERY_S", 0)
    monkeypatch.setattr(copying, "_AT_ONCE", 1)
    stream = DecisionPublisher(tmp_path / "decisions", TOPIC, RETENTION_MS)
    try:
        with EmbeddedLogReader(copy) as reader:
            wait_for("what is young", lambda: reader.end_offset() == len(times_ms))
            wait_for("the cut", lambda: reader.start_offset() == times_ms.index(None))
    finally:
        stream.close()
