"""The front put together: every part made once, wired, started and stopped in order."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any

from state.event_kinds import EventKind
from streaming.front.clock import Clock
from streaming.front.control import ControlServer
from streaming.front.controller_role import ControllerRole, RolePhase
from streaming.front.event_log import EventLog
from streaming.front.event_loop import call_from_thread
from streaming.front.gateway import FrontGateway
from streaming.front.groups.assembly import Groups
from streaming.front.job_feed import JobFeed
from streaming.front.job_progress import JobProgress
from streaming.front.job_reactions import JobReactions
from streaming.front.lease_watch import LeaseWatch
from streaming.front.link_server import LinkServer
from streaming.front.log_watch import LogWatch
from streaming.front.pending_requests import PendingRequests
from streaming.front.present_term import PresentTerm
from streaming.front.rivals import Rivals
from streaming.front.seen import Seen
from streaming.front.shutdown_requests import ShutdownRequests
from streaming.front.signals import Signals
from streaming.front.status import StatusServer, front_status
from streaming.front.term import Term
from streaming.front.unclean_recovery import UncleanRecovery
from streaming.gateway.passing.brokers import Brokers
from streaming.gateway.passing.log_ends import LogEnds
from streaming.gateway.passing.pool import PassingLimits
from streaming.image.cluster_image import ClusterImage
from streaming.log.api import LogWriter, NewRecord
from streaming.log.events import event
from streaming.offsets.node_role import NodeRole
from streaming.paths import DataDir
from streaming.process.counters import Counters
from streaming.process.wall_clock import wall_clock_ms
from streaming.security.connector import Connector
from streaming.settings import Settings

if TYPE_CHECKING:
    from streaming.front.metrics import MetricsServer

logger = logging.getLogger(__name__)

_STOP_TIMEOUT_S = 15.0
_LOG_ENDS_TIMEOUT_S = 5.0


class Front:
    """All parts of the front on one event loop, and the controller's thread beside it.

    It is the gateway's ClusterView.
    """

    def __init__(self, settings: Settings, writer: LogWriter, now_ms: Callable[[], int]) -> None:
        """Make the parts on the running event loop that will serve them; now_ms: writer's clock."""
        self._settings = settings
        self._loop = asyncio.get_running_loop()
        self._counters: Counters = Counter()
        self._failure: BaseException | None = None
        self._stopped = asyncio.Event()
        self._seen = Seen()
        self._progress = JobProgress()
        self._term = PresentTerm()
        self._log = EventLog(
            writer,
            on_grown=lambda end: self._soon(self._lease.log_grew, end),
            on_failed=lambda error: self._soon(self._fail, error),
        )
        self._signals = Signals()
        lease_s = settings.controller_lease_ms / 1000
        self._log_watch = LogWatch(self._log, lease_s, self._term.close)
        self._lease = LeaseWatch(
            self._loop,
            lease_s,
            self._log.end_offset(),
            on_healthy=self._signals.set_job_healthy,
            on_expired=self._lease_expired,
        )
        self._clock = Clock(self._loop, self._append, now_ms)
        self._pending = PendingRequests(
            self._append, self.is_controller, self._counters, lambda: self._progress.pause
        )
        folders = DataDir(settings.data_dir)
        self._status = StatusServer(folders.status_socket, self.status)
        self._control = ControlServer(
            folders.control_socket,
            self._append,
            self._log.end_offset(),
            on_resumed=self._term.load_again,
            is_paused_after=self._progress.is_paused_after,
        )
        self._metrics = _metrics_server(settings, self.status, now_ms)
        log_ends = self._make_log_ends()
        timeout_s = settings.unclean_recovery_timeout_ms / 1000
        self._recovery = UncleanRecovery(log_ends, self.image, self._append, timeout_s)
        self._groups = self._make_groups(now_ms)
        self._feed = self._make_feed()
        self._link = LinkServer(folders.link, self._append, self._feed)
        requests = ShutdownRequests(self._pending, self._counters)
        self._gateway = FrontGateway(
            settings,
            self,
            requests,
            self._groups.handlers(),
            log_ends if settings.unclean_recovery_manager_enabled else None,
        )
        self._role = self._make_role()

    async def run(self, stopped: asyncio.Event) -> None:
        """Serve until `stopped`; raises what made a part of the front fail."""
        self._stopped = stopped
        try:
            await self._start()
            await stopped.wait()
        finally:
            await self._stop()
        if self._failure is not None:
            raise self._failure

    @property
    def cluster_id(self) -> str:
        """The cluster's id, "" until a broker created it."""
        return self._seen.cluster_id

    def image(self) -> ClusterImage | None:
        """Return the cluster as decided so far."""
        return self._feed.image

    def partition_count(self, topic: str) -> int:
        """Return how many partitions a topic has, as ZooKeeper and the image say."""
        decided = 0 if self._feed.image is None else self._feed.image.partitions_at_least(topic)
        return max(self._term.partition_count(topic), decided)

    def deprioritized(self) -> tuple[int, ...]:
        """Return the brokers that lead where nobody else can (leader.deprioritized.list)."""
        return self._term.deprioritized()

    def is_controller(self) -> bool:
        """Return whether requests may be decided now."""
        return self._role.is_controller()

    def is_current(self) -> bool:
        """Return whether the image is of this term or of the one before: each claim counts the
        epoch up, by whomever.
        """
        claim, image = self._role.claim, self._feed.image
        if claim is None or image is None:
            return False
        return self.is_controller() and image.controller_epoch >= claim.epoch - 1

    def status(self) -> dict[str, Any]:
        """Return what `helmstream status` shows; docs/status.md says what each field means."""
        return front_status(
            seen=self._seen,
            role=self._role,
            signals=self._signals,
            log=self._log,
            lease=self._lease.lease,
            now_s=self._loop.time(),
            progress=self._progress,
            image=self._feed.image,
            deprioritized=self._term.deprioritized(),
            listener=self._settings.controller_listener,
            checks_shutdowns=self._settings.controlled_shutdown_safety_check_enable,
            clock=self._clock,
            pending=self._pending,
            gateway=self._gateway,
            groups=self._groups,
            recovery=self._recovery,
            counters=self._counters,
        )

    def _make_log_ends(self) -> LogEnds:
        settings = self._settings
        limits = PassingLimits(answer_timeout_s=_LOG_ENDS_TIMEOUT_S)
        brokers = Brokers(self, settings.controller_id, limits, Connector.of(settings))
        return LogEnds(brokers, settings.controller_listener)

    def _make_groups(self, now_ms: Callable[[], int]) -> Groups:
        return Groups(
            self._settings,
            self._pending,
            self._append,
            self,
            now_ms,
            node_role=NodeRole(
                self.is_controller, self._progress.has_job, self._progress.is_paused
            ),
            topic_exists=self._term.topic_exists,
            min_insync_replicas=self._term.min_insync_replicas,
            counters=self._counters,
        )

    def _make_feed(self) -> JobFeed:
        reactions = JobReactions(
            self._log,
            self._lease,
            self._control,
            self._groups,
            self._term,
            recovery=self._recovery,
            metrics=self._metrics,
        )
        return JobFeed(
            self._progress,
            self._clock,
            self._pending,
            self._counters,
            wall_clock_ms,
            pauses_on=self._control.pauses_on,
            listener=reactions,
        )

    def _make_role(self) -> ControllerRole:
        return ControllerRole(
            self._log,
            self._signals,
            new_term=self._new_term,
            on_phase=lambda phase: self._soon(self._phase_entered, phase),
            on_failure=lambda error: self._soon(self._fail, error),
            counters=self._counters,
        )

    async def _start(self) -> None:
        self._log_watch.start()
        if self._log.end_offset():
            # A front that was killed could not say that its term is over.
            self._log.append([event(EventKind.CONTROLLER_RESIGNED, {"reason": "front started"})])
        if self._gateway.configured:
            await self._gateway.start(self._gateway.configured)
        await self._link.start()
        if self._metrics is not None:
            await self._loop.run_in_executor(None, self._metrics.start)
        await self._status.start()
        await self._control.start()
        self._lease.look()
        self._role.start()
        self._groups.start(self._fail)
        self._recovery.start(self._fail)

    async def _stop(self) -> None:
        """Give the role back first: brokers elect at once."""
        unscraped = None
        if self._metrics is not None:
            unscraped = self._loop.run_in_executor(None, self._metrics.stop)
        if not await self._loop.run_in_executor(None, self._role.stop, _STOP_TIMEOUT_S):
            logger.error("the controller's thread did not end within %g s", _STOP_TIMEOUT_S)
        self._lease.stop()
        self._clock.clear()
        await self._groups.stop()
        await self._gateway.stop()
        await self._recovery.stop()
        await self._link.stop()
        await self._control.stop()
        await self._status.stop()
        if unscraped is not None:
            await unscraped

    def _append(self, records: Sequence[NewRecord]) -> Future[range]:
        # By itself: who appends asks at which offsets the records are.
        if before := self._groups.heartbeats_before(records):
            self._log.append_async(before)
        return self._log.append_async(records)

    def _new_term(self, rivals: Rivals) -> Term:
        term = Term(
            self._settings,
            self._log,
            self._signals,
            self._gateway,
            self._counters,
            seen=self._seen,
            rivals=rivals,
        )
        return self._term.begin(term)

    def _soon(self, call: Callable[..., None], *arguments: object) -> None:
        """Call on the event loop; from the log's and the controller's threads."""
        call_from_thread(self._loop, call, *arguments)

    def _fail(self, error: BaseException) -> None:
        self._failure = self._failure or error
        self._stopped.set()

    def _phase_entered(self, phase: RolePhase) -> None:
        logger.info("the controller role: %s", phase)
        if phase in {RolePhase.RESIGNING, RolePhase.LOST}:
            self._clock.clear()  # the machines disarm theirs on the same event
            self._pending.fail_all()
            self._groups.role_lost()
            self._recovery.forget()

    def _lease_expired(self, reason: str) -> None:
        if self._role.is_under_way:
            self._lease.doubt_job()
            self._signals.give_up(reason)
            self._pending.fail_all()


def _metrics_server(
    settings: Settings, status: Callable[[], dict[str, Any]], now_ms: Callable[[], int]
) -> MetricsServer | None:
    if not settings.metrics_port:
        return None
    # A front without metrics starts sooner: the library brings an HTTP server.
    from streaming.front.metrics import MetricsServer  # noqa: PLC0415

    return MetricsServer(settings.metrics_host, settings.metrics_port, status, now_ms)
