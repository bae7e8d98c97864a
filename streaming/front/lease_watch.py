"""Keeps the lease on the event loop: says how the job is, and when the lease has run out."""

from __future__ import annotations

from collections.abc import Callable

from streaming.front.event_loop import Handle, Loop
from streaming.front.lease import Lease


class LeaseWatch:
    """Tells a lease what happened at the loop's time, and looks at it when it would run out.

    on_healthy(healthy) is called after everything that happens; on_expired(reason) when the lease
    has run out, and for as long as it has after everything that happens.
    """

    def __init__(
        self,
        loop: Loop,
        lease_s: float,
        end_offset: int,
        *,
        on_healthy: Callable[[bool], None],
        on_expired: Callable[[str], None],
    ) -> None:
        """Watch for no job yet, on a log that ends at end_offset; `look` begins."""
        self.lease = Lease(lease_s, end_offset, loop.time())
        self._loop = loop
        self._on_healthy = on_healthy
        self._on_expired = on_expired
        self._handle: Handle | None = None

    def look(self) -> None:
        """Look now, and whenever the lease would run out; appends that come meanwhile cost
        nothing.
        """
        self._handle = None
        reason = self.lease.expiry_reason(self._loop.time())
        if reason is not None:
            self._on_expired(reason)
        expires_s = self.lease.expires_s()
        if expires_s is not None and reason is None:
            self._handle = self._loop.call_at(expires_s, self.look)

    def stop(self) -> None:
        """Look no more."""
        if self._handle is not None:
            self._handle.cancel()

    def log_grew(self, end_offset: int) -> None:
        """The log grew."""
        self.lease.appended(end_offset, self._loop.time())
        self._changed()

    def job_connected(self) -> None:
        """A job is there."""
        self.lease.job_connected()
        self._changed()

    def job_gone(self) -> None:
        """The job's connection broke."""
        self.lease.job_gone(self._loop.time())
        self._changed()

    def batch_completed(self, end_offset: int) -> None:
        """A batch is complete up to an offset."""
        self.lease.batch_completed(end_offset, self._loop.time())
        self._changed()

    def doubt_job(self) -> None:
        """The role is given up for want of a job."""
        self.lease.doubt_job()
        self._on_healthy(self.lease.job_healthy)

    def query_folded(self) -> None:
        """The job's query has folded a batch."""
        self.lease.query_folded()
        self._changed()

    def folded(self, end_offset: int) -> None:
        """Take what a job that came had folded by then."""
        self.lease.folded(end_offset)
        self._changed()

    def _changed(self) -> None:
        self._on_healthy(self.lease.job_healthy)
        if self._handle is None:
            self.look()
