"""Commits that are answered without a micro-batch: checked against the image, appended at once.

The image is what members have been told: who it lets commit may commit, whatever the query has
decided since. The log hears of the newest commits together, once all brokers in sync have them
(`offsets_appended`). It has to hear of what changes a group's offsets in the order of the records:
while that is decided (`deciding`), commits of the group are decided too. docs/adr/0015 says why
that is safe.
"""

from __future__ import annotations

import asyncio
import functools
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Sequence
from concurrent.futures import Future
from contextlib import asynccontextmanager
from weakref import WeakKeyDictionary

from state.events import EventKind
from state.groups.answers import may_commit
from state.groups.image import GroupImage
from state.groups.offset_rows import OffsetRow, TopicPartition
from state.groups.payloads.requests import Heartbeat
from state.groups.tables import CoordinatorPhase
from state.protocol_errors import ProtocolError
from streaming.front.direct_commit import Commit, Committer
from streaming.front.known_partitions import KnownPartitions
from streaming.gateway.calls import Answer
from streaming.gateway.ports import COMMIT_TIMEOUT_S, DecisionTimedOut
from streaming.log.api import NewRecord
from streaming.log.embedded import wall_clock_ms
from streaming.observers.ports import AppendEvents, event
from streaming.offsets.leader import LeaderStopped, OffsetsLeader
from streaming.wire.commit_layouts import CommitLayout, CommitLayouts

LOGGED_WITHIN_S = 5.0
"""The log hears of a commit within this time: of many commits of a partition, the last one. It is
what clients' auto.commit.interval.ms is by default.
"""


