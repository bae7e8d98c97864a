"""What the front does when its job comes, goes, or gets on."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from streaming.front.control import ControlServer
from streaming.front.event_log import EventLog
from streaming.front.groups.assembly import Groups
from streaming.front.lease_watch import LeaseWatch
from streaming.front.present_term import PresentTerm
from streaming.front.unclean_recovery import UncleanRecovery
from streaming.image.cluster_image import ClusterImage
from streaming.link.from_job import BatchCompleted, ImageTold
from streaming.link.pause import Pause

if TYPE_CHECKING:
    from streaming.front.metrics import MetricsServer

logger = logging.getLogger(__name__)


class JobReactions:
    """Passes on what the job does to the parts of the front that it concerns (a JobListener)."""

    def __init__(
        self,
        log: EventLog,
        lease: LeaseWatch,
        control: ControlServer,
        groups: Groups,
        term: PresentTerm,
        *,
        recovery: UncleanRecovery,
        metrics: MetricsServer | None,
    ) -> None:
        """Must be made on the event loop on which the job is heard; metrics None: not served."""
        self._loop = asyncio.get_running_loop()
        self._log = log
        self._lease = lease
        self._control = control
        self._groups = groups
        self._term = term
        self._recovery = recovery
        self._metrics = metrics
        self._retained_from = 0

    def job_connected(self) -> None:
        """Tell the lease."""
        self._lease.job_connected()

    def job_gone(self) -> None:
        """Fail requests about groups that only a job decides; the lease runs from now on."""
        self._groups.job_gone()
        self._lease.job_gone()

    def snapshot(self, image: ClusterImage | None, told: ImageTold, pause: Pause | None) -> None:
        """Take what a job has folded; for one that knows of no election all is loaded again.

        The image may be a batch behind ZooKeeper, of which the job before told us more: what its
        ISRs say holds for no log that is led.
        """
        self._groups.job_came_back()
        if image is not None:
            self._groups.look_at(image, ())
        if told.without_term:
            self._load_again(told, pause)
        self._lease.folded(told.end_offset)

    def decided(self, image: ClusterImage | None, gone: Collection[str]) -> None:
        """Let the groups' part see the image, and the topics that ceased to exist."""
        if image is not None:
            self._groups.look_at(image, gone)

    def log_ends_asked(self, block: bytes | memoryview) -> None:
        """Have brokers asked."""
        self._recovery.ask(block)

    def groups_decided(self, decisions: Sequence[tuple[int, bytes]]) -> None:
        """Take decisions about groups, (event offset, body) in order."""
        self._groups.decided(decisions)

    def batch_completed(self, batch: BatchCompleted) -> None:
        """Take how far the job is, and let go of events that nobody needs any more."""
        self._groups.batch_completed(batch.end_offset)
        if self._metrics is not None:
            self._metrics.batch_completed(batch)
        self._lease.batch_completed(batch.end_offset)
        if batch.batch_id is not None:
            self.query_folded()
        if batch.fenced:
            self._term.suspect()
        if batch.retain_from > self._retained_from:
            self._retained_from = batch.retain_from
            self._loop.run_in_executor(None, self._log.truncate_before, batch.retain_from)

    def query_folded(self) -> None:
        """Take that the query works, if only on what was carried out before."""
        self._lease.query_folded()

    def reobserve(self, topics: Sequence[str], unwritable: Sequence[str]) -> None:
        """Have topics read again that the job took back."""
        self._term.observe_again(topics, unwritable)

    def _load_again(self, told: ImageTold, pause: Pause | None) -> None:
        """Have everything loaded again, unless the job will fold the present load: it may have
        begun there before. A pause that the job does not know of comes before the load.
        """
        logger.warning("the job knows of no election: it needs a load that begins behind it")
        begins_at = told.end_offset
        unknown = None if told.paused else pause
        if unknown is not None and self._control.pause_again(begins_at, unknown.reason):
            begins_at = self._log.end_offset()  # nothing is to be decided before the pause
        self._term.load_again(begins_at - 1)
