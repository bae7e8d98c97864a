"""Which signals end a process in order."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

PROGRAM = """
import signal, sys
signal.signal(signal.SIGHUP, signal.{hangup})
from streaming.process.stop_signals import on_stop_signal
on_stop_signal(lambda number: print("told", number) or sys.exit(0))
signal.raise_signal({number})
print("goes on")
"""


def said_after(number: signal.Signals, hangup: str = "SIG_DFL") -> str:
    """What a process says that gets a signal; hangup: what SIGHUP does when it starts."""
    command = [sys.executable, "-c", PROGRAM.format(number=int(number), hangup=hangup)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    return done.stdout.strip()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_process_is_told_of_each_signal_that_ends_it(number: signal.Signals) -> None:
    assert said_after(number) == f"told {int(number)}"


def test_under_nohup_a_closed_terminal_ends_nothing() -> None:
    assert said_after(signal.SIGHUP, "SIG_IGN") == "goes on"
