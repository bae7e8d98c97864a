"""The coordinator of groups in the front: has requests decided, loads partitions, resigns."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

from state.event_kinds import EventKind
from state.groups.change_bodies import Change, Timeouts
from state.groups.config import offsets_retention_ms
from state.groups.image import GroupImage
from state.groups.load import LoadedPartition
from state.groups.payloads.requests import Heartbeat
from state.groups.tables import CoordinatorPhase
from state.topic_partition import TopicPartition
from streaming.front.groups.committed_topics import CommittedTopics
from streaming.front.groups.decisions import GroupDecisions
from streaming.front.groups.direct_assignments import DirectAssignments
from streaming.front.groups.direct_commits import DirectCommits
from streaming.front.groups.direct_syncs import DirectSyncs
from streaming.front.groups.figures import GroupFigures
from streaming.front.groups.known_partitions import KnownPartitions
from streaming.front.groups.offsets_expiry import OffsetsExpiry
from streaming.front.groups.replies import GroupReplies
from streaming.front.groups.sessions import Sessions
from streaming.front.groups.terms import GroupTerms, election, resignation
from streaming.front.groups.view import CoordinatorView
from streaming.front.pending_requests import PendingReply, PendingRequests
from streaming.gateway.calls import Answer
from streaming.gateway.ports import NoJob, ReplyBody
from streaming.image.cluster_image import ClusterImage
from streaming.log.events import AppendEvents, event
from streaming.offsets.history import History
from streaming.offsets.leader import OffsetsLeader
from streaming.offsets.loading import fold_records
from streaming.offsets.node_role import NodeRole
from streaming.process.counters import Counters
from streaming.settings import Settings

logger = logging.getLogger(__name__)


_CHUNK_EVENTS = 1_000
_NO_JOB = "no job is connected"
_ABOUT_OFFSETS = frozenset(
    {
        EventKind.OFFSET_COMMIT_REQUESTED,
        EventKind.TXN_OFFSET_COMMIT_REQUESTED,
        EventKind.OFFSET_DELETE_REQUESTED,
        EventKind.DELETE_GROUP_REQUESTED,
    }
)


class GroupCoordination:
    """The front's side of groups; a GroupService and a Coordinator, on the front's event loop."""

    def __init__(
        self,
        settings: Settings,
        leader: OffsetsLeader,
        history: History,
        append: AppendEvents,
        sessions: Sessions,
        *,
        node_role: NodeRole,
        topic_exists: Callable[[str], bool],
        counters: Counters,
    ) -> None:
        """Coordinate nothing yet; topic_exists: whether ZooKeeper may have a topic."""
        self._config = coordinator_config(settings)
        self._leader = leader
        self._history = history
        self._append = append
        self._node_role = node_role
        self._counters = counters
        self._pending = PendingRequests(append, node_role.is_controller, counters)
        self._sessions = sessions
        self._terms = GroupTerms()
        self._folding = asyncio.Lock()
        self.decisions = GroupDecisions(
            leader,
            GroupReplies(self._pending.answer).answer,
            self._changed,
            self._refused,
            counters,
        )
        self._view = view = CoordinatorView(leader, self._terms, self.decisions, node_role)
        assignments = DirectAssignments(leader, append, view, self._changed)
        self._syncs = DirectSyncs(self._pending, sessions, view, assignments)
        self.known = KnownPartitions()
        self.figures = GroupFigures()
        self._commits = DirectCommits(
            leader,
            append,
            view,
            heard=self.heard,
            known=self.known,
            metadata_max=settings.offset_metadata_max_bytes,
        )
        self.topics = CommittedTopics(self.known, self._commits, append, view, topic_exists)
        self.expiry = OffsetsExpiry(
            self._commits.pause,
            append,
            view,
            settings.offsets_retention_check_interval_ms / 1000,
        )

    @property
    def image(self) -> GroupImage:
        """Return the groups as decided so far."""
        return self._view.image

    def partition_of(self, group: str) -> int:
        """Return the group's partition of __consumer_offsets, -1 while there are none."""
        return self._view.partition_of(group)

    def phase(self, partition: int) -> CoordinatorPhase:
        """Return what this node is for a partition."""
        return self._view.phase(partition)

    def refuses_commits(self, partition: int) -> bool:
        """Return whether a partition takes no commit now."""
        return self._leader.refusal(partition) is not None

    def phases(self) -> list[CoordinatorPhase]:
        """Return what this node is for each partition."""
        return self._view.phases()

    def look_at(self, image: ClusterImage, gone: Collection[str]) -> None:
        """Take an image that may have changed, and the topics that ceased to exist."""
        self.known.look_at(image)
        self.topics.deleted(gone)

    def unknown(self, group: str, partitions: Iterable[TopicPartition]) -> list[TopicPartition]:
        """Return the partitions that do not exist, and no offset is committed of."""
        return self.known.unknown(self.partition_of(group), partitions)

    @property
    def waiting(self) -> int:
        """Return how many requests wait for a decision."""
        return self._pending.waiting

    async def submit(
        self, kind: EventKind, group: str, payload: dict[str, Any], timeout_s: float
    ) -> ReplyBody:
        """Append an event and return its reply; raises NotController, NoJob, DecisionTimedOut,
        NotReplicated.
        """
        if kind not in _ABOUT_OFFSETS:
            return await self.ask(kind, group, payload, timeout_s)
        if not self._node_role.has_job():
            raise NoJob(_NO_JOB)
        self._sessions.heard(group, payload.get("member", ""))
        async with self._commits.pause.until_answered(group, _committed(kind, payload)):
            return await self._pending.submit(kind, group, payload, timeout_s)

    def ask(
        self, kind: EventKind, group: str, payload: dict[str, Any], timeout_s: float
    ) -> PendingReply:
        """Append an event that is not about offsets, unless the image answers it, and return what
        its reply will be; raises NotController, NoJob.
        """
        if not self._node_role.has_job():
            raise NoJob(_NO_JOB)
        assert kind not in _ABOUT_OFFSETS, "what is about offsets pauses direct commits first"
        reply = None
        if kind is EventKind.SYNC_GROUP_REQUESTED:
            reply = self._syncs.ask(payload, timeout_s)
        if reply is None:
            reply = self._pending.ask(kind, group, payload, timeout_s)
        self._note_asked(kind, group, payload, reply)
        return reply

    def _note_asked(
        self, kind: EventKind, group: str, payload: dict[str, Any], reply: PendingReply
    ) -> None:
        """Note that a member waits for an answer, unless there is one. Who wants a session that is
        shorter than allowed is refused by the machine, which begins none.
        """
        member: str = payload.get("member") or payload.get("new_member") or ""
        if reply.done():
            self._sessions.heard(group, member)
            return
        least_ms = self._config["group.min.session.timeout.ms"]
        if kind is EventKind.JOIN_GROUP_REQUESTED and payload["session_timeout_ms"] >= least_ms:
            timeouts = Timeouts(
                session_timeout_ms=payload["session_timeout_ms"],
                rebalance_timeout_ms=payload["rebalance_timeout_ms"],
            )
            self._sessions.joins(group, member, payload["instance"], timeouts, reply)
        elif member:
            self._sessions.asked(group, member, reply)

    def try_commit(self, request: bytes, host: str, answer: Answer) -> bool:
        """Begin to answer an OffsetCommit; False leaves it to be submitted."""
        return self._commits.try_commit(request, answer)

    def heard(self, heartbeat: Heartbeat) -> None:
        """Take a heartbeat of a member that is there; it was answered."""
        self._sessions.heard(heartbeat.group, heartbeat.member)

    def batch_completed(self, end_offset: int) -> None:
        """Serve partitions of which everything that was loaded is decided. What a job decides of
        those that are not taken over again since it came is passed over, so it is not decided yet.
        """
        taken = self.decisions.taken
        if all(one in taken for one in self._terms.led):
            self._commits.pause.completed(end_offset)
        for partition in self._terms.completed(end_offset, taken):
            self.topics.served(partition)

    def job_gone(self) -> None:
        """Fail pending requests: clients send them again, once the job is back. All is loaded again
        before anything counts that the next job decides.
        """
        self.decisions.stop()
        self._syncs.forget()
        self._pending.fail_all(NoJob, _NO_JOB)

    def role_lost(self) -> None:
        """Fail pending requests."""
        self.topics.role_lost()
        self._terms.unserved()
        self._syncs.forget()
        self._pending.fail_all()

    def _changed(self, group: str, changes: Sequence[Change]) -> None:
        self._sessions.decided(group, changes)
        self._syncs.decided(group, changes)
        self.figures.decided(group, changes)

    def _refused(self, group: str, write: dict[str, Any]) -> None:
        self._append([event(EventKind.GROUP_RECORDS_REFUSED, write, group)])

    def elected(self, partitions: dict[int, int]) -> None:
        """Partitions (number: leader epoch) are led by us, and not loaded."""
        numbers = list(partitions)
        events = election(partitions, self._config, first=not self._terms.led)
        self._terms.elected(partitions)
        term = self.decisions.hold_back()
        appended = asyncio.wrap_future(self._append(events))
        appended.add_done_callback(lambda done: self._taken_over(term, numbers, done))
        logger.info("leading __consumer_offsets: %s", partitions)

    def _taken_over(
        self, term: int, partitions: list[int], appended: asyncio.Future[range]
    ) -> None:
        """What was decided up to the resignation belongs to a term before this one."""
        if not appended.cancelled() and appended.exception() is None:
            self.decisions.taken_over(term, partitions, appended.result().start + 1)

    async def load(self, partition: int, end: int) -> None:
        """Read a partition up to an offset and append what stands there.

        Raises HistoryUnreadable, UnreadableBatch, before anything is appended.
        """
        loaded, size = LoadedPartition(), 0
        async with contextlib.aclosing(self._history.whole(partition, end)) as pieces:
            async for data in pieces:
                size += len(data)
                async with self._folding:  # the loop shares its interpreter with one thread at most
                    unreadable = await asyncio.to_thread(fold_records, loaded, data, end)
                self._counters["unreadable_group_records"] += unreadable
        elected = self._terms.epoch(partition)
        records = [
            event(EventKind.GROUP_OBSERVED, body, body["group"])
            for body in loaded.observed(partition, elected)
        ]
        for start in range(0, len(records), _CHUNK_EVENTS):
            await asyncio.wrap_future(self._append(records[start : start + _CHUNK_EVENTS]))
        self.topics.loaded(partition, loaded.topics())
        body = {"partitions": [partition], "epoch": elected}
        appended = self._append([event(EventKind.GROUP_PARTITIONS_LOADED, body)])
        self._leader.logs[partition].producers.load(loaded.epochs)
        self._terms.loaded(partition, (await asyncio.wrap_future(appended)).start)
        logger.info("partition %d: %d groups in %d bytes", partition, len(records), size)

    def resigned(self) -> None:
        """Nothing is led any more."""
        self._sessions.forget()
        self.figures.forget()
        if led := self._terms.led:
            self._append([resignation(led)])
        self._commits.forget()
        self.decisions.begin()
        self._terms.ended()
        self.topics.term_ended()
        self._syncs.forget()
        self._pending.fail_all()


def coordinator_config(settings: Settings) -> Mapping[str, int]:
    """Return what decisions about groups depend on, by name."""
    return {
        "group.min.session.timeout.ms": settings.group_min_session_timeout_ms,
        "group.max.session.timeout.ms": settings.group_max_session_timeout_ms,
        "group.max.size": settings.group_max_size,
        "group.initial.rebalance.delay.ms": settings.group_initial_rebalance_delay_ms,
        "group.leave.rebalance.delay.ms": settings.group_leave_rebalance_delay_ms,
        "offset.metadata.max.bytes": settings.offset_metadata_max_bytes,
        "offsets.retention.ms": offsets_retention_ms(settings.offsets_retention_minutes),
    }


def _committed(kind: EventKind, payload: dict[str, Any]) -> frozenset[TopicPartition] | None:
    """Return the partitions whose offsets a request is about, None for all of the group."""
    if kind is not EventKind.OFFSET_COMMIT_REQUESTED:
        return None
    return frozenset((topic, number) for topic, number, *_ in payload["offsets"])
