"""What opening a session leaves as it was."""

from __future__ import annotations

import os
import signal

import pytest

from streaming.spark.session import open_spark
from tests.fixtures.waiting import wait_for
from tests.spark.query_run import settings_of

pytestmark = [pytest.mark.spark, pytest.mark.timeout(300)]


def test_what_sigint_does_is_the_same_afterwards(tmp_path):
    """A Ctrl-C that came then would end a job or a shadow out of order."""
    heard = []
    before = signal.signal(signal.SIGINT, lambda *_: heard.append("SIGINT"))
    try:
        spark = open_spark(settings_of(tmp_path))
        try:
            os.kill(os.getpid(), signal.SIGINT)
            wait_for("the handler", lambda: heard)
        finally:
            spark.stop()
    finally:
        signal.signal(signal.SIGINT, before)
    assert heard == ["SIGINT"]
