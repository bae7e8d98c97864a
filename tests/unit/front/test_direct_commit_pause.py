"""Which groups are paused, and for how long; expired offsets are looked for without all of them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection
from concurrent.futures import Future
from contextlib import suppress

import pytest

from state.groups.buckets import group_bucket
from state.groups.image import GroupImage
from streaming.front.groups import offsets_expiry
from streaming.front.groups.direct_commit_pause import DirectCommitPause
from streaming.front.groups.offsets_expiry import OffsetsExpiry
from streaming.gateway.ports import DecisionTimedOut, NotReplicated
from streaming.log.api import NewRecord
from streaming.offsets.term_over import TermOver
from tests.unit.front.loop_turns import pass_the_loop

T = (("t", 0), ("t", 1))
OTHERS = (("t", 2),)


class World:
    """Appends at once to a log that begins at 10; commits on their way are safe when `safe` is."""

    def __init__(self) -> None:
        self.log: list[str] = []
        self.safe = asyncio.Event()
        self.safe.set()
        self.stuck = False
        self.settled: list[set[str]] = []
        self.pause = DirectCommitPause(self._settle)

    async def _settle(self, groups: Collection[str]) -> None:
        await self.safe.wait()
        if self.stuck:
            raise NotReplicated("not on all brokers")
        self.settled.append(set(groups))

    def append(self, name: str) -> Callable[[], Future[range]]:
        return lambda: self.append_all([name])

    def append_all(self, names: Collection[str]) -> Future[range]:
        start = 10 + len(self.log)
        self.log += names
        done: Future[range] = Future()
        done.set_result(range(start, start + len(names)))
        return done

    async def answered(
        self,
        group: str,
        reply: asyncio.Future[None],
        partitions: tuple[tuple[str, int], ...] | None = None,
    ) -> None:
        """A request about all of a group, or these partitions, answered when the future is."""
        about = None if partitions is None else frozenset(partitions)
        async with self.pause.until_answered(group, about):
            self.log.append(group)
            await reply


def run(scenario: Callable[[World], object]) -> None:
    async def play() -> None:
        await scenario(World())

    asyncio.run(play())


def future() -> asyncio.Future[None]:
    return asyncio.get_running_loop().create_future()


def test_a_group_is_paused_until_its_request_is_answered() -> None:
    async def scenario(world: World) -> None:
        reply = future()
        asking = asyncio.create_task(world.answered("g", reply))
        await pass_the_loop()
        assert (world.pause.covers("g", T), world.pause.covers("h", T)) == (True, False)
        assert (world.settled, world.log) == ([{"g"}], ["g"])
        reply.set_result(None)
        await asking
        assert not world.pause.covers("g", T)

    run(scenario)


def test_a_commit_pauses_what_it_commits() -> None:
    async def scenario(world: World) -> None:
        reply = future()
        asking = asyncio.create_task(world.answered("g", reply, T[:1]))
        await pass_the_loop()
        paused = [world.pause.covers("g", one) for one in (T, T[1:], OTHERS)]
        assert paused == [True, False, False]
        assert list(world.pause.groups) == ["g"]
        reply.set_result(None)
        await asking
        assert not world.pause.covers("g", T)

    run(scenario)


def test_commits_that_are_sent_before_the_last_one_is_decided_do_not_prolong_a_pause() -> None:
    async def scenario(world: World) -> None:
        deciding = asyncio.create_task(world.pause.until_decided(["g"], world.append("x")))
        reply = future()
        await pass_the_loop()
        asking = asyncio.create_task(world.answered("g", reply, OTHERS))
        await pass_the_loop()
        world.pause.completed(20)
        await deciding
        assert not world.pause.covers("g", T)
        assert world.pause.covers("g", OTHERS)
        reply.set_result(None)
        await asking

    run(scenario)


@pytest.mark.parametrize("first", [T, None])
def test_the_last_that_was_given_up_stands_for_all(first: tuple[tuple[str, int], ...]) -> None:
    async def scenario(world: World) -> None:
        late = future()
        late.set_exception(DecisionTimedOut("late"))
        for partitions in (first, OTHERS):
            with pytest.raises(DecisionTimedOut):
                await world.answered("g", late, partitions)
        assert len(world.pause._requests["g"]) == 1
        everything = (("elsewhere", 0),)
        paused = [world.pause.covers("g", one) for one in (T, OTHERS, everything)]
        assert paused == [True, True, first is None]
        reply = future()
        reply.set_result(None)
        await world.answered("g", reply, OTHERS)
        assert not world.pause.groups

    run(scenario)


def test_groups_are_paused_until_events_are_decided() -> None:
    async def scenario(world: World) -> None:
        deciding = asyncio.create_task(world.pause.until_decided(["g", "h"], world.append("x")))
        await pass_the_loop()
        assert set(world.pause.groups) == {"g", "h"}
        world.pause.completed(10)
        await pass_the_loop()
        assert not deciding.done(), "that was all before it"
        world.pause.completed(11)
        await deciding
        assert not world.pause.groups

    run(scenario)


def test_what_is_decided_before_anybody_waits_is_decided() -> None:
    async def scenario(world: World) -> None:
        world.pause.completed(11)
        await world.pause.until_decided(["g"], world.append("x"))
        assert not world.pause.groups

    run(scenario)


def test_an_answer_resumes_only_past_what_it_came_behind() -> None:
    """One that is sent while another is under way is not behind it in the log, as far as is known
    here.
    """

    async def scenario(world: World) -> None:
        deciding = asyncio.create_task(world.pause.until_decided(["g"], world.append("x")))
        reply = future()
        asking = asyncio.create_task(world.answered("g", reply))
        await pass_the_loop()
        reply.set_result(None)
        await asking
        assert world.pause.covers("g", T), "x may be decided yet"
        world.pause.completed(20)
        await deciding
        assert not world.pause.covers("g", T)

    run(scenario)


def test_one_that_was_given_up_may_be_decided_until_the_next_one_is() -> None:
    async def scenario(world: World) -> None:
        late, reply, at_the_same_time = future(), future(), future()
        lost = asyncio.create_task(world.answered("g", late))
        same = asyncio.create_task(world.answered("g", at_the_same_time))
        await pass_the_loop()
        late.set_exception(DecisionTimedOut("late"))
        with pytest.raises(DecisionTimedOut):
            await lost
        with pytest.raises(DecisionTimedOut):
            await world.answered("g", late)
        assert len(world.pause._requests["g"]) == 2, "of those that were given up the last counts"
        at_the_same_time.set_result(None)
        await same
        assert world.pause.covers("g", T), "that was sent before the other was given up"
        asking = asyncio.create_task(world.answered("g", reply))
        await pass_the_loop()
        reply.set_result(None)
        await asking
        assert not world.pause.covers("g", T)

    run(scenario)


def test_what_was_not_sent_pauses_nothing() -> None:
    async def scenario(world: World) -> None:
        world.stuck = True
        with pytest.raises(NotReplicated):
            await world.answered("g", future())
        with pytest.raises(NotReplicated):
            await world.pause.until_decided(["g"], world.append("x"))
        assert (world.log, list(world.pause.groups)) == ([], [])

    run(scenario)


@pytest.mark.parametrize("settles", [True, False])
def test_the_end_of_a_term_is_raised_and_nothing_is_appended_after_it(settles: bool) -> None:
    async def scenario(world: World) -> None:
        if not settles:
            world.safe.clear()
        deciding = asyncio.create_task(world.pause.until_decided(["g"], world.append("x")))
        await pass_the_loop()
        world.pause.forget()
        world.safe.set()
        with pytest.raises(TermOver):
            await deciding
        assert world.log == (["x"] if settles else [])
        assert not world.pause.groups

    run(scenario)


class Expiring(World):
    """200 groups in as many buckets, or nearly; what is appended is decided by `completed`."""

    def __init__(self) -> None:
        super().__init__()
        self.names = [f"g{number}" for number in range(200)]
        self.image = GroupImage()
        self.image.groups = dict.fromkeys(self.names)
        self.expiry = OffsetsExpiry(self.pause, self._append, self, 0.0)

    def _append(self, records: Collection[NewRecord]) -> Future[range]:
        assert {one.kind for one in records} == {"offsets_expiration_due"}
        return self.append_all([one.key for one in records])


def test_expired_offsets_are_looked_for_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(offsets_expiry, "BUCKETS_AT_ONCE", 50)

    async def scenario() -> None:
        world = Expiring()
        buckets = sorted({group_bucket(name) for name in world.names})
        running = asyncio.create_task(world.expiry.run())
        for start in range(0, len(buckets), 50):
            part = set(buckets[start : start + 50])
            async with asyncio.timeout(10):
                while len(world.log) < min(start + 50, len(buckets)):
                    await asyncio.sleep(0)
            assert {int(key) for key in world.log[start:]} == part
            concerned = {name for name in world.names if group_bucket(name) in part}
            assert set(world.pause.groups) == concerned, "nobody else is held up"
            world.pause.completed(10 + len(world.log))
        running.cancel()
        with suppress(asyncio.CancelledError):
            await running

    asyncio.run(scenario())


def test_a_group_that_is_asked_for_and_not_known_yet_is_paused_too() -> None:
    async def scenario() -> None:
        world = Expiring()
        del world.image.groups["g7"]
        asking = asyncio.create_task(world.answered("g7", future()))
        await pass_the_loop()
        deciding = asyncio.create_task(world.expiry.expire([group_bucket("g7")]))
        await pass_the_loop()
        assert {"g7"} in world.settled[1:]
        world.pause.completed(100)
        await deciding
        asking.cancel()

    asyncio.run(scenario())
