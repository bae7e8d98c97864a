"""A copy of a cluster's machines, to which things happen that did not."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain

import numpy as np

from checkpoints.machine_format import decode_machine
from checkpoints.replay import fold_by_machine
from checkpoints.snapshot import Snapshot
from state.cluster.cluster import Cluster
from state.decisions import Decision, DecisionKind
from state.event_kinds import EventKind
from state.events import Event
from state.groups.slot import GroupSlot
from state.matrix import Rows, unpad_rows
from state.partitions.slot import Slot
from state.routing import CLUSTER_KEY, machine_keys, topic_scope
from state.step import Machine, fold, new_machine
from streaming.errors import ConfigurationError
from streaming.folding import folded_events
from streaming.log.api import NewRecord
from streaming.log.events import event
from streaming.process.wall_clock import wall_clock_ms
from streaming.rehearsal.standing import Standing, standing_of
from streaming.sinks.batch import SinkDecision, decided_batch
from streaming.sinks.batch_events import checked_shutdowns
from streaming.sinks.reports import places

_FOLLOWED = frozenset(
    {DecisionKind.CHECK_SHUTDOWN, DecisionKind.REPORT_AT_RISK, DecisionKind.ASK_LOG_ENDS}
)
"""All others are in the machines already; to open them takes a quarter of the time."""


class ClusterCopy:
    """The machine of the cluster and the slots, going on from where a checkpoint has them.

    offset: one past the last event they have folded.
    """

    def __init__(self, snapshot: Snapshot) -> None:
        """Take the machines; raises ConfigurationError when they decide nothing at present, and
        CorruptBlock.
        """
        opened = ((key, decode_machine(state)) for key, state in snapshot.states.items())
        self._machines: dict[int, Machine] = {
            key: one for key, one in opened if not isinstance(one, GroupSlot)
        }
        self._layout = snapshot.layout
        self.offset = snapshot.offset
        phase = self.cluster.authority.phase
        if not self.cluster.authority.is_active:
            raise ConfigurationError(
                f"nothing is decided at offset {snapshot.offset}, where the machines are: the"
                f" controller's phase is {phase}, not active; choose a batch where it is"
            )

    @property
    def cluster(self) -> Cluster:
        """The machine of the cluster."""
        machine = self._machine(CLUSTER_KEY)
        assert isinstance(machine, Cluster)
        return machine

    @property
    def slots(self) -> list[Slot]:
        """The partitions' machines, by key."""
        ordered = (machine for _, machine in sorted(self._machines.items()))
        return [one for one in ordered if isinstance(one, Slot)]

    def standing(self) -> Standing:
        """Return how all partitions stand now."""
        return standing_of(self.slots)

    def happens(self, *records: NewRecord) -> list[SinkDecision]:
        """Fold events, at least one, and what they lead to, if all that is decided is carried out;
        return the decisions that lead to something, those about shutdowns that are checked too.
        """
        now_ms = wall_clock_ms()
        events = [
            Event(offset, now_ms, one.kind, one.key, one.payload)
            for offset, one in enumerate(records, self.offset)
        ]
        self.offset += len(events)
        merged = fold_by_machine(self._fold, events, self._layout)
        followed = [one for one in merged if one.kind in _FOLLOWED]
        batch = decided_batch(None, folded_events(followed, events))
        asked = batch.of_kind(DecisionKind.ASK_LOG_ENDS)
        following = [*checked_shutdowns(batch), *self._log_ends(asked)]
        return batch.decisions + (self.happens(*following) if following else [])

    def _log_ends(self, asked: Iterable[SinkDecision]) -> Iterator[NewRecord]:
        """Yield what brokers say of topics: all live replicas have the same, since nobody knows
        what they have.
        """
        by_topic: dict[str, list[int]] = {}
        for topic, partition in chain.from_iterable(map(places, asked)):
            by_topic.setdefault(topic, []).append(partition)
        for topic, partitions in by_topic.items():
            (key,) = machine_keys(topic_scope(topic), self._layout)
            slot = self._machine(key)
            assert isinstance(slot, Slot)
            yield _all_alike(
                slot, topic, slot.table.find(topic, np.array(partitions, dtype=np.int32))
            )

    def _fold(self, key: int, events: list[Event]) -> list[Decision]:
        return fold(self._machine(key), events)

    def _machine(self, key: int) -> Machine:
        """Return a machine, a new one before its first event."""
        if key not in self._machines:
            self._machines[key] = new_machine(key)
        return self._machines[key]


def _all_alike(slot: Slot, topic: str, at: Rows) -> NewRecord:
    rows, live = slot.table.rows, slot.brokers.by_id
    body = {
        "topic": topic,
        "partitions": rows.partition[at].tolist(),
        "leader_epochs": rows.leader_epoch[at].tolist(),
        "logs": [
            [[one, -1, 0] for one in replicas if one in live]
            for replicas in unpad_rows(rows.replicas[at])
        ],
    }
    return event(EventKind.LOG_ENDS_REPORTED, body, topic)
