"""Who is asked where logs end, how long for, and what is told of it to the machines."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from concurrent.futures import Future
from typing import Any, cast

import numpy as np
import orjson

from state.blocks import encode_block
from state.event_kinds import EventKind
from state.topic_partition import TopicPartition
from streaming.front.unclean_recovery import UncleanRecovery
from streaming.gateway.passing.log_ends import LogEnd, LogEnds
from streaming.log.api import NewRecord
from tests.unit.gateway.replica_logs import TOPIC, without_leader
from tests.unit.gateway.support import FakeCluster, registration

WAIT_S = 60.0


class World:
    """A recovery with made-up brokers; said: what each says of which partition, if anything."""

    def __init__(self, replicas: list[list[int]], timeout_s: float = WAIT_S) -> None:
        self.cluster = FakeCluster()
        without_leader(self.cluster, replicas)
        self.said: dict[int, dict[int, LogEnd]] = {}
        self.asked: list[dict[int, list[int]]] = []
        self.meanwhile: Callable[[], object] = lambda: None
        self.appended: list[NewRecord] = []
        log_ends = cast(LogEnds, self)
        self.recovery = UncleanRecovery(log_ends, self.cluster.image, self.append, timeout_s)

    async def ask(
        self, replicas: Mapping[int, Mapping[TopicPartition, int]]
    ) -> dict[TopicPartition, dict[int, LogEnd]]:
        self.asked.append(
            {broker: [partition for _, partition in one] for broker, one in replicas.items()}
        )
        self.meanwhile()
        found: dict[TopicPartition, dict[int, LogEnd]] = {}
        for broker, places in replicas.items():
            for place in places:
                if place[1] in self.said.get(broker, {}):
                    found.setdefault(place, {})[broker] = self.said[broker][place[1]]
        return found

    async def close(self) -> None:
        pass

    def append(self, records: Sequence[NewRecord]) -> Future[range]:
        self.appended += records
        return Future()

    def wanted(self, *partitions: int) -> None:
        """The machines want to know it of partitions."""
        columns = {
            "topic": np.zeros(len(partitions), dtype=np.int32),
            "partition": np.array(partitions, dtype=np.int32),
        }
        self.recovery.ask(encode_block(columns, {"topics": [TOPIC], "topic_ids": [None]}))

    async def look(self) -> list[dict[str, Any]]:
        """Look once; return the payloads that it led to."""
        self.appended.clear()
        await self.recovery.look()
        for one in self.appended:
            assert (one.kind, one.key) == (EventKind.LOG_ENDS_REPORTED, TOPIC)
        return [orjson.loads(one.payload) for one in self.appended]

    def bounce(self, broker: int) -> None:
        """A broker was started again, so soon that nobody saw it gone."""
        again = registration(broker, "CLIENT") | {"epoch": 999}
        self.cluster.happen("broker_registrations_changed", "", {"bounced": [again]})

    def epoch(self, partition: int = 0) -> int:
        image = self.cluster.known
        return int(image.columns["leader_epoch"][image.row_of(TOPIC, partition)])


def run(
    replicas: list[list[int]],
    scenario: Callable[[World], Awaitable[None]],
    timeout_s: float = WAIT_S,
) -> None:
    async def play() -> None:
        await scenario(World(replicas, timeout_s))

    asyncio.run(play())


def test_once_all_replicas_have_said_it_that_is_told() -> None:
    async def scenario(world: World) -> None:
        world.wanted(0)
        world.said = {2: {0: LogEnd(3, 7)}}
        assert await world.look() == []
        world.said = {1: {0: LogEnd(2, 9)}}
        (told,) = await world.look()
        assert told == {
            "topic": TOPIC,
            "partitions": [0],
            "leader_epochs": [world.epoch()],
            "logs": [[[1, 2, 9], [2, 3, 7]]],
        }
        assert world.asked == [{1: [0], 2: [0]}, {1: [0]}], "nobody is asked again"
        assert world.recovery.waiting == 0

    run([[1, 2]], scenario)


def test_a_replica_that_is_not_there_is_waited_for_until_time_is_over() -> None:
    async def scenario(world: World) -> None:
        world.wanted(0)
        world.said = {1: {0: LogEnd(1, 5)}}
        assert await world.look() == []
        await asyncio.sleep(0.1)
        (told,) = await world.look()
        assert told["logs"] == [[[1, 1, 5]]]

    run([[1, 7]], scenario, timeout_s=0.05)


def test_when_nobody_says_anything_nothing_is_told_however_long_it_takes() -> None:
    async def scenario(world: World) -> None:
        world.wanted(0)
        await asyncio.sleep(0.05)
        assert await world.look() == await world.look() == []
        assert world.recovery.waiting == 1

    run([[1, 2]], scenario, timeout_s=0.01)


def test_what_has_a_leader_or_is_gone_waits_no_more() -> None:
    async def scenario(world: World) -> None:
        world.wanted(0, 1, 5)
        elected = {"request_id": "r", "topic": TOPIC, "partitions": [0]}
        world.cluster.happen(
            "elect_leaders_requested", TOPIC, elected | {"election_type": "unclean"}
        )
        assert await world.look() == []
        assert world.asked == [{2: [1], 3: [1]}]
        assert world.recovery.waiting == 1

    run([[1, 2], [2, 3]], scenario)


def test_what_a_broker_said_before_it_was_started_again_does_not_count() -> None:
    async def scenario(world: World) -> None:
        world.wanted(0)
        world.said = {1: {0: LogEnd(1, 5)}}
        await world.look()
        world.bounce(1)
        world.said = {2: {0: LogEnd(1, 6)}}
        assert await world.look() == []
        world.said = {1: {0: LogEnd(1, 3)}}
        (told,) = await world.look()
        assert told["logs"] == [[[1, 1, 3], [2, 1, 6]]]

    run([[1, 2]], scenario)


def test_what_a_broker_said_while_it_was_started_again_does_not_count() -> None:
    async def scenario(world: World) -> None:
        world.wanted(0)
        world.said = {1: {0: LogEnd(1, 5)}, 2: {0: LogEnd(1, 6)}}
        world.meanwhile = lambda: world.bounce(1)
        assert await world.look() == []
        world.meanwhile = lambda: None
        assert len(await world.look()) == 1
        assert [[*one] for one in world.asked] == [[1, 2], [1]]

    run([[1, 2]], scenario)


def test_what_was_asked_for_before_the_role_was_lost_is_not_told_after_it() -> None:
    async def scenario(world: World) -> None:
        def lose_and_take() -> None:
            world.recovery.forget()
            world.wanted(0)

        world.wanted(0)
        world.said = {1: {0: LogEnd(1, 5)}}
        world.meanwhile = lose_and_take
        assert await world.look() == []
        world.meanwhile = lambda: None
        (told,) = await world.look()
        assert told["leader_epochs"] == [world.epoch()]

    run([[1]], scenario)


def test_what_was_said_under_another_leader_epoch_does_not_count() -> None:
    async def scenario(world: World) -> None:
        world.wanted(0)
        world.said = {1: {0: LogEnd(1, 5)}}
        await world.look()
        before = world.epoch()
        elected = {"request_id": "r", "topic": TOPIC, "partitions": [0]}
        world.cluster.happen(
            "elect_leaders_requested", TOPIC, elected | {"election_type": "unclean"}
        )
        world.cluster.happen("broker_registrations_changed", "", {"unregistered": [1]})
        world.said = {2: {0: LogEnd(1, 6)}}
        assert await world.look() == [], "broker 1 has to say it again"
        assert world.epoch() > before

    run([[1, 2, 7]], scenario)


def test_the_task_works_while_something_waits_and_forgets_what_it_is_told_to() -> None:
    async def scenario(world: World) -> None:
        failures: list[BaseException] = []
        world.recovery.start(failures.append)
        await asyncio.sleep(0.01)
        assert world.asked == []
        world.wanted(0)
        await asyncio.sleep(0.01)
        assert world.asked == [{1: [0]}]
        world.recovery.forget()
        assert world.recovery.waiting == 0
        await world.recovery.stop()
        assert failures == []

    run([[1, 7]], scenario)