class DirectCommits:
    """Takes what it can of OffsetCommit; lives on the front's event loop.

    image and phase are as decided so far; is_open: whether there is somebody who decides, and this
    node is the controller.
    """

    def __init__(
        self,
        leader: OffsetsLeader,
        append: AppendEvents,
        image: Callable[[], GroupImage],
        *,
        partition_of: Callable[[str], int],
        phase: Callable[[int], CoordinatorPhase],
        is_open: Callable[[], bool],
        heard: Callable[[Heartbeat], None],
        known: KnownPartitions,
        metadata_max: int,
    ) -> None:
        """heard: takes the heartbeat that a member's commit is too; metadata_max: UTF-16 units."""
        self._loop = asyncio.get_running_loop()
        self._leader = leader
        self._append = append
        self._image = image
        self._partition_of = partition_of
        self._phase = phase
        self._is_open = is_open
        self._heard = heard
        self._known = known
        self._metadata_max = metadata_max
        self._layouts = CommitLayouts()
        self._committers: WeakKeyDictionary[CommitLayout, Committer] = WeakKeyDictionary()
        self._taken: dict[int, list[tuple[Commit, bytes]]] = {}
        self._appending: set[asyncio.Future[None]] = set()
        self._untold: dict[str, dict[CommitLayout, Commit]] = {}
        self._flush: asyncio.TimerHandle | None = None
        self._deciding: dict[str, object] = {}
        self._decided_at: int | None = None
        self._all_deciding = False
        self._undecided: list[tuple[int, asyncio.Future[None]]] = []
        self._completed = 0

    @property
    def stepping_aside(self) -> Collection[str]:
        """The groups that a request about offsets may be decided of."""
        return self._deciding.keys()

    def take(self, request: bytes, answer: Answer) -> bool:
        """Take a commit, whose answer comes later; False leaves it to be decided."""
        layout = self._layouts.read(request)
        if layout is None or self._all_deciding or layout.group in self._deciding:
            return False
        committer = self._committer(layout)
        if committer is None or not self._is_open():
            return False
        image, partition = self._image(), committer.partition
        if not may_commit(image, self._phase(partition), committer.request):
            return False
        if committer.known_at != self._known.version:
            if self._known.unknown(partition, layout.partitions):
                return False
            committer.known_at = self._known.version
        numbers, now_ms = layout.numbers(request), wall_clock_ms()
        commit = Commit(layout, numbers, now_ms, request, answer)
        image.commit_begun(layout.group, commit)
        if not self._taken:
            self._loop.call_soon(self._append_taken)
        self._taken.setdefault(partition, []).append(
            (commit, committer.batch.encode(numbers, now_ms))
        )
        if committer.heartbeat is not None:
            self._heard(committer.heartbeat)
        return True

    def _committer(self, layout: CommitLayout) -> Committer | None:
        """Return what is known of a layout; None for one with metadata that may be too long, and
        while the topic is not known.
        """
        known = self._committers.get(layout)
        if known is None and max(map(len, layout.metadata)) * 2 <= self._metadata_max:
            partition = self._partition_of(layout.group)
            if partition >= 0:
                known = self._committers[layout] = Committer(layout, partition)
        return known

    def _append_taken(self) -> None:
        """Append what came in this turn of the loop, one wait for each partition."""
        taken, self._taken = self._taken, {}
        image = self._image()
        for partition, commits in taken.items():
            ones = [commit for commit, _ in commits]
            try:
                done = self._leader.append_all(partition, [batch for _, batch in commits])
            except LeaderStopped:
                self._ended(image, ones, None)
                continue
            late = self._loop.call_later(COMMIT_TIMEOUT_S, self._late, ones)
            self._appending.add(done)
            done.add_done_callback(functools.partial(self._appended, image, ones, late))

    def _appended(
        self,
        image: GroupImage,
        commits: Sequence[Commit],
        late: asyncio.TimerHandle,
        done: asyncio.Future[None],
    ) -> None:
        late.cancel()
        self._appending.discard(done)
        self._ended(image, commits, done)

    def _ended(
        self, image: GroupImage, commits: Sequence[Commit], done: asyncio.Future[None] | None
    ) -> None:
        safe = done is not None and not done.cancelled() and done.exception() is None
        for one in commits:
            image.commit_ended(one.layout.group, one, appended=safe)
            if safe and image is self._image():
                self._tell_later(one)
            one.end(ProtocolError.NONE if safe else ProtocolError.NOT_COORDINATOR)

    def _late(self, commits: Iterable[Commit]) -> None:
        for one in commits:
            one.end(ProtocolError.REQUEST_TIMED_OUT)

    def _tell_later(self, commit: Commit) -> None:
        of_group = self._untold.setdefault(commit.layout.group, {})
        of_group.pop(commit.layout, None)
        of_group[commit.layout] = commit
        if self._flush is None:
            self._flush = self._loop.call_later(LOGGED_WITHIN_S, self.tell)

    def tell(self, groups: Iterable[str] | None = None) -> None:
        """Tell the log of what is committed and it has not heard of, of all groups by default."""
        if groups is None:
            self._cancel()
        names = list(self._untold if groups is None else groups)
        records = [
            self._event(name, commits.values())
            for name in names
            if (commits := self._untold.pop(name, None)) is not None
        ]
        if records:
            self._append(records)

    def _event(self, group: str, commits: Iterable[Commit]) -> NewRecord:
        rows: dict[TopicPartition, OffsetRow] = {}
        for one in commits:
            rows.update(one.rows())
        body = {
            "group": group,
            "partition": self._partition_of(group),
            "offsets": [
                [*at, row.offset, row.leader_epoch, row.metadata, row.commit_ms]
                for at, row in rows.items()
            ],
        }
        return event(EventKind.OFFSETS_APPENDED, body, group)

    @asynccontextmanager
    async def deciding(self, group: str) -> AsyncIterator[None]:
        """Step aside for a group until a request about its offsets, which is submitted inside, is
        answered. One that ends in an error may be decided yet: the next that is answered was
        decided behind it. Raises DecisionTimedOut.
        """
        request = self._deciding[group] = object()
        await self._all_appended()
        self.tell([group])
        yield
        if self._deciding.get(group) is request:
            del self._deciding[group]

    async def deciding_groups(
        self, groups: Collection[str], append: Callable[[], Future[range]]
    ) -> None:
        """Step aside for groups until the events that `append` appends are decided, which come
        behind all requests about their offsets that are known of now.

        Raises DecisionTimedOut, LeaderStopped.
        """
        request = object()
        self._deciding.update(dict.fromkeys(groups, request))
        await self._all_appended()
        await asyncio.sleep(0)  # requests that waited for the same are appended in this turn
        self.tell(groups)
        appended = await asyncio.wrap_future(append())
        if appended.stop > self._completed:
            decided: asyncio.Future[None] = self._loop.create_future()
            self._undecided.append((appended.stop, decided))
            await decided
        for group in groups:
            if self._deciding.get(group) is request:
                del self._deciding[group]

    async def deciding_all(self, append: Callable[[], Future[range]]) -> None:
        """Step aside for all groups until the events that `append` appends are decided.

        Raises DecisionTimedOut.
        """
        self._all_deciding, self._decided_at = True, None
        try:
            await self._all_appended()
        except DecisionTimedOut:
            self._all_deciding = False
            raise
        self.tell()
        append().add_done_callback(
            lambda done: self._loop.call_soon_threadsafe(self._will_be_decided, done)
        )

    async def _all_appended(self) -> None:
        """Wait for commits that are on their way; the log hears of none that is not safe."""
        self._append_taken()
        if self._appending:
            _, late = await asyncio.wait(self._appending, timeout=COMMIT_TIMEOUT_S)
            if late:
                raise DecisionTimedOut("commits before this request are not on all brokers in sync")

    def _will_be_decided(self, appended: Future[range]) -> None:
        if not appended.cancelled() and appended.exception() is None:
            self._decided_at = appended.result().stop

    def batch_completed(self, end_offset: int) -> None:
        """Take how far has been decided, once the decisions were taken."""
        self._completed = end_offset
        if self._decided_at is not None and end_offset >= self._decided_at:
            self._all_deciding, self._decided_at = False, None
        waiting, self._undecided = self._undecided, []
        for stop, decided in waiting:
            if end_offset < stop:
                self._undecided.append((stop, decided))
            elif not decided.done():
                decided.set_result(None)

    def forget(self) -> None:
        """What is appended is loaded from the topic: the log need not hear of it."""
        self._cancel()
        self._untold.clear()
        self._committers.clear()
        self._deciding.clear()
        self._all_deciding, self._decided_at = False, None
        for _, decided in self._undecided:
            if not decided.done():
                decided.set_exception(LeaderStopped("what waited to be decided is loaded anew"))
        self._undecided.clear()

    def _cancel(self) -> None:
        if self._flush is not None:
            self._flush.cancel()
            self._flush = None
