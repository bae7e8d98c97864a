"""Commits that go through the log for now, as something about the same offsets is decided."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterable, Iterator
from concurrent.futures import Future
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass

from state.topic_partition import TopicPartition
from streaming.offsets.term_over import TermOver

_OVER = "what was to be decided is loaded anew"


@dataclass(slots=True, eq=False)
class _Request:
    """What is decided about offsets of groups.

    partitions: those of a single group; None: all. sent: the count when it was sent. given_up: the
    count when it ended without an answer, though it may be decided yet; None before that.
    """

    groups: Collection[str]
    partitions: frozenset[TopicPartition] | None = None
    sent: int = -1
    given_up: int | None = None

    def concerns(self, partitions: Iterable[TopicPartition]) -> bool:
        """Return whether it is about the offset of one of these."""
        return self.partitions is None or not self.partitions.isdisjoint(partitions)

    def add(self, partitions: frozenset[TopicPartition] | None) -> None:
        """Count as one about these too."""
        if self.partitions is not None:
            self.partitions = None if partitions is None else self.partitions | partitions


class DirectCommitPause:
    """While a partition of a group is paused its commits go through the log.

    It is paused as long as a request about its offset is not known to be decided. A commit is such
    a request, too: it pauses what it commits and no more, or commits of several members, each sent
    before another one is decided, would keep their group paused for ever.
    A request that ended without an answer may be decided yet: the next one about the group that is
    sent after that, and decided, was decided behind it.
    """

    def __init__(self, settle: Callable[[Collection[str]], Awaitable[None]]) -> None:
        """settle: waits until commits of groups that are on their way are safe, and appends what
        the log does not have of them; when it raises, nothing is sent.
        """
        self._settle = settle
        self._requests: dict[str, list[_Request]] = {}
        self._count = itertools.count()
        self._undecided: list[tuple[int, asyncio.Future[None]]] = []
        self._completed = 0
        self._term = 0

    def covers(self, group: str, partitions: Iterable[TopicPartition]) -> bool:
        """Return whether one of these partitions of a group is paused."""
        requests = self._requests.get(group)
        return requests is not None and any(one.concerns(partitions) for one in requests)

    @property
    def groups(self) -> Collection[str]:
        """The groups of which something is paused."""
        return self._requests.keys()

    @asynccontextmanager
    async def until_answered(
        self, group: str, partitions: frozenset[TopicPartition] | None = None
    ) -> AsyncIterator[None]:
        """Pause a group, or some of its partitions, until the request that is submitted inside is
        answered.

        Raises what `settle` does.
        """
        request = await self._begin(_Request([group], partitions))
        with self._resume_after(request):
            yield

    async def until_decided(
        self, groups: Collection[str], append: Callable[[], Future[range]]
    ) -> None:
        """Pause groups until the events that `append` appends are decided, which come behind all
        requests about their offsets that are known of now.

        Raises TermOver, and what `settle` does.
        """
        term = self._term
        request = await self._begin(_Request(groups))
        with self._resume_after(request):
            await asyncio.sleep(0)  # requests that waited for the same are appended in this turn
            self._check(term)
            appended = await asyncio.wrap_future(append())
            self._check(term)
            if appended.stop > self._completed:
                decided: asyncio.Future[None] = asyncio.get_running_loop().create_future()
                self._undecided.append((appended.stop, decided))
                await decided

    async def _begin(self, request: _Request) -> _Request:
        for group in request.groups:
            self._requests.setdefault(group, []).append(request)
        try:
            await self._settle(request.groups)
        except BaseException:
            self._end(request)
            raise
        request.sent = next(self._count)
        return request

    @contextmanager
    def _resume_after(self, request: _Request) -> Iterator[None]:
        try:
            yield
        except BaseException:
            self._give_up(request)
            raise
        self._end(request)

    def _give_up(self, request: _Request) -> None:
        """Let a request stand for those that were given up before it as well."""

        def stays(one: _Request) -> bool:
            if one.given_up is not None and one is not request:
                request.add(one.partitions)
            return one.given_up is None or one is request

        request.given_up = next(self._count)
        self._keep(request, stays)

    def _check(self, term: int) -> None:
        if term != self._term:
            raise TermOver(_OVER)

    def _end(self, request: _Request) -> None:
        """Resume what a request paused, and those that were given up before it was sent."""

        def stays(one: _Request) -> bool:
            return one is not request and (one.given_up is None or one.given_up > request.sent)

        self._keep(request, stays)

    def _keep(self, request: _Request, stays: Callable[[_Request], bool]) -> None:
        """Forget requests about the groups of one, but for those that stay."""
        for group in request.groups:
            left = list(filter(stays, self._requests.get(group, ())))
            if left:
                self._requests[group] = left
            else:
                self._requests.pop(group, None)

    def completed(self, end_offset: int) -> None:
        """Take how far has been decided, once the decisions were taken."""
        self._completed = end_offset
        waiting, self._undecided = self._undecided, []
        for stop, decided in waiting:
            if end_offset < stop:
                self._undecided.append((stop, decided))
            elif not decided.done():
                decided.set_result(None)

    def forget(self) -> None:
        """Resume all groups: what is decided of this term counts no more."""
        self._term += 1
        self._requests.clear()
        for _, decided in self._undecided:
            if not decided.done():
                decided.set_exception(TermOver(_OVER))
        self._undecided.clear()
