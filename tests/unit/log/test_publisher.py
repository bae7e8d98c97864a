"""The decision stream where its log cluster does not answer."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

from streaming.log import publisher
from streaming.log.api import LogUnavailable
from streaming.log.location import topic_of
from streaming.log.publisher import DecisionPublisher


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
    stream = DecisionPublisher(tmp_path, topic_of("kafka://127.0.0.1:1/decisions"))
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
    stream = DecisionPublisher(tmp_path, topic_of("kafka://127.0.0.1:1/decisions"))
    again = [opened.acquire(timeout=30) for _ in range(2)]
    stream.close()
    assert again == [True, True]
    assert "something new" in caplog.text
