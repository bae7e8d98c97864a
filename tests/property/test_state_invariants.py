"""What holds after every event, whatever happened before."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import orjson
from hypothesis import given

from checkpoints.machine_format import decode_machine
from checkpoints.replay import States, fold_batch
from state.blocks import decode_block
from state.cluster.authority import Phase
from state.decisions import ELECTIONS, Action, DecisionKind, Rule
from state.events import Event
from state.matrix import NONE, Bools, contains, unpad
from state.merge import MergedDecision
from state.partitions.legal import PartitionState, ReplicaState
from state.partitions.slot import Slot
from state.routing import GROUP_SLOTS, Layout
from tests.fixtures.story import OURSELVES
from tests.logs.log_parts import lists_of
from tests.logs.state_logs import PLAUSIBLE_LOGS

ADOPTING = {"topic_observed", "partition_states_observed", "controller_elected"}
TOPIC_WRITES = {DecisionKind.REWRITE_ASSIGNMENT, DecisionKind.COMPLETE_REASSIGNMENT}
Place = tuple[str, int]


@dataclass(frozen=True, slots=True)
class Row:
    """A partition with a state znode, as a slot holds it."""

    leader: int
    leader_epoch: int
    isr: tuple[int, ...]
    recovery: int
    zk_version: int


@dataclass(slots=True)
class Watch:
    """What has been seen of a whole run.

    awaited: topics that are read again; an election forgets them. deleting: partitions in deletion.
    lives counts how often a partition's state began anew: its topic went, or its znode did. rows
    are those of the last event; kept those before a load, which begins with an empty table.
    """

    awaited: set[str] = field(default_factory=set)
    deleting: set[Place] = field(default_factory=set)
    leaders: dict[tuple[Place, int, int], int] = field(default_factory=dict)
    lives: dict[Place, int] = field(default_factory=dict)
    rows: dict[Place, Row] = field(default_factory=dict)
    kept: dict[Place, Row] = field(default_factory=dict)

    def see(self, event: Event, slot: Slot, decisions: list[MergedDecision]) -> None:
        """Check everything after one event."""
        rows = rows_of(slot)
        written = check_blocks(slot, rows, decisions, self.deleting)
        self.deleting = set(places_of(slot, slot.table.in_deletion()))
        check_rewrites(slot, decisions)
        self.await_topics(event, slot)
        if slot.authority.is_active:
            check_table(slot)
            assert self.awaited >= slot.table.deletions.keys() - names_of(slot)
        else:
            assert not written
        if event.kind not in ADOPTING:
            self.check_writes(rows, written)
        self.rows = rows
        if event.kind == "topic_removed":
            self.forget({place for place in self.kept if place[0] == event.key})
        if slot.authority.phase is not Phase.LOADING:
            self.check_history(rows)

    def await_topics(self, event: Event, slot: Slot) -> None:
        """Note a topic that is forgotten until it was read again."""
        if event.kind == "topic_removed":
            again = orjson.loads(event.payload).get("observed_again")
            (self.awaited.add if again else self.awaited.discard)(event.key)
        self.awaited -= names_of(slot)
        if event.kind == "controller_elected":
            self.awaited.clear()

    def check_writes(self, rows: dict[Place, Row], written: set[Place]) -> None:
        """Exactly what changed is written, and each write costs one version."""
        changed = {
            place for place, row in rows.items() if place in self.rows and row != self.rows[place]
        }
        new = rows.keys() - self.rows.keys()
        assert written == changed | new
        for place in changed:
            assert rows[place].zk_version == self.rows[place].zk_version + 1

    def forget(self, places: Set[Place]) -> None:
        """What comes at these places from now on is another partition."""
        for place in places:
            self.kept.pop(place)
            self.lives[place] = self.lives.get(place, 0) + 1

    def check_history(self, rows: dict[Place, Row]) -> None:
        """Epochs only rise, and an epoch has one leader."""
        self.forget(self.kept.keys() - rows.keys())
        for place, row in rows.items():
            before = self.kept.get(place)
            if before is not None:
                assert row.leader_epoch >= before.leader_epoch
                assert row.zk_version >= before.zk_version
                if row.leader != before.leader:
                    assert row.leader_epoch > before.leader_epoch
            if row.leader >= 0:
                term = (place, self.lives.get(place, 0), row.leader_epoch)
                assert self.leaders.setdefault(term, row.leader) == row.leader
        self.kept = rows


def names_of(slot: Slot) -> set[str]:
    """Return the topics that a slot knows."""
    return {topic.name for topic in slot.table.topics}


def places_of(slot: Slot, mask: Bools) -> dict[Place, int]:
    """Return the rows where mask bool[n] holds, by topic and partition."""
    rows, topics = slot.table.rows, slot.table.topics
    return {
        (topics[rows.topic[at]].name, int(rows.partition[at])): at
        for at in np.flatnonzero(mask).tolist()
    }


def rows_of(slot: Slot) -> dict[Place, Row]:
    """Return the rows that have a state znode, by topic and partition."""
    rows = slot.table.rows
    return {
        place: Row(
            int(rows.leader[at]),
            int(rows.leader_epoch[at]),
            tuple(unpad(rows.isr[at])),
            int(rows.recovery[at]),
            int(rows.zk_version[at]),
        )
        for place, at in places_of(slot, rows.has_state).items()
    }


def check_blocks(
    slot: Slot, rows: dict[Place, Row], decisions: list[MergedDecision], deleting: Set[Place]
) -> set[Place]:
    """What is decided about a partition is what the slot then holds, and nobody is elected for one
    that was in deletion before; return what is written.
    """
    written = set()
    for decision in decisions:
        if decision.kind is not DecisionKind.CHANGE_PARTITIONS:
            continue
        columns, extra = decode_block(decision.body)
        assert extra["controller_epoch"] == slot.authority.epoch
        for at, partition in enumerate(columns["partition"].tolist()):
            place = (extra["topics"][columns["topic"][at]], partition)
            assert row_in_block(columns, at) == rows[place]
            if columns["actions"][at] & Action.WRITE:
                written.add(place)
                assert columns["controller_epoch"][at] == slot.authority.epoch
                assert hears_of_its_epoch(slot, columns, at)
            assert not columns["actions"][at] & Action.CREATE or rows[place].zk_version == 0
            if columns["actions"][at] & Action.DELETED:
                assert not columns["actions"][at] & Action.LEADER_AND_ISR
                assert columns["rule"][at] not in ELECTIONS or place not in deleting
    return written


def hears_of_its_epoch(slot: Slot, columns: dict[str, Any], at: int) -> bool:
    """Return whether a leader whose epoch rose is told, if its broker is there: an ISR that it
    asked for itself keeps the epoch, and of what is being deleted nobody is told.
    """
    leader = int(columns["leader"][at])
    told = columns["replicas"][at][columns["recipients"][at]].tolist()
    quiet = columns["rule"][at] == Rule.ISR_ALTERED_BY_LEADER
    quiet |= bool(columns["actions"][at] & Action.DELETED)
    return quiet or leader in told or leader not in slot.brokers.by_id


def check_rewrites(slot: Slot, decisions: list[MergedDecision]) -> None:
    """An assignment that is written last is what the slot then holds, and does not name ourselves,
    unless there is nobody else or we are to be removed; each write expects the version that the one
    before leaves.
    """
    written: dict[str, dict[str, Any]] = {}
    for decision in decisions:
        if decision.kind in TOPIC_WRITES:
            body = orjson.loads(decision.body)
            before = written.get(body["topic"])
            assert before is None or body["expected_version"] == before["expected_version"] + 1
            written[body["topic"]] = body
    for topic, body in written.items():
        at, rows = slot.table.rows_of(topic), slot.table.rows
        numbers = list(map(str, rows.partition[at].tolist()))
        held = dict(zip(numbers, map(unpad, rows.replicas[at]), strict=True))
        assert body["assignment"] == held
        for number, replicas in held.items():
            alone = replicas == [OURSELVES] and not slot.brokers.by_id
            going = OURSELVES in body["removing"].get(number, [])
            assert OURSELVES not in replicas or alone or going
        for name, mask in (("adding", rows.adding[at]), ("removing", rows.removing[at])):
            lists = zip(numbers, lists_of(rows.replicas[at], mask), strict=True)
            assert body[name] == {number: ids for number, ids in lists if ids}


def row_in_block(columns: dict[str, Any], at: int) -> Row:
    """Return one row of change_partitions."""
    return Row(
        int(columns["leader"][at]),
        int(columns["leader_epoch"][at]),
        tuple(unpad(columns["isr"][at])),
        int(columns["recovery"][at]),
        int(columns["partition_epoch"][at]),
    )


def check_table(slot: Slot) -> None:
    """A partition has a leader from its ISR whenever one of them can lead; none is there twice."""
    rows = slot.table.rows
    places = list(zip(rows.topic.tolist(), rows.partition.tolist(), strict=True))
    assert len(set(places)) == len(places)
    check_motions(slot)
    check_deletions(slot)
    deleting = slot.table.in_deletion()
    absent = (rows.replicas != NONE) & (rows.replica_state == ReplicaState.NON_EXISTENT)
    assert not absent[~deleting].any(), "a replica is listed and was never started"
    members = slot.online_members(np.arange(len(rows)))
    for at in np.flatnonzero(rows.has_state).tolist():
        isr, assigned = unpad(rows.isr[at]), unpad(rows.replicas[at])
        leader = int(rows.leader[at])
        assert isr
        assert len(set(isr)) == len(isr)
        assert set(isr) <= set(assigned)
        if deleting[at]:  # what others write there is taken as it is: nobody is to lead any more
            continue
        failed = rows.replicas[at][rows.offline_dir[at]].tolist()
        gone = [one for one in isr if one not in slot.brokers.by_id or one in failed]
        assert not gone or (leader, isr) == (-1, gone[:1]), "a dead member is still in sync"
        if rows.state[at] == PartitionState.ONLINE:
            assert leader in isr
            assert leader in slot.brokers.by_id
            assert leader not in failed
        else:
            assert not members[at].any(), "a member could lead"
            (online,) = slot.online_replicas(np.array([at]))
            assert leader == -1 or leader not in rows.replicas[at][online]
        if slot.brokers.live_ids.size and leader == -1:
            assert rows.state[at] != PartitionState.ONLINE


def check_motions(slot: Slot) -> None:
    """Nothing waits that could end; who comes and who goes are not the same."""
    rows = slot.table.rows
    assert not (rows.adding & rows.removing).any()
    target = (rows.replicas != NONE) & ~rows.removing
    in_sync = contains(rows.isr, rows.replicas)
    online = slot.online_replicas(np.arange(len(rows)))
    ended = (in_sync | ~target).all(axis=1) & (target & in_sync & online).any(axis=1)
    moving = rows.in_motion(np.arange(len(rows))) & rows.has_state
    ours = rows.controller_epoch <= slot.authority.epoch
    assert not (moving & ended & ours).any()


def check_deletions(slot: Slot) -> None:
    """Replicas are deleted in started deletions alone, by brokers that are there; a deletion that
    is not halted, and not held by a reassignment, has something to wait for.
    """
    rows, deletions = slot.table.rows, slot.table.deletions
    started = slot.table.is_of(name for name in deletions if deletions[name].started)
    in_deletion = rows.replica_state >= ReplicaState.DELETION_STARTED
    assert not in_deletion[~started].any()
    assert (rows.state[started] == PartitionState.NON_EXISTENT).all()
    told = rows.replica_state == ReplicaState.DELETION_STARTED
    assert np.isin(rows.replicas[told], list(slot.brokers.by_id)).all()
    for name in deletions.keys() & names_of(slot):
        if not deletions[name].halted and name not in slot.table.deletions_held_by_reassignment():
            assert told[slot.table.rows_of(name)].any()


@given(log=PLAUSIBLE_LOGS)
def test_invariants_hold_after_every_event(log: list[Event]) -> None:
    states: States = {}
    watch = Watch()
    for event in log:
        decisions = fold_batch(states, [event], Layout(1, GROUP_SLOTS))
        slot = decode_machine(states[0]) if 0 in states else Slot()
        assert isinstance(slot, Slot)
        watch.see(event, slot, decisions)
