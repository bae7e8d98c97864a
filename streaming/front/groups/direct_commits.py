"""Commits that are answered without a micro-batch: checked against the image, appended at once.

The image is what members have been told: who it lets commit may commit, whatever the query has
decided since. The newest commits go to the log together, once all brokers in sync have them
(`offsets_appended`). What changes a group's offsets has to be in the log in the order of the
records: while that is decided, commits of the same offsets are decided too (`pause`). docs/adr/0015
says why that is safe.
"""

from __future__ import annotations

import asyncio
import functools
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Sequence
from weakref import WeakKeyDictionary

from state.event_kinds import EventKind
from state.groups.answers import may_commit
from state.groups.image import GroupImage
from state.groups.offset_rows import OffsetRow
from state.groups.payloads.requests import Heartbeat
from state.protocol_errors import ProtocolError
from state.topic_partition import TopicPartition
from streaming.front.groups.direct_commit import Commit, Committer
from streaming.front.groups.direct_commit_pause import DirectCommitPause
from streaming.front.groups.known_partitions import KnownPartitions
from streaming.front.groups.view import CoordinatorView
from streaming.gateway.calls import Answer
from streaming.gateway.ports import COMMIT_TIMEOUT_S, NotReplicated
from streaming.log.api import NewRecord
from streaming.log.events import AppendEvents, event
from streaming.offsets.batches import LARGEST_BATCH_BYTES
from streaming.offsets.commit_batches import commit_bytes_at_most
from streaming.offsets.leader import LeaderStopped, OffsetsLeader
from streaming.process.wall_clock import wall_clock_ms
from streaming.wire.commit_layouts import CommitLayout, CommitLayouts
from streaming.wire.passing import answer_with_id_of

LOGGED_WITHIN_S = 5.0
"""A commit is in the log within this time: of many commits of a partition, the last one. It is what
clients' auto.commit.interval.ms is by default.
"""

UNUSED_S = 300.0
"""What members' commits look like is known for this time after their last one, and at most twice as
long.
"""


