"""All parts of the front that coordinate groups, with machines that decide and made-up brokers."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from state.groups.tables import CoordinatorPhase
from streaming.front.groups.assembly import Groups
from streaming.internal_topics import GROUP_TOPIC
from streaming.settings_loader import load_settings
from tests.fixtures.waiting import WAIT_S
from tests.unit.front.group_world import PARTITIONS, GroupWorld


class FrontWorld(GroupWorld):
    """A GroupWorld whose parts take over by themselves."""

    def __init__(self) -> None:
        super().__init__()
        chosen = ["groups.takeover.enable=true", "group.initial.rebalance.delay.ms=0"]
        self.parts = Groups(
            load_settings(overrides=chosen),
            self,
            self.append,
            self.cluster,
            lambda: self.time.now_ms,
            node_role=self.node_role,
            topic_exists=self.in_zookeeper.__contains__,
            min_insync_replicas=lambda _: self.min_insync_replicas,
            counters=self.counters,
        )
        self.failures: list[BaseException] = []
        self.leader = self.parts.leader
        self.sessions = self.parts._sessions
        self.groups = self.parts._coordination
        self.requests = self.parts._requests

    async def submit(
        self, kind: str, key: str, payload: dict[str, Any], timeout_s: float
    ) -> dict[str, Any]:
        reply = await self.cluster.submit(kind, key, payload, timeout_s)
        self.let_see()
        return reply

    def let_see(self) -> None:
        """Let the parts see the cluster as it is."""
        gone, self.cluster.gone = self.cluster.gone, []
        self.parts.look_at(self.cluster.known, gone)

    async def take_over(self, found: Mapping[str, Mapping[str, Any]] | None = None) -> None:
        self.let_see()
        self.parts.start(self.failures.append)
        await self.served(1)

    async def served(self, times: int) -> None:
        """Wait until everything was taken over so often, and is served; brokers follow."""
        async with asyncio.timeout(WAIT_S):
            while len(self.epochs()) < times or not self._all_served():
                assert not self.failures
                self.follow()
                self.groups.batch_completed(len(self.events))
                await asyncio.sleep(0.01)

    def epochs(self) -> list[int]:
        """The leader epochs with which partitions were taken over, in order."""
        return [one["epoch"] for one in self.payloads("group_partitions_elected")]

    def _all_served(self) -> bool:
        return self.groups.phases() == [CoordinatorPhase.OWNED] * PARTITIONS

    def delete_group_topic(self) -> None:
        self.cluster.happen(
            "delete_topic_requested", GROUP_TOPIC, {"request_id": "r", "topic": GROUP_TOPIC}
        )
        self.cluster.remove(GROUP_TOPIC)

    def make_group_topic_again(self) -> None:
        self.cluster.create(GROUP_TOPIC, [[1, 2]] * PARTITIONS, "b" * 21 + "A")
