"""Where things are in a data folder."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class DataDir:
    """The data folder of one helmstream; docs/data-folder.md describes it."""

    root: Path

    @property
    def events(self) -> Path:
        """The event log, written by the front."""
        return self.root / "events"

    @property
    def decisions(self) -> Path:
        """The decision log, written by the job."""
        return self.root / "decisions"

    @property
    def outcomes(self) -> Path:
        """The outcome log (persisted, confirmed), written by the job."""
        return self.root / "outcomes"

    @property
    def checkpoint(self) -> Path:
        """Spark's checkpoint."""
        return self.root / "checkpoint"

    @property
    def job_lock(self) -> Path:
        """Locked by the process that is the job."""
        return self.root / "job.lock"

    @property
    def link(self) -> Path:
        """The Unix socket on which the front waits for the job."""
        return self.root / "link.sock"

    @property
    def pending(self) -> Path:
        """The brokers that have not confirmed everything."""
        return self.root / "pending.json"
