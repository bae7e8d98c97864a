"""What every command runs in: expected errors become one clear message and an exit code."""

from __future__ import annotations

import errno
import logging
import os
from collections.abc import Callable

from rich.console import Console
from rich.text import Text

from streaming.errors import HelmstreamError

logger = logging.getLogger(__name__)

INTERRUPTED = 130  # what shells report for a program ended by Ctrl-C


def run_framed(command: Callable[[], object], console: Console) -> int:
    """Run a command and return the exit code; an unexpected error keeps its traceback."""
    try:
        command()
    except KeyboardInterrupt:
        return INTERRUPTED
    except SystemExit as leaving:
        return leaving.code if isinstance(leaving.code, int) else int(leaving.code is not None)
    except Exception as error:
        code = expected_exit_code(error)
        if code is None:
            raise
        # Text and not a string: brackets in a message are not rich's markup.
        console.print(Text.assemble(("error: ", "bold red"), _message(error)), soft_wrap=True)
        return code
    return 0


def _message(error: Exception) -> str:
    if isinstance(error, OSError) and error.filename is not None:
        # Whoever writes a log, as front and job do, also keeps where it was met.
        logger.info("a file cannot be used", exc_info=error)
        return f"{error.filename}: {error.strerror}"
    if is_full(error):
        logger.info("a disk is full", exc_info=error)
        return f"what is printed, or a file, cannot be written: {os.strerror(errno.ENOSPC)}"
    return str(error)


def is_full(error: Exception) -> bool:
    """Return whether a disk, or where it is printed to, has no space left."""
    return isinstance(error, OSError) and error.errno == errno.ENOSPC


def expected_exit_code(error: Exception) -> int | None:
    """Exit code of an error that its message explains in full; None for a fault of ours."""
    from kazoo.handlers.threading import KazooTimeoutError

    from checkpoints.layout import CheckpointMismatch
    from state.errors import CorruptBlock
    from streaming.log.api import LogError, LogUnavailable
    from streaming.log.embedded_format import CorruptLog
    from streaming.zk.errors import ZooKeeperError

    if isinstance(error, HelmstreamError):
        return error.exit_code
    if isinstance(error, CheckpointMismatch | CorruptBlock | CorruptLog):
        return 2
    if isinstance(error, KazooTimeoutError | ZooKeeperError | LogUnavailable):
        return 4
    if isinstance(error, OSError) and error.errno == errno.EADDRINUSE:
        return 4
    if is_full(error) or (isinstance(error, OSError) and error.filename is not None):
        return 1
    return 1 if isinstance(error, LogError) else None
