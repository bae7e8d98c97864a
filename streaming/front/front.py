"""The front put together: every part made once, wired, started and stopped in order."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any

from state.events import EventKind
from streaming.control_socket import control_path
from streaming.front.authority import ControllerRole, RolePhase
from streaming.front.clock import Clock
from streaming.front.control import ControlServer
from streaming.front.decider import RequestDecider
from streaming.front.event_log import EventLog
from streaming.front.gateway import FrontGateway
from streaming.front.groups import Groups
from streaming.front.job_feed import JobFeed
from streaming.front.lease import Lease
from streaming.front.link_server import LinkServer
from streaming.front.rivals import Rivals
from streaming.front.signals import Signals
from streaming.front.status import Seen, StatusServer, image_status
from streaming.front.term import Term
from streaming.image.cluster_image import ClusterImage
from streaming.log.api import LogWriter, NewRecord
from streaming.log.embedded import wall_clock_ms
from streaming.observers.ports import Counters, event
from streaming.paths import DataDir
from streaming.settings import Settings
from streaming.status_socket import socket_path

if TYPE_CHECKING:
    from streaming.front.metrics import MetricsServer

logger = logging.getLogger(__name__)

_STOP_TIMEOUT_S = 15.0
_BIND_TIMEOUT_S = 10.0
_STILL_PAUSED = "the job came back without its checkpoint during a pause"


class Front:
    """All parts of the front on one event loop, and the controller's thread beside it.

    It is the gateway's ClusterView and the term's TermListener.
    """

    def __init__(self, settings: Settings, writer: LogWriter, now_ms: Callable[[], int]) -> None:
        """Make the parts on the running event loop that will serve them; now_ms: writer's clock."""
        self._settings = settings
        self._loop = asyncio.get_running_loop()
        self._counters: Counters = Counter()
        self._failure: BaseException | None = None
        self._stopped = asyncio.Event()
        self._seen = Seen()
        self._retained_from = 0
        self._lease_handle: asyncio.TimerHandle | None = None
        self._log = EventLog(
            writer,
            on_grown=lambda end: self._soon(self._log_grew, end),
            on_failed=lambda error: self._soon(self._fail, error),
        )
        lease_s = settings.controller_lease_ms / 1000
        self._lease = Lease(lease_s, self._log.end_offset(), self._loop.time())
        self._signals = Signals()
        self._clock = Clock(self._loop, self._append, now_ms)
        self._decider = RequestDecider(
            self._append, self.is_controller, self._counters, lambda: self._feed.paused
        )
        self._feed = JobFeed(
            self._clock,
            self._decider,
            self._counters,
            wall_clock_ms,
            on_presence=self._job_presence,
            on_batch=self._batch_completed,
            on_folded=self._folded,
            on_reobserve=self._observe_again,
            on_image=self._image_changed,
            on_groups=self._groups_decided,
        )
        self._link = LinkServer(DataDir(settings.data_dir).link, self._append, self._feed)
        self._status = StatusServer(socket_path(settings.data_dir), self.status)
        self._control = ControlServer(
            control_path(settings.data_dir), self._append, self._load_again
        )
        self._metrics = _metrics_server(settings, self.status)
        self._groups = Groups(
            settings,
            self._decider,
            self._append,
            self.image,
            now_ms,
            is_controller=self.is_controller,
            has_job=lambda: self._feed.progress.pid is not None,
            topic_exists=self.topic_exists,
            counters=self._counters,
        )
        self._gateway = FrontGateway(settings, self, self._decider, self._groups.handlers())
        self._term: Term | None = None
        self._authority = ControllerRole(
            self._log,
            self._signals,
            new_term=self._new_term,
            on_phase=lambda phase: self._soon(self._phase_entered, phase),
            on_failure=lambda error: self._soon(self._fail, error),
            counters=self._counters,
        )

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

    def is_controller(self) -> bool:
        """Return whether requests may be decided now."""
        return self._authority.is_controller()

    def topic_exists(self, name: str) -> bool:
        """Return whether ZooKeeper may have a topic, as far as the present term has read it."""
        return self._term is None or self._term.topic_exists(name)

    def needs_listeners(self) -> bool:
        """Return whether the gateway waits for the brokers' listener names."""
        return not self._gateway.started

    def endpoints(self, broker_listeners: Sequence[str]) -> list[dict[str, Any]]:
        """Return where brokers and clients reach us; on the controller's thread."""
        if not self._gateway.started:
            starting = self._gateway.start(broker_listeners)
            asyncio.run_coroutine_threadsafe(starting, self._loop).result(_BIND_TIMEOUT_S)
        return self._gateway.endpoints()

    def cluster_id_found(self, cluster_id: str) -> None:
        """Take the cluster's id, on any thread."""
        self._seen.cluster_id = cluster_id

    def holder_seen(self, controller_id: int | None) -> None:
        """Take who holds /controller, on any thread."""
        self._seen.holder = controller_id

    def deletions_counted(self, topics: int) -> None:
        """Take how many topics are to be deleted, on any thread."""
        self._seen.topics_to_delete = topics

    def status(self) -> dict[str, Any]:
        """Return what `helmstream status` shows; docs/status.md says what each field means."""
        claim, progress = self._authority.claim, self._feed.progress
        return {
            "role": str(self._authority.phase),
            "paused": self._feed.paused,
            "epoch": None if claim is None else claim.epoch,
            "in_doubt": claim is not None and self._signals.in_doubt,
            "controller": self._seen.holder,
            "cluster_id": self._seen.cluster_id,
            "event_log": {
                "start_offset": self._log.start_offset(),
                "end_offset": self._log.end_offset(),
            },
            "job": {
                "pid": progress.pid,
                "completed_offset": self._lease.completed,
                "lag": self._lease.lag,
                "oldest_waiting_ms": round(self._lease.oldest_waiting_s(self._loop.time()) * 1000),
                "last_batch_time_ms": progress.batch_time_ms,
                "last_batch": progress.batch,
                **progress.totals,
            },
            **image_status(self._feed.image),
            "topics_to_delete": self._seen.topics_to_delete,
            "timers": dict(self._clock.armed),
            "waiting_requests": self._decider.waiting,
            "gateway": self._gateway.counters(),
            "groups": self._groups.status(),
            "counters": dict(sorted(self._counters.items())),
            "elections": dict(progress.elections),
            "delivery": progress.delivery,
            "queue_lengths": progress.queue_lengths,
        }

    async def _start(self) -> None:
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
        self._watch_lease()
        self._authority.start()
        self._groups.start(self._fail)

    async def _stop(self) -> None:
        """Give the role back first: brokers elect at once."""
        unscraped = None
        if self._metrics is not None:
            unscraped = self._loop.run_in_executor(None, self._metrics.stop)
        if not await self._loop.run_in_executor(None, self._authority.stop, _STOP_TIMEOUT_S):
            logger.error("the controller's thread did not end within %g s", _STOP_TIMEOUT_S)
        if self._lease_handle is not None:
            self._lease_handle.cancel()
        self._clock.clear()
        await self._groups.stop()
        await self._gateway.stop()
        await self._link.stop()
        await self._control.stop()
        await self._status.stop()
        if unscraped is not None:
            await unscraped

    def _append(self, records: Sequence[NewRecord]) -> Future[range]:
        # By itself: who appends asks at which offsets the records are.
        if before := self._groups.told_before(records):
            self._log.append_async(before)
        return self._log.append_async(records)

    def _new_term(self, rivals: Rivals) -> Term:
        self._term = Term(
            self._settings, self._log, self._signals, self, self._counters, rivals=rivals
        )
        return self._term

    def _soon(self, call: Callable[..., None], *arguments: object) -> None:
        """Call on the event loop; from the log's and the controller's threads."""
        self._loop.call_soon_threadsafe(call, *arguments)

    def _fail(self, error: BaseException) -> None:
        self._failure = self._failure or error
        self._stopped.set()

    def _phase_entered(self, phase: RolePhase) -> None:
        logger.info("the controller role: %s", phase)
        if phase in {RolePhase.RESIGNING, RolePhase.LOST}:
            self._clock.clear()  # the machines disarm theirs on the same event
            self._decider.fail_all()
            self._groups.role_lost()

    def _log_grew(self, end_offset: int) -> None:
        self._lease.appended(end_offset, self._loop.time())
        self._lease_changed()

    def _job_presence(self, connected: bool) -> None:
        if connected:
            self._lease.job_connected()
        else:
            self._lease.job_gone(self._loop.time())
            self._groups.job_gone()
        self._lease_changed()

    def _groups_decided(self, decisions: Sequence[tuple[int, bytes]]) -> None:
        self._groups.decided(decisions)

    def _image_changed(
        self, image: ClusterImage | None, fresh: bool, gone: Collection[str]
    ) -> None:
        if image is not None:
            self._groups.look_at(image, gone)
        if fresh:
            self._groups.job_came_back()

    def _batch_completed(self, head: dict[str, Any]) -> None:
        self._lease.batch_completed(head["end_offset"] or 0, self._loop.time())
        self._groups.batch_completed(head["end_offset"] or 0)
        if self._metrics is not None:
            self._metrics.batch_completed(head)
        self._lease_changed()
        if head.get("fenced") and self._term is not None:
            self._term.suspect()
        retain_from = head.get("retain_from", 0)
        if retain_from > self._retained_from:
            self._retained_from = retain_from
            self._loop.run_in_executor(None, self._log.truncate_before, retain_from)

    def _folded(self, end_offset: int, without_term: bool) -> None:
        if without_term:
            logger.warning("the job knows of no election: everything is loaded again")
            if self._feed.paused:
                self._append([event(EventKind.CONTROLLER_PAUSED, {"reason": _STILL_PAUSED})])
            self._load_again()
        self._lease.folded(end_offset)
        self._lease_changed()

    def _observe_again(self, topics: list[str], unwritable: list[str]) -> None:
        if self._term is not None:
            self._term.observe_again(topics, unwritable)

    def _load_again(self) -> None:
        if self._term is not None:
            self._term.load_again()

    def _lease_changed(self) -> None:
        self._signals.set_job_healthy(self._lease.job_healthy)
        if self._lease_handle is None:
            self._watch_lease()

    def _watch_lease(self) -> None:
        """Look at the lease when it would run out; appends that come meanwhile cost nothing."""
        self._lease_handle = None
        now_s = self._loop.time()
        reason = self._lease.expiry_reason(now_s)
        if reason is not None and self._authority.claim is not None:
            self._signals.give_up(reason)
            self._decider.fail_all()
        expires_s = self._lease.expires_s()
        if expires_s is not None and reason is None:
            self._lease_handle = self._loop.call_at(expires_s, self._watch_lease)


def _metrics_server(
    settings: Settings, status: Callable[[], dict[str, Any]]
) -> MetricsServer | None:
    if not settings.metrics_port:
        return None
    # A front without metrics starts sooner: the library brings an HTTP server.
    from streaming.front.metrics import MetricsServer  # noqa: PLC0415

    return MetricsServer(settings.metrics_host, settings.metrics_port, status)
