"""The signals that ask a process to end in order."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Sequence
from types import FrameType

_PRINTED_TO = (1, 2)


def stop_signals() -> Sequence[signal.Signals]:
    """Return SIGTERM, SIGINT and SIGHUP: a terminal that was closed ends a JVM in order too.

    SIGHUP is not among them where it is ignored, as under nohup.
    """
    found = [signal.SIGTERM, signal.SIGINT]
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        found.append(signal.SIGHUP)
    return found


def on_stop_signal(stop: Callable[[int], object]) -> None:
    """Have `stop` called with the number of each signal that asks this process to end; for its main
    thread.
    """
    terminals = [fd for fd in _PRINTED_TO if os.isatty(fd)]

    def take(number: int, _: FrameType | None) -> None:
        if number == signal.SIGHUP:  # the shell may say it after the kernel has
            signal.signal(signal.SIGHUP, signal.SIG_IGN)
        _let_go(terminals)
        stop(number)

    for one in stop_signals():
        signal.signal(one, take)


def _let_go(terminals: Sequence[int]) -> None:
    """Send what is printed nowhere once its terminal is gone: to print there is an error, which
    would keep a process from what it does to end.
    """
    gone = [fd for fd in terminals if not os.isatty(fd)]
    if gone:
        nowhere = os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC)
        for fd in gone:
            os.dup2(nowhere, fd)
        os.close(nowhere)