class DirectCommits:
    """Takes what it can of OffsetCommit; lives on the front's event loop."""

    def __init__(
        self,
        leader: OffsetsLeader,
        append: AppendEvents,
        view: CoordinatorView,
        *,
        heard: Callable[[Heartbeat], None],
        known: KnownPartitions,
        metadata_max: int,
    ) -> None:
        """heard: takes the heartbeat that a member's commit is too; metadata_max: UTF-16 units."""
        self._loop = asyncio.get_running_loop()
        self._leader = leader
        self._append = append
        self._view = view
        self._heard = heard
        self._known = known
        self._metadata_max = metadata_max
        self._layouts = CommitLayouts()
        self._forgotten_s = self._loop.time()
        self._committers: WeakKeyDictionary[CommitLayout, Committer] = WeakKeyDictionary()
        self._taken: dict[int, list[tuple[Commit, bytes]]] = {}
        self._appending: defaultdict[int, set[asyncio.Future[None]]] = defaultdict(set)
        self._unlogged: dict[str, dict[CommitLayout, Commit]] = {}
        self._flush_timer: asyncio.TimerHandle | None = None
        self.pause = DirectCommitPause(self._settle)

    def try_commit(self, request: bytes, answer: Answer) -> bool:
        """Begin a commit whose answer comes later, or refuse it where the partition takes none;
        False leaves it to be decided.
        """
        layout = self._layouts.read(request)
        if layout is None or self.pause.covers(layout.group, layout.partitions):
            return False
        committer = self._committer(layout) if self._view.node_role.decides() else None
        if committer is None:
            return False
        image, partition = self._view.image, committer.partition
        if not may_commit(image, self._view.phase(partition), committer.request):
            return False
        if committer.known_at != self._known.version:
            if self._known.unknown(partition, layout.partitions):
                return False
            committer.known_at = self._known.version
            self._layouts.keep(request, layout)
        if self._leader.refusal(partition) is not None:
            refusal = layout.answer(ProtocolError.COORDINATOR_NOT_AVAILABLE)
            answer(answer_with_id_of(refusal, request))
        else:
            self._take(committer, layout, request, answer)
        if committer.heartbeat is not None:
            self._heard(committer.heartbeat)
        return True

    def _take(
        self, committer: Committer, layout: CommitLayout, request: bytes, answer: Answer
    ) -> None:
        """Have a commit appended at the end of this turn of the loop."""
        numbers, now_ms = layout.numbers(request), wall_clock_ms()
        batch = committer.encode(layout, numbers, now_ms)
        commit = Commit(layout, numbers, now_ms, request, answer)
        self._view.image.commit_begun(layout.group, commit)
        if not self._taken:
            self._loop.call_soon(self._append_taken)
        self._taken.setdefault(committer.partition, []).append((commit, batch))

    def _committer(self, layout: CommitLayout) -> Committer | None:
        """Return what is known of a layout; None for one with metadata that may be too long, or too
        much to be written, and while the topic is not known.
        """
        known = self._committers.get(layout)
        if known is None and max(map(len, layout.metadata)) * 2 <= self._metadata_max:
            partition = self._view.partition_of(layout.group)
            if partition >= 0 and _size_bytes(layout) <= LARGEST_BATCH_BYTES:
                known = self._committers[layout] = Committer(layout, partition)
        return known

    def _append_taken(self) -> None:
        """Append what came in this turn of the loop, one wait for each partition."""
        taken, self._taken = self._taken, {}
        image = self._view.image
        for partition, commits in taken.items():
            ones = [commit for commit, _ in commits]
            try:
                done = self._leader.append_all(partition, [batch for _, batch in commits])
            except LeaderStopped:
                self._ended(image, ones, None)
                continue
            late = self._loop.call_later(COMMIT_TIMEOUT_S, self._late, ones)
            self._appending[partition].add(done)
            done.add_done_callback(functools.partial(self._appended, image, partition, ones, late))

    def _appended(
        self,
        image: GroupImage,
        partition: int,
        commits: Sequence[Commit],
        late: asyncio.TimerHandle,
        done: asyncio.Future[None],
    ) -> None:
        late.cancel()
        self._appending[partition].discard(done)
        self._ended(image, commits, done)

    def _ended(
        self, image: GroupImage, commits: Sequence[Commit], done: asyncio.Future[None] | None
    ) -> None:
        safe = done is not None and not done.cancelled() and done.exception() is None
        for one in commits:
            image.commit_ended(one.layout.group, one, appended=safe)
            if safe and image is self._view.image:
                self._log_later(one)
            one.end(ProtocolError.NONE if safe else ProtocolError.NOT_COORDINATOR)

    def _late(self, commits: Iterable[Commit]) -> None:
        for one in commits:
            one.end(ProtocolError.REQUEST_TIMED_OUT)

    def _log_later(self, commit: Commit) -> None:
        of_group = self._unlogged.setdefault(commit.layout.group, {})
        of_group.pop(commit.layout, None)
        of_group[commit.layout] = commit
        if self._flush_timer is None:
            self._flush_timer = self._loop.call_later(LOGGED_WITHIN_S, self._log)

    def _log(self, groups: Iterable[str] | None = None) -> None:
        """Append the commits that the log does not have, of all groups by default."""
        if groups is None:
            self._cancel()
            self._forget_layouts()
        names = list(self._unlogged if groups is None else groups)
        records = [
            self._event(name, commits.values())
            for name in names
            if (commits := self._unlogged.pop(name, None)) is not None
        ]
        if records:
            self._append(records)

    def _forget_layouts(self) -> None:
        now_s = self._loop.time()
        if now_s >= self._forgotten_s + UNUSED_S:
            self._forgotten_s = now_s
            self._layouts.forget_unused()

    def _event(self, group: str, commits: Iterable[Commit]) -> NewRecord:
        rows: dict[TopicPartition, OffsetRow] = {}
        for one in commits:
            rows.update(one.rows())
        body = {
            "group": group,
            "partition": self._view.partition_of(group),
            "offsets": [
                [*at, row.offset, row.leader_epoch, row.metadata, row.commit_ms]
                for at, row in rows.items()
            ],
        }
        return event(EventKind.OFFSETS_APPENDED, body, group)

    async def _settle(self, groups: Collection[str]) -> None:
        """Wait for commits of groups that are on their way, and append them to the log, which gets
        none that is not safe. Raises NotReplicated.
        """
        self._append_taken()
        partitions = set(map(self._view.partition_of, groups))
        appending = set().union(*(self._appending.get(one, ()) for one in partitions))
        if appending:
            _, late = await asyncio.wait(appending, timeout=COMMIT_TIMEOUT_S)
            if late:
                raise NotReplicated("commits before this request are not on all brokers in sync")
        self._log(groups)

    def forget(self) -> None:
        """What is appended is loaded from the topic, so the log need not have it. What was begun
        and is not appended never will be.
        """
        self._cancel()
        taken, self._taken = self._taken, {}
        for commits in taken.values():
            self._ended(self._view.image, [commit for commit, _ in commits], None)
        self._unlogged.clear()
        self._committers.clear()
        self.pause.forget()

    def _cancel(self) -> None:
        if self._flush_timer is not None:
            self._flush_timer.cancel()
            self._flush_timer = None


def _size_bytes(layout: CommitLayout) -> int:
    return commit_bytes_at_most(layout.group, layout.partitions, layout.metadata)
