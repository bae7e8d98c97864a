"""Keeps the ISRs of the partitions that this node leads as their leader keeps them on a broker.

A change is asked for with the event of AlterPartition, in the name of ZooKeeper's leader:
to the controller it is as if that broker had asked.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterable, Sequence
from typing import Any

from state.event_kinds import EventKind
from streaming.gateway.ports import DecisionClient, Paused
from streaming.internal_topics import GROUP_TOPIC
from streaming.offsets.leader import OffsetsLeader
from streaming.offsets.partition_facts import PartitionFacts
from streaming.offsets.partition_log import PartitionLog

logger = logging.getLogger(__name__)

_ALTER_PARTITION_VERSION = 3
MEMORY_MAX_BYTES = 64 * 1024 * 1024
"""What replicas that are behind may find in memory, in all partitions together; what is not safe
yet is kept beyond it.
"""


class IsrMaintenance:
    """Asks for the ISRs that are wanted, and lets go of records that every replica has."""

    def __init__(
        self,
        leader: OffsetsLeader,
        decision_client: DecisionClient,
        *,
        lag_max_s: float,
        timeout_s: float,
    ) -> None:
        """lag_max_s: replica.lag.time.max.ms; timeout_s: how long a decision may take."""
        self._leader = leader
        self._decision_client = decision_client
        self._lag_max_s = lag_max_s
        self._timeout_s = timeout_s
        self._held_up_by: dict[int, list[int]] = {}

    async def look(self) -> None:
        """Ask for all changes that are wanted now, and wait until they are decided; while the
        controller is paused they have to wait.

        Raises NotController, DecisionTimedOut.
        """
        wanted: dict[int, list[tuple[PartitionLog, tuple[int, ...]]]] = {}
        ours = [
            (log, facts)
            for log in self._leader.logs.values()
            if (facts := self._leader.facts.get(log.partition)) is not None
            and facts.announced_as_ours
        ]
        forget_replicated(ours)
        for log, facts in ours:
            self._say_what_holds_up(log)
            isr = self._leader.wanted_isr(log, self._lag_max_s)
            if set(isr) != set(facts.isr):
                wanted.setdefault(facts.leader, []).append((log, isr))
        for leader_id, changes in wanted.items():
            # The topic may have gone while the one before was decided.
            if there := [one for one in changes if one[0].partition in self._leader.facts]:
                await self._ask(leader_id, there)

    def _say_what_holds_up(self, log: PartitionLog) -> None:
        brokers = self._leader.held_up_by(log, self._lag_max_s)
        if brokers and brokers != self._held_up_by.get(log.partition):
            text = "partition %d waits for brokers %s, which have not fetched from us for %g s"
            logger.warning(text, log.partition, brokers, self._lag_max_s)
        self._held_up_by[log.partition] = brokers

    async def _ask(
        self, leader_id: int, changes: list[tuple[PartitionLog, tuple[int, ...]]]
    ) -> None:
        payload = {
            "broker_id": leader_id,
            "broker_epoch": self._leader.broker_epoch(leader_id),
            "version": _ALTER_PARTITION_VERSION,
            "topic": GROUP_TOPIC,
            "topic_id": None,
            "partitions": [self._change(log, isr) for log, isr in changes],
        }
        kind = EventKind.ALTER_PARTITION_REQUESTED
        with contextlib.suppress(Paused), contextlib.ExitStack() as asking:
            for log, isr in changes:
                asking.enter_context(log.asking_for(isr, self._leader.facts[log.partition].isr))
            await self._decision_client.submit(kind, GROUP_TOPIC, payload, self._timeout_s)
            for log, isr in changes:
                logger.info("partition %d: the ISR was to be %s", log.partition, list(isr))

    def _change(self, log: PartitionLog, isr: Iterable[int]) -> dict[str, Any]:
        facts = self._leader.facts[log.partition]
        return {
            "partition": log.partition,
            "leader_epoch": facts.leader_epoch,
            "partition_epoch": facts.partition_epoch,
            "recovery": facts.recovery,
            "isr": list(isr),
        }


def forget_replicated(ours: Sequence[tuple[PartitionLog, PartitionFacts]]) -> None:
    """Let go of what all online replicas have, and when the rest is too much in all partitions
    together, of what is safe: of the largest partitions first, until it is not.

    What was let go of is read from a broker in sync when a replica asks for it.
    """
    for log, facts in ours:
        positions = [log.follower(broker).position for broker in facts.online]
        if log.begun and positions:
            log.forget_before(min(*positions, log.high_watermark))
    held_bytes = sum(log.memory_bytes for log, _ in ours)
    for log, _ in sorted(ours, key=lambda one: -one[0].memory_bytes):
        if held_bytes <= MEMORY_MAX_BYTES:
            return
        before = log.memory_bytes
        log.forget_before(log.high_watermark)
        held_bytes -= before - log.memory_bytes
