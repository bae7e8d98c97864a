"""The cluster of one scenario: machines as state bytes, the log, the store and what was decided.

Machines are only touched through `checkpoints.fold.fold_state` (or, where a scenario drives one
transition, decoded, moved and encoded again), and their decisions only reach the store by way of
`state.merge.merge` and the sink.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import orjson

from checkpoints.fold import fold_state
from checkpoints.machine_format import decode_machine
from state.cluster.authority import Phase
from state.decisions import Decision
from state.events import Event
from state.merge import MergedDecision, merge
from state.partitions.slot import Slot
from state.routing import CLUSTER_KEY, GROUP_SLOTS, Layout, machine_keys, scope
from streaming.front.load_events import TOPIC_IDS_SINCE
from streaming.sinks.batch import SinkDecision
from tests.conformance import names
from tests.fixtures.fake_zookeeper import FakeZooKeeper
from tests.fixtures.observed_topics import topic_now

SLOTS = 3
CONTROLLER_ID = 1000
"""Our own id. The scenarios' controller is one of their brokers; ours is a node that holds none of
the replicas, and it takes itself out of assignments.
"""


@dataclass(frozen=True, slots=True)
class Rpc:
    """One partition of a request to one broker."""

    broker: int
    api: str
    partition: str
    fields: dict[str, Any]


@dataclass(slots=True)
class World:
    """All that a scenario has; the lists hold what came out since `given`."""

    store: FakeZooKeeper = field(default_factory=FakeZooKeeper)
    machines: dict[int, bytes] = field(default_factory=dict)
    brokers: dict[int, tuple[int, str | None]] = field(default_factory=dict)
    config: dict[str, Any] = field(default_factory=dict)
    told: list[int] = field(default_factory=list)
    keep_dead: bool = False
    brokers_answer: bool = False
    strict: bool = False
    timers: dict[str, int] = field(default_factory=dict)
    rpcs: list[Rpc] = field(default_factory=list)
    replies: list[dict[str, Any]] = field(default_factory=list)
    refusals: list[dict[str, Any]] = field(default_factory=list)
    remaining: list[str] = field(default_factory=list)
    failed_disks: set[tuple[int, str, int]] = field(default_factory=set)
    calls: dict[str, int] = field(default_factory=dict)
    resigned: str | None = None
    controller_broker: int | None = None
    paused: bool = False
    conflicts: set[tuple[int, str]] = field(default_factory=set)
    answer: dict[str, Any] = field(default_factory=dict)
    epoch_in_batch: int | None = None
    proposals: SinkDecision | None = None
    protocol: tuple[int, int] = (3, 9)
    watched: frozenset[str] = frozenset()
    labels: dict[str, str] = field(default_factory=dict)
    at_risk: SinkDecision | None = None
    _pending: list[Event] = field(default_factory=list)
    _offset: int = 0

    def happen(self, kind: str, key: str = "", **body: Any) -> None:
        """Append an event to the log; `sink.settle` folds it."""
        time_ms = 1_000 + self._offset * 10
        self._pending.append(Event(self._offset, time_ms, kind, key, orjson.dumps(body)))
        self._offset += 1

    def topic_now(self, topic: str) -> dict[str, Any]:
        """Return the body of topic_observed for a topic of the store; one without an id gets one:
        what the scenario calls it, if it does.
        """
        label = self.labels.get(topic, f"minted for {topic}")
        minted = names.topic_id(label) if self.protocol >= TOPIC_IDS_SINCE else None
        return topic_now(self.store, topic, minted)

    def take_batch(self) -> list[Event]:
        """Return the events nobody has folded yet; none while the job is paused."""
        if self.paused:
            return []
        batch, self._pending = self._pending, []
        return batch

    def fold(self, batch: list[Event]) -> list[MergedDecision]:
        """Fold one batch into every machine it concerns, as the streaming operator does."""
        by_key: dict[int, list[Event]] = {}
        for event in batch:
            for key in machine_keys(scope(event.kind, event.key), Layout(SLOTS, GROUP_SLOTS)):
                by_key.setdefault(key, []).append(event)
        found: list[Decision] = []
        for key, events in by_key.items():
            self.machines[key], decisions = fold_state(key, self.machines.get(key), events)
            found.extend(decisions)
        return merge(found)

    def next_offset(self) -> int:
        """Return an offset for what is driven past the log."""
        self._offset += 1
        return self._offset - 1

    def slots(self) -> Iterator[tuple[int, Slot]]:
        """Yield the key and the decoded machine of every slot."""
        for key in range(SLOTS):
            if key in self.machines:
                machine = decode_machine(self.machines[key])
                assert isinstance(machine, Slot)
                yield key, machine

    def slot_key(self, topic: str) -> int:
        """Return the key of the slot that has a topic."""
        return machine_keys(scope("topic_observed", topic), Layout(SLOTS, GROUP_SLOTS))[0]

    def row(self, topic: str, partition: int) -> tuple[Slot, int] | None:
        """Return a partition's slot and row number, None when no slot knows it."""
        for _, slot in self.slots():
            for row in slot.table.rows_of(topic).tolist():
                if slot.table.rows.partition[row] == partition:
                    return slot, row
        return None

    def phases(self) -> set[Phase]:
        """Return the phases the machines are in."""
        keys = [*range(SLOTS), CLUSTER_KEY]
        return {
            decode_machine(self.machines[key]).authority.phase
            for key in keys
            if key in self.machines
        }

    def count(self, call: str) -> None:
        """Count one call of the kind Kafka's tests count."""
        self.calls[call] = self.calls.get(call, 0) + 1
