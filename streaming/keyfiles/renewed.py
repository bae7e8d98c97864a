"""TLS out of files that are renewed while it is spoken, as certificates are."""

from __future__ import annotations

import logging
import ssl
import threading
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from streaming.errors import ConfigurationError
from streaming.keyfiles.pem import load_trusted, new_client_context

logger = logging.getLogger(__name__)

_LOOK_EVERY_S = 5.0
"""How long a file that was replaced may go unnoticed; a look costs a stat for each."""

Stamp = tuple[int, int, int]
"""By what a file that was written again, or replaced, is told from what it was before."""


class RenewedContext:
    """Has a context for TLS that is made again when a file it is made of has changed; used from any
    thread.

    What cannot be used, as a file that is half there, leaves the context as it was, and is tried
    again at each look. Connections that are open stay as they are.
    """

    def __init__(
        self,
        make: Callable[[], ssl.SSLContext],
        files: Iterable[str] = (),
        check: Callable[[], int | None] = lambda: None,
    ) -> None:
        """Make it for the first time; raises what `make` does.

        make: raises ConfigurationError when a file cannot be used. files: their paths, "" for one
        that is not configured. check: raises ConfigurationError when what is in them would not do
        for another reason; returns when their certificate ends, ms since the epoch.
        """
        self._make = make
        self._files = [Path(one) for one in files if one]
        self._check = check
        self._lock = threading.Lock()
        self._stamps = self._look()  # first: what changes while it is made is seen at the next look
        self._context, self._ends_ms = make(), check()
        self._next_look_s = time.monotonic() + _LOOK_EVERY_S
        self._refused = ""

    @property
    def outdated(self) -> bool:
        """Whether it is still of files as they were before, since what they became is of no use."""
        return bool(self._refused)

    @property
    def ends_ms(self) -> int | None:
        """When the certificate ends that is shown now, as `check` says."""
        self.current()
        return self._ends_ms

    def current(self) -> ssl.SSLContext:
        """Return what a connection that begins now is to be secured with."""
        now_s = time.monotonic()
        if now_s >= self._next_look_s and self._lock.acquire(blocking=False):
            try:
                self._next_look_s = now_s + _LOOK_EVERY_S
                self._renew()
            finally:
                self._lock.release()
        return self._context

    def wrap_socket(self, *args: Any, **kwargs: Any) -> ssl.SSLSocket:
        """Secure a socket, as `ssl.SSLContext.wrap_socket`; for clients that want to do so."""
        return self.current().wrap_socket(*args, **kwargs)

    def _renew(self) -> None:
        stamps = self._look()
        if stamps == self._stamps:
            self._refused = ""  # what it is made of is back
            return
        try:
            made, ends_ms = self._make(), self._check()
        except ConfigurationError as error:
            if str(error) != self._refused:
                logger.error("%s; until then TLS is as before", error)
            self._refused = str(error)
        else:
            logger.info("TLS: read %s again", ", ".join(map(str, self._files)))
            self._context, self._ends_ms = made, ends_ms
            self._stamps, self._refused = stamps, ""

    def _look(self) -> list[Stamp | None]:
        return [_stamp(one) for one in self._files]


def https_context(setting: str, trusted: str) -> RenewedContext:
    """Return what servers are asked with by HTTPS. trusted: a file with who signs for them, "" for
    whom this machine trusts.

    Raises ConfigurationError naming the setting.
    """

    def make() -> ssl.SSLContext:
        context = new_client_context("https")
        load_trusted(context, setting, trusted)
        return context

    return RenewedContext(make, [trusted])


def _stamp(file: Path) -> Stamp | None:
    try:
        found = file.stat()
    except OSError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns
