"""Where things are in a data folder."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from streaming.log.location import LogLocation, log_location


@dataclass(frozen=True, slots=True)
class DataDir:
    """The data folder of one helmstream; docs/data-folder.md describes it.

    event_log_url: of the topic that holds the event log, "" where the folder does.
    """

    root: Path
    event_log_url: str = ""

    @property
    def events(self) -> Path:
        """The folder of the event log, and of the lock of the front, which writes it."""
        return self.root / "events"

    @property
    def event_log(self) -> LogLocation:
        """Where the event log is: that folder, or a topic."""
        return log_location(self.event_log_url) if self.event_log_url else self.events

    @property
    def decisions(self) -> Path:
        """The decision log, written by the job."""
        return self.root / "decisions"

    @property
    def outcomes(self) -> Path:
        """The outcome log (persisted, delivered, confirmed), written by the job."""
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
    def shadow_mark(self) -> Path:
        """There when the folder is a shadow's: its logs are another controller's history."""
        return self.root / "shadow.mark"

    @property
    def shadow_report(self) -> Path:
        """What differed from the live controller, unless the shadow was told another file."""
        return self.root / "shadow-report.jsonl"

    @property
    def replaced_checkpoint(self) -> Path:
        """The checkpoint that `helmstream checkpoint` replaced."""
        return self.root / "checkpoint.before"

    @property
    def unfinished_checkpoint(self) -> Path:
        """The checkpoint that `helmstream checkpoint` is making."""
        return self.root / "checkpoint.new"

    @property
    def printed(self) -> Path:
        """The folder of what front, job and shadow print."""
        return self.root / "log"

    @property
    def embedded(self) -> Path:
        """The embedded ZooKeeper and brokers."""
        return self.root / "embedded"

    @property
    def link(self) -> Path:
        """The Unix socket on which the front waits for the job."""
        return self.root / "link.sock"

    @property
    def status_socket(self) -> Path:
        """The Unix socket on which the front says how it is."""
        return self.root / "front.sock"

    @property
    def control_socket(self) -> Path:
        """The Unix socket on which the front takes orders."""
        return self.root / "control.sock"

    @property
    def sockets(self) -> tuple[Path, ...]:
        """All Unix sockets."""
        return self.link, self.status_socket, self.control_socket

    @property
    def pending(self) -> Path:
        """The brokers that have not confirmed everything."""
        return self.root / "pending.json"
