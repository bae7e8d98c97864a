"""How long the controller role may be held while the job does not fold what happens."""

from __future__ import annotations

from collections import deque


class Lease:
    """Runs out when the job is away for lease_s, or events wait for that long without a batch.

    Pure: the caller says what happened and when (seconds of one clock that never goes back). Held
    too long, the role would do harm: ISRs cannot shrink and acks=all stalls.
    """

    def __init__(self, lease_s: float, end_offset: int, now_s: float) -> None:
        """Start without a job, on a log that ends at end_offset; nothing is known to be folded."""
        self._lease_s = lease_s
        self._end = end_offset
        self._completed = 0
        self._waiting: deque[tuple[int, float]] = deque()  # (end offset, when it was reached)
        if end_offset:
            self._waiting.append((end_offset, now_s))
        self._away_since_s: float | None = now_s
        self._stalled_since_s: float | None = now_s if end_offset else None
        self._doubted = False

    @property
    def completed(self) -> int:
        """One past the last event of the last completed batch."""
        return self._completed

    @property
    def lag(self) -> int:
        """How many events wait to be folded."""
        return max(self._end - self._completed, 0)

    def oldest_waiting_s(self, now_s: float) -> float:
        """Return for how long the oldest event that is not folded has waited; 0 when none does.

        What was in the log before us counts from our start.
        """
        return now_s - self._waiting[0][1] if self._waiting else 0.0

    @property
    def job_healthy(self) -> bool:
        """Whether a job is connected, has folded everything, and is not in doubt."""
        return self._away_since_s is None and self.lag == 0 and not self._doubted

    def doubt_job(self) -> None:
        """The role was given up for want of a job: one whose query never comes about could cost it
        again and again, by what it folds in its head start.
        """
        self._doubted = True

    def query_folded(self) -> None:
        """The query itself has folded a batch, so there is no doubt of the job."""
        self._doubted = False

    def job_connected(self) -> None:
        """A job is there."""
        self._away_since_s = None

    def job_gone(self, now_s: float) -> None:
        """The job's connection broke."""
        if self._away_since_s is None:
            self._away_since_s = now_s

    def appended(self, end_offset: int, now_s: float) -> None:
        """The log grew."""
        if end_offset > self._end:
            self._end = end_offset
            if self.lag:
                self._waiting.append((end_offset, now_s))
        if self.lag and self._stalled_since_s is None:
            self._stalled_since_s = now_s

    def batch_completed(self, end_offset: int, now_s: float) -> None:
        """A batch is complete up to an offset: that shows a living job, unless it was there before,
        as when a job that cannot write its checkpoint runs the same batch in life after life.
        """
        if end_offset > self._completed:
            self._stalled_since_s = now_s
        self.folded(end_offset)

    def folded(self, end_offset: int) -> None:
        """Take what a job that came had folded by then; it shows nothing of how it lives."""
        self._completed = max(self._completed, end_offset)
        while self._waiting and self._waiting[0][0] <= self._completed:
            self._waiting.popleft()
        if not self.lag:
            self._stalled_since_s = None

    def expires_s(self) -> float | None:
        """Return when the lease runs out if nothing happens before; None: never."""
        since = [s for s in (self._away_since_s, self._stalled_since_s) if s is not None]
        return min(since) + self._lease_s if since else None

    def expiry_reason(self, now_s: float) -> str | None:
        """Say why the lease has run out; None when it has not."""
        expires_s = self.expires_s()
        if expires_s is None or now_s < expires_s:
            return None
        if self._away_since_s is not None and now_s >= self._away_since_s + self._lease_s:
            return f"no job was connected for {self._lease_s:g} s"
        return f"{self.lag} events waited and no batch was completed for {self._lease_s:g} s"
