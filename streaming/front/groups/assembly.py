"""Builds the parts of the front that coordinate groups, wires them, and starts them if that is
enabled.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from state.event_kinds import EventKind
from streaming.front.event_loop import report_failure
from streaming.front.groups.coordination import GroupCoordination
from streaming.front.groups.sessions import Sessions
from streaming.gateway.calls import AtOnce, Handler, WithoutTask
from streaming.gateway.groups.apis import group_apis
from streaming.gateway.groups.requests import GroupRequests
from streaming.gateway.groups.transactions import Producing, Transactions
from streaming.gateway.ports import DecisionClient, PartitionsView
from streaming.image.cluster_image import ClusterImage
from streaming.internal_topics import GROUP_TOPIC
from streaming.log.api import NewRecord
from streaming.log.events import AppendEvents, event
from streaming.offsets.consumer_reads import ConsumerReads
from streaming.offsets.follower_reports import FollowerReports
from streaming.offsets.history import History
from streaming.offsets.isr_maintenance import IsrMaintenance
from streaming.offsets.leader import OffsetsLeader
from streaming.offsets.node_role import NodeRole
from streaming.offsets.replica_epochs import ReplicaEpochs
from streaming.offsets.replica_fetch import ReplicaFetch
from streaming.offsets.take_over import TakeOver
from streaming.offsets.txn_markers import TxnMarkers
from streaming.offsets.txn_verification import TxnVerification
from streaming.process.counters import Counters
from streaming.process.wall_clock import wall_clock_ms
from streaming.security.connector import Connector
from streaming.settings import Settings
from streaming.wire.apis import ApiKey

_EPOCHS_TOLD_SINCE = (2, 7)
"""The inter-broker protocol from which on all brokers say where a leader epoch ended (Fetch 12)."""

_STATIC_MEMBERS_SINCE = (2, 3)
"""The inter-broker protocol from which on all brokers know group.instance.id (KIP-345)."""


class Groups:
    """The parts that work when groups.takeover.enable is true, on the front's event loop."""

    def __init__(
        self,
        settings: Settings,
        decision_client: DecisionClient,
        append: AppendEvents,
        view: PartitionsView,
        log_time_ms: Callable[[], int],
        *,
        node_role: NodeRole,
        topic_exists: Callable[[str], bool],
        min_insync_replicas: Callable[[str], int | None],
        counters: Counters,
    ) -> None:
        """Make the parts; `start` lets them work. log_time_ms: the clock that events' times are of.
        topic_exists: whether ZooKeeper may have one; min_insync_replicas: a topic's, None while
        it was never read.
        """
        self._enabled = settings.groups_takeover_enable
        self._static_members = settings.inter_broker_protocol >= _STATIC_MEMBERS_SINCE
        self._append = append
        self._view = view
        timeout_s = settings.request_timeout_ms / 1000
        loop = asyncio.get_running_loop()
        self.leader = OffsetsLeader(loop.time, lambda: min_insync_replicas(GROUP_TOPIC))
        listener, connector = settings.controller_listener, Connector.of(settings)
        epochs_told = settings.inter_broker_protocol >= _EPOCHS_TOLD_SINCE
        self._history = History(
            self.leader, view.image, listener, connector, timeout_s, epochs_told=epochs_told
        )
        node_id = settings.controller_id
        self._verification = TxnVerification(view, node_id, listener, connector)
        transactions = Transactions(self._verify)
        self._markers = TxnMarkers(
            self.leader, transactions.settled, self._transaction_completed, wall_clock_ms
        )
        self._sessions = Sessions(loop, append, log_time_ms, decides=node_role.decides)
        self._coordination = GroupCoordination(
            settings,
            self.leader,
            self._history,
            append,
            self._sessions,
            node_role=node_role,
            topic_exists=topic_exists,
            counters=counters,
        )
        lag_max_s = settings.replica_lag_time_max_ms / 1000
        self._take_over = TakeOver(
            self.leader,
            decision_client,
            IsrMaintenance(self.leader, decision_client, lag_max_s=lag_max_s, timeout_s=timeout_s),
            self._coordination,
            node_role=node_role,
            counters=counters,
            timeout_s=timeout_s,
        )
        self._requests = GroupRequests(
            self._coordination, timeout_s, settings.groups_max, transactions
        )
        self._tasks: list[asyncio.Task[None]] = []

    def handlers(self) -> Mapping[int, Handler | AtOnce | WithoutTask]:
        """Return what the gateway serves because of groups."""
        if not self._enabled:
            return {}
        history = self._history
        find_committed = None if history.epochs_told else history.committed
        reports = FollowerReports(self.leader, history.epoch_end, find_committed)
        consumers = ConsumerReads(self.leader, self._view.image, history)
        fetch = ReplicaFetch(self.leader, self._view.image, reports, history.read, consumers)
        epochs = ReplicaEpochs(self.leader, reports, history.log_ends, consumers)
        return {
            **group_apis(self._requests, static_members=self._static_members),
            ApiKey.FETCH: fetch.handle,
            ApiKey.LIST_OFFSETS: consumers.list_offsets,
            ApiKey.OFFSET_FOR_LEADER_EPOCH: epochs.handle,
            ApiKey.WRITE_TXN_MARKERS: self._markers.handle,
        }

    def heartbeats_before(self, records: Sequence[NewRecord]) -> Sequence[NewRecord]:
        """Return the events to append before these: last-heard times of members."""
        return self._sessions.heartbeats_before(records)

    def look_at(self, image: ClusterImage, gone: Collection[str]) -> None:
        """Take an image that may have changed, and the topics that ceased to exist."""
        if self._enabled:
            self.leader.look_at(image, self._view.partition_count(GROUP_TOPIC))
            self._coordination.look_at(image, gone)
            if GROUP_TOPIC in gone or self.leader.logs.keys() - self.leader.facts.keys():
                # What was led is no more: a topic of that name is another one.
                self._take_over.restart()

    def decided(self, decisions: Sequence[tuple[int, bytes]]) -> None:
        """Take change_group decisions (event offset, body) in order."""
        self._coordination.decisions.apply(decisions)

    def batch_completed(self, end_offset: int) -> None:
        """Take how far the job has decided."""
        self._coordination.batch_completed(end_offset)

    def job_gone(self) -> None:
        """Fail pending requests: no job is left to decide them."""
        self._coordination.job_gone()

    def job_came_back(self) -> None:
        """Take everything over again: what was decided meanwhile may not have come here."""
        self._take_over.restart()

    def role_lost(self) -> None:
        """Fail pending requests: another node coordinates now. A claim that follows at once takes
        everything over again too.
        """
        self._coordination.role_lost()
        self._take_over.restart()

    @property
    def waiting(self) -> int:
        """Return how many requests about groups wait for a decision."""
        return self._coordination.waiting

    def status(self) -> dict[str, Any]:
        """Return how many groups there are, by state too, what became of them, and how far each
        partition is with whom.
        """
        groups, not_loaded = self._coordination.image.groups, self._take_over.failures
        return {
            "enabled": self._enabled,
            "groups": len(groups),
            "states": Counter(group.state for group in groups.values()),
            **self._coordination.figures.status(),
            "partitions": {
                log.partition: {
                    "phase": str(self._coordination.phase(log.partition)),
                    "epoch": log.epoch,
                    "end_offset": log.end,
                    "high_watermark": log.high_watermark,
                    "memory_bytes": log.memory_bytes,
                    "not_loaded": not_loaded.get(log.partition),
                    "refuses_commits": self.leader.refusal(log.partition),
                }
                for log in self.leader.logs.values()
            },
        }

    def start(self, on_failure: Callable[[BaseException], None]) -> None:
        """Begin to take groups over; on_failure is called with what must not happen."""
        if self._enabled:
            for work in (
                self._take_over.run(),
                self._coordination.expiry.run(),
                self._coordination.topics.run(),
            ):
                task = asyncio.create_task(work)
                task.add_done_callback(lambda done: report_failure(done, on_failure))
                self._tasks.append(task)

    async def stop(self) -> None:
        """Stop leading. Failures were reported when they happened: they end the whole front."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._history.close()
        await self._verification.close()

    async def _verify(self, producing: Producing) -> int:
        """Return what stands against a commit: its transaction's coordinator says so, or a newer
        producer was here.
        """
        error = await self._verification.verify(producing)
        log = self.leader.logs.get(producing.partition)
        if error or log is None:
            return error
        return log.producers.commit_error(producing.producer_id, producing.producer_epoch)

    async def _transaction_completed(
        self, producer_id: int, committed: bool, partitions: list[int]
    ) -> None:
        body = {"producer_id": producer_id, "committed": committed, "partitions": partitions}
        appended = self._append([event(EventKind.TRANSACTION_COMPLETED, body)])
        await asyncio.wrap_future(appended)
