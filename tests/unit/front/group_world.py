"""The front's group coordination on real sockets: machines decide, made-up brokers follow."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import asynccontextmanager
from typing import Any

import orjson

from state.decisions import DecisionKind
from state.event_kinds import EventKind
from state.events import Event
from state.groups.tables import CoordinatorPhase
from state.routing import GROUP_KEY, Layout, machine_keys, scope
from state.step import fold, new_machine
from streaming.front.groups.coordination import GroupCoordination
from streaming.front.groups.sessions import Sessions
from streaming.gateway.apis import build_apis
from streaming.gateway.connection import Limits
from streaming.gateway.groups.apis import group_apis
from streaming.gateway.groups.requests import GroupRequests
from streaming.gateway.groups.transactions import Producing, Transactions
from streaming.gateway.server import Gateway
from streaming.internal_topics import GROUP_TOPIC
from streaming.log.api import NewRecord
from streaming.offsets.history import History
from streaming.offsets.leader import OffsetsLeader
from streaming.offsets.node_role import NodeRole
from streaming.security.connector import Connector
from streaming.settings_loader import load_settings
from tests.fixtures.documented_events import assert_documented
from tests.unit.front.standing_time import StandingTime
from tests.unit.gateway.support import LISTENERS, FakeCluster, Rig, node_config

PARTITIONS = 4
TIMEOUT_S = 20.0


class GroupWorld:
    """Events are folded at once, at a time that stands still until `pass_ms`.

    following: whether brokers take records; held: decisions wait, as while a batch runs; has_job:
    whether somebody decides.
    """

    def __init__(self, *options: str, partitions: int = PARTITIONS) -> None:
        self.cluster = FakeCluster()
        self.cluster.create(GROUP_TOPIC, [[1, 2]] * partitions)
        self.cluster.create("t", [[1, 2]] * 2)
        self.in_zookeeper = {"t"}
        self.raise_epochs()
        self.events: list[Event] = []
        self.following = True
        self.has_job = True
        self.min_insync_replicas = 1
        self.held: list[tuple[int, bytes]] | None = None
        self.decided: list[bytes] = []
        self.timers: dict[str, int] = {}
        self.counters: Counter[str] = Counter()
        self.time = StandingTime()
        self.machine = new_machine(GROUP_KEY)
        loop = asyncio.get_running_loop()
        self.leader = OffsetsLeader(loop.time, lambda: self.min_insync_replicas)
        self.leader.look_at(self.cluster.known, self.cluster.partition_count(GROUP_TOPIC))
        settings = load_settings(overrides=["group.initial.rebalance.delay.ms=0", *options])
        history = History(self.leader, self.cluster.image, "INTERNAL", Connector(), TIMEOUT_S)
        self.node_role = NodeRole(
            self.cluster.is_controller, lambda: self.has_job, is_paused=lambda: False
        )
        self.sessions = Sessions(
            self.time, self.append, lambda: self.time.now_ms, decides=self.node_role.decides
        )
        self.groups = GroupCoordination(
            settings,
            self.leader,
            history,
            self.append,
            self.sessions,
            node_role=self.node_role,
            topic_exists=self.in_zookeeper.__contains__,
            counters=self.counters,
        )
        self.look()
        self.transactions = Transactions(self._verify)
        self.verification_error = 0
        self.requests = GroupRequests(
            self.groups, TIMEOUT_S, settings.groups_max, self.transactions
        )

    def raise_epochs(self) -> None:
        """Raise the leader epochs of the topic, as each term begins."""
        body = {"request_id": "r", "topic": GROUP_TOPIC}
        self.cluster.happen("raise_leader_epochs_requested", GROUP_TOPIC, body)

    def look(self) -> None:
        """Let the groups' part see the cluster as it is."""
        gone, self.cluster.gone = self.cluster.gone, []
        self.leader.look_at(self.cluster.known, self.cluster.partition_count(GROUP_TOPIC))
        self.groups.look_at(self.cluster.known, gone)

    def delete_topic(self, name: str) -> None:
        """Delete a topic."""
        self.cluster.happen("delete_topic_requested", name, {"request_id": "r", "topic": name})
        self.in_zookeeper.discard(name)
        self.look()

    def create_topic_again(self, name: str) -> None:
        """Create a topic that was deleted, under a new id."""
        self.cluster.remove(name)
        self.cluster.create(name, [[1, 2]] * 2, f"{name:_<20.20}2A")
        self.in_zookeeper.add(name)
        self.look()

    async def _verify(self, producing: Producing) -> int:
        assert (producing.transactional_id, producing.producer_id) == ("x", 9)
        return self.verification_error

    async def take_over(self, found: Mapping[str, Mapping[str, Any]] | None = None) -> None:
        """Lead all partitions, which are empty but for the groups that are found, and serve them;
        found: what group_observed says of a group's metadata, by name.
        """
        self.leader.lead(list(self.leader.facts))
        self.raise_epochs()
        self.look()
        self.follow()
        await self.elect()
        for group, metadata in (found or {}).items():
            self._observed(group, metadata)
        await self.load()

    async def elect(self) -> None:
        """Say that all partitions are led, and not loaded."""
        self.groups.elected({one: log.epoch for one, log in self.leader.logs.items()})
        await asyncio.sleep(0)

    async def load(self) -> None:
        """Load all partitions, and serve them."""
        for partition, log in self.leader.logs.items():
            await self.groups.load(partition, log.end)
        self.groups.batch_completed(self.events[-1].offset + 1)
        assert set(self.groups.phases()) == {CoordinatorPhase.OWNED}

    def _observed(self, group: str, metadata: Mapping[str, Any]) -> None:
        partition = self.groups.partition_of(group)
        body = {
            "partition": partition,
            "epoch": self.leader.logs[partition].epoch,
            "group": group,
            "metadata": metadata,
            "offsets": [],
            "pending": [],
        }
        self.append([NewRecord("group_observed", group, orjson.dumps(body))])

    async def keep_following(self) -> None:
        """Let the brokers have what is appended, while they take records."""
        while True:
            await self.leader.changed(60)
            if self.following:
                self.follow()

    def follow(self) -> None:
        """Let the brokers have everything."""
        for log in self.leader.logs.values():
            for broker in (1, 2):
                self.leader.fetched(log, broker, max(log.end, 0), log.epoch)

    def resume_following(self) -> None:
        """Let the brokers take records again, and have what they missed."""
        self.following = True
        self.follow()

    def append(self, records: Sequence[NewRecord]) -> Future[range]:
        """Fold events, and hand the decisions over in the loop's next turn."""
        for record in self.sessions.heartbeats_before(records):
            self._fold(record)
        start = len(self.events)
        for record in records:
            self._fold(record)
        done: Future[range] = Future()
        done.set_result(range(start, len(self.events)))
        return done

    def _fold(self, record: NewRecord) -> None:
        event = Event(len(self.events), self.time.now_ms, record.kind, record.key, record.payload)
        self.events.append(event)
        assert_documented(event.kind, orjson.loads(event.payload))
        assert machine_keys(scope(event.kind, event.key), Layout(1, 1)) == (GROUP_KEY,)
        for decision in fold(self.machine, [event]):
            assert decision.kind is not DecisionKind.SET_ASIDE, decision
            if decision.kind is DecisionKind.ARM_TIMER:
                timer = orjson.loads(decision.body)
                self.timers[timer["timer"]] = timer["deadline_ms"]
            else:
                self.decided.append(decision.body)
                self._hand_over((event.offset, decision.body))

    def happen(self, kind: str, bucket: int) -> None:
        """Append an event about a bucket."""
        body: dict[str, Any] = {}
        if kind == EventKind.GROUP_TIMER_DUE:
            body = {"timer": f"groups/{bucket}", "deadline_ms": self.time.now_ms}
        self.append([NewRecord(kind, str(bucket), orjson.dumps(body))])

    def _hand_over(self, decision: tuple[int, bytes]) -> None:
        if self.held is not None:
            self.held.append(decision)
            return
        loop = asyncio.get_running_loop()
        loop.call_soon(self.groups.decisions.apply, [decision])
        if self.following:
            loop.call_soon(self.follow)

    def release(self) -> None:
        """Hand over what was held."""
        held, self.held = self.held or [], None
        for decision in held:
            self._hand_over(decision)

    def pass_ms(self, ms: int) -> None:
        """Let time pass, and the timers fire that are due by then."""
        end_ms = self.time.now_ms + ms
        while due := [one for one in self.timers.items() if one[1] <= end_ms]:
            timer, deadline_ms = min(due, key=lambda one: one[1])
            del self.timers[timer]
            self.time.pass_to(deadline_ms)
            body = orjson.dumps({"timer": timer, "deadline_ms": deadline_ms})
            self.append([NewRecord("group_timer_due", timer.removeprefix("groups/"), body)])
        self.time.pass_to(end_ms)

    def payloads(self, kind: str) -> list[dict[str, Any]]:
        """Payloads of the events of a kind, in order."""
        return [orjson.loads(event.payload) for event in self.events if event.kind == kind]


@asynccontextmanager
async def coordinating(
    *options: str, made: Callable[..., GroupWorld] = GroupWorld
) -> AsyncIterator[tuple[GroupWorld, Rig]]:
    """A gateway that coordinates groups, all partitions taken over."""
    world = made(*options)
    node = node_config(world.cluster, announced_topic=GROUP_TOPIC)
    groups = group_apis(world.requests, static_members=True)
    apis = build_apis(world.cluster, world.cluster, node, groups)
    gateway = Gateway(LISTENERS, apis, Limits())
    await gateway.start()
    rig = Rig(world.cluster, gateway)
    try:
        await world.take_over()
        works = [world.keep_following(), world.groups.topics.run()]
        tasks = [asyncio.create_task(work) for work in works]
        yield world, rig
        for task in tasks:
            task.cancel()
    finally:
        await rig.close()
