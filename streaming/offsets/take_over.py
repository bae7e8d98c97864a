"""Takes the leadership of __consumer_offsets from the brokers, by partition, and keeps it.

elected (leader epochs are raised, brokers told) -> begun (brokers in sync say how far they are)
-> loaded (what stands there has become events). All of it is done again whenever what was decided
since may be unknown here: after a claim of the role, and after the job came back; and when the
topic is another one. While an operator has paused the controller nothing is elected: what is led
then stays led, the rest waits.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Protocol

from state.event_kinds import EventKind
from state.protocol_errors import ProtocolError, error_text
from streaming.gateway.ports import DecisionClient, DecisionTimedOut, NotController
from streaming.internal_topics import GROUP_TOPIC
from streaming.offsets.follower import UNKNOWN
from streaming.offsets.isr_maintenance import IsrMaintenance
from streaming.offsets.leader import OffsetsLeader
from streaming.offsets.node_role import NodeRole
from streaming.offsets.partition_loads import FIRST_PAUSE_S, LONGEST_PAUSE_S, PartitionLoads
from streaming.offsets.term_over import TermOver
from streaming.process.back_off import BackOff
from streaming.process.counters import Counters

logger = logging.getLogger(__name__)

_LOOK_S = 1.0
_PAUSE_S = 1.0
_ENDS_A_TERM = (NotController, DecisionTimedOut, TermOver, TimeoutError)


class Coordinator(Protocol):
    """Who is told how far partitions are: streaming.front.groups.coordination."""

    def elected(self, partitions: dict[int, int]) -> None:
        """Partitions (number: leader epoch) are led by us, and not loaded."""

    async def load(self, partition: int, end: int) -> None:
        """Read a partition up to an offset and append what stands there.

        Raises HistoryUnreadable, UnreadableBatch, before anything is appended.
        """

    def resigned(self) -> None:
        """Nothing is led any more."""


class TakeOver:
    """Runs for as long as the front does, on its event loop; `restart` makes it begin again."""

    def __init__(
        self,
        leader: OffsetsLeader,
        decision_client: DecisionClient,
        isr_maintenance: IsrMaintenance,
        coordinator: Coordinator,
        *,
        node_role: NodeRole,
        counters: Counters,
        timeout_s: float,
    ) -> None:
        """Prepare; a term begins when this node decides, and outlives the job: what is known is
        answered while a new one starts.
        """
        self._counters = counters
        self._leader = leader
        self._decision_client = decision_client
        self._isr_maintenance = isr_maintenance
        self._coordinator = coordinator
        self._node_role = node_role
        self._timeout_s = timeout_s
        self._stale = asyncio.Event()
        self._back_off = BackOff(FIRST_PAUSE_S, LONGEST_PAUSE_S)
        self._loads = self._no_loads()

    @property
    def failures(self) -> Mapping[int, str]:
        """Why partitions of this term are not loaded so far, by number: whom they wait for, or what
        failed.
        """
        waiting = {
            log.partition: f"waits for brokers {awaited} to fetch"
            for log in self._leader.logs.values()
            if (awaited := self._leader.awaited(log))
        }
        return {**waiting, **self._loads.failures}

    def restart(self) -> None:
        """End the present term: what was decided since may not be known here. Nothing that waits is
        safe by an ISR which may be an older one.
        """
        self._stale.set()
        self._leader.stop()

    async def run(self) -> None:
        """Take over whenever it is possible; cancel to stop."""
        task = asyncio.current_task()
        assert task is not None
        while True:
            self._stale.clear()
            if self._node_role.decides() and self._to_take():
                try:
                    await self._term()
                except* _ENDS_A_TERM as errors:
                    logger.info("groups are taken over again: %r", errors.exceptions)
                finally:
                    self._leader.stop()
                    self._coordinator.resigned()
                if task.cancelling():
                    return  # a TaskGroup of which a task has just failed raises its error alone
                if not self._loads.any_done and not self._stale.is_set():
                    await self._back_off_a_while()
            await asyncio.sleep(_PAUSE_S)

    async def _back_off_a_while(self) -> None:
        """Leave brokers alone after a term in which nothing was loaded, until it is begun anew."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._back_off.pause_s()):
                await self._stale.wait()

    def _to_take(self) -> list[int]:
        """Return the partitions that have a leader and are not led by us; none during a pause, and
        when the term is over.
        """
        if self._node_role.is_paused() or self._stale.is_set():
            return []
        facts = self._leader.facts.values()
        led = self._leader.logs
        return [one.partition for one in facts if one.leader >= 0 and one.partition not in led]

    def _no_loads(self) -> PartitionLoads:
        return PartitionLoads(self._coordinator.load, time.monotonic, self._counters)

    async def _term(self) -> None:
        self._loads = self._no_loads()
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._until_stale())
            tasks.create_task(_forever(self._isr_maintenance.look))
            while True:
                if not self._node_role.is_controller():
                    raise NotController("the role is lost")
                if lost := self._leader.lost():
                    logger.error("partitions %s: brokers in sync do not show what was safe", lost)
                    raise TermOver(f"partitions {lost} go on from what brokers in sync have")
                if taken := self._to_take():
                    await self._elect(taken)
                self._loads.look(self._leader.logs.values(), tasks)
                if self._loads.any_done:
                    self._back_off.reset()
                await self._leader.changed(_LOOK_S)

    async def _until_stale(self) -> None:
        await self._stale.wait()
        raise TermOver("it is begun anew")

    async def _elect(self, partitions: Sequence[int]) -> None:
        """Raise the leader epochs, so that all are newer than what brokers were told.

        We lead from before that on: brokers fetch as soon as they hear of it.
        """
        before = {one: self._leader.facts[one].leader_epoch for one in partitions}
        self._leader.lead(partitions)
        kind = EventKind.RAISE_LEADER_EPOCHS_REQUESTED
        payload = {"topic": GROUP_TOPIC}
        reply = await self._decision_client.submit(kind, GROUP_TOPIC, payload, self._timeout_s)
        if reply["error"] != ProtocolError.NONE:
            raise TermOver(f"leader epochs were not raised: error {error_text(reply['error'])}")
        facts = self._leader.facts
        told = {one: facts[one].announced_epoch for one in partitions if one in facts}
        if stale := [one for one in partitions if told.get(one, UNKNOWN) <= before[one]]:
            raise TermOver(f"partitions {stale} were changed by somebody else meanwhile")
        self._coordinator.elected(told)


async def _forever(look: Callable[[], Awaitable[None]]) -> None:
    while True:
        await look()
        await asyncio.sleep(_LOOK_S)
