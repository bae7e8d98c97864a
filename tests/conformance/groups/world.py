"""A coordinator without a cluster: the fold, a clock, a store of records, and the image."""

from __future__ import annotations

import base64
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import orjson

from checkpoints.fold import fold_state
from checkpoints.machine_format import decode_machine, encode_machine
from state.decisions import Decision, DecisionKind
from state.events import Event
from state.groups.bucket import Bucket
from state.groups.buckets import bucket_of_timer, group_bucket
from state.groups.group import Group
from state.groups.image import GroupImage
from state.groups.slot import GroupSlot
from state.groups.tables import CoordinatorPhase
from state.merge import merge
from state.protocol_errors import ProtocolError
from state.routing import GROUP_SCOPE, Layout, machine_keys, scope
from state.step import new_machine
from streaming.gateway.coordinators import coordinator_partition
from tests.conformance.groups.store import Outcome, Store
from tests.unit.state.group_support import image_of, session_ends

SLOTS = 3
PARTITIONS = 50


def partition_for(group: str) -> int:
    """Return the partition of `__consumer_offsets` that a group belongs to."""
    return coordinator_partition(group, PARTITIONS)


def to_base64(value: str) -> str:
    """Return hex as the base64 that events carry."""
    return base64.b64encode(bytes.fromhex(value)).decode()


def to_hex(value: str) -> str:
    """Return base64 as the hex that scenarios carry."""
    return base64.b64decode(value).hex()


@dataclass(slots=True)
class World:
    """Everything a scenario acts on.

    replies: bodies by request id, each with `given_at_ms`. touched: partitions whose ownership the
    scenario has decided, or which are owned because a request came for one of their groups.
    """

    states: dict[int, bytes] = field(default_factory=dict)
    image: GroupImage = field(default_factory=GroupImage)
    store: Store = field(default_factory=Store)
    timers: dict[str, int] = field(default_factory=dict)
    replies: dict[str, dict[str, Any]] = field(default_factory=dict)
    touched: set[int] = field(default_factory=set)
    now_ms: int = 0
    offset: int = 0

    def happen(self, kind: str, key: str, payload: dict[str, Any]) -> None:
        """Append one event now, fold it, and carry out what is decided; then what came of that."""
        event = Event(self.offset, self.now_ms, kind, key, orjson.dumps(payload))
        self.offset += 1
        found: list[Decision] = []
        for machine in machine_keys(scope(kind, key), Layout(1, SLOTS)):
            self.states[machine], decisions = fold_state(machine, self.states.get(machine), [event])
            found.extend(decisions)
        self.carry_out(found)

    def carry_out(self, decisions: list[Decision]) -> None:
        """Give decisions to the clock and the store, and append what comes of them."""
        outcomes: list[tuple[str, dict[str, Any]]] = []
        for one in merge(decisions):
            if one.kind == DecisionKind.ARM_TIMER:
                timer = orjson.loads(one.body)
                self.timers[timer["timer"]] = timer["deadline_ms"]
            elif one.kind == DecisionKind.CHANGE_GROUP:
                outcomes += self.store.take(self.image, one.offset, one.body, self.give)
            else:
                raise AssertionError(f"{one.kind}: {one.body.decode()}")
        self._tell(outcomes)

    def released(self, alias: str, error: ProtocolError, log_offset: int | None) -> None:
        """Let the append that a request waits for succeed or fail."""
        self._tell(self.store.release(self.image, alias, error, log_offset, self.give))

    def _tell(self, outcomes: list[Outcome]) -> None:
        for kind, payload in outcomes:
            self.happen(kind, payload["group"], payload)

    def give(self, reply: dict[str, Any]) -> None:
        """Hand out a reply; each request gets one."""
        request_id = reply["request_id"]
        assert request_id not in self.replies, f"{request_id} is answered twice"
        self.replies[request_id] = {**reply, "given_at_ms": self.now_ms}

    def advance(self, to_ms: int) -> None:
        """Move the clock; every timer on the way fires at its own deadline, and every session that
        ends is told at its end, as by a front that hears of nobody but by the scenario.
        """
        while due := sorted((at_ms, timer) for timer, at_ms in self._due() if at_ms <= to_ms):
            deadline_ms, timer = due[0]
            if self.timers.get(timer) == deadline_ms:
                del self.timers[timer]
            self.now_ms = max(self.now_ms, deadline_ms)
            payload = {"timer": timer, "deadline_ms": deadline_ms}
            self.happen("group_timer_due", str(bucket_of_timer(timer)), payload)
        self.now_ms = max(self.now_ms, to_ms)

    def _due(self) -> list[tuple[str, int]]:
        slots = [decode_machine(data) for data in self.states.values()]
        ends = [session_ends(slot) for slot in slots if isinstance(slot, GroupSlot)]
        return [*self.timers.items(), *(one for of_slot in ends for one in of_slot.items())]

    def own(self, group: str) -> int:
        """Return a group's partition; one that nothing was said about is ours."""
        partition = partition_for(group)
        if partition not in self.touched:
            self.touched.add(partition)
            for kind in ("group_partitions_elected", "group_partitions_loaded"):
                self.happen(kind, "", {"partitions": [partition], "epoch": 0})
        return partition

    def slot_of(self, group: str) -> tuple[int, GroupSlot]:
        """Return the slot of a group and its key."""
        [key] = machine_keys(GROUP_SCOPE + group_bucket(group), Layout(1, SLOTS))
        data = self.states.get(key)
        slot = new_machine(key) if data is None else decode_machine(data)
        assert isinstance(slot, GroupSlot)
        return key, slot

    def group(self, name: str) -> Group | None:
        """Return a group as its machine has it."""
        return self.slot_of(name)[1].bucket(group_bucket(name)).get(name)

    def buckets(self) -> list[int]:
        """Return the buckets of all groups."""
        slots = [decode_machine(data) for data in self.states.values()]
        return sorted(
            number for slot in slots if isinstance(slot, GroupSlot) for number in slot.numbers()
        )

    def phase(self, group: str) -> CoordinatorPhase:
        """Return what we are for a group's partition."""
        return self.slot_of(group)[1].phase(partition_for(group))

    def meddle(self, group: str, change: Callable[[GroupSlot, Bucket], list[Decision]]) -> None:
        """Change a machine from outside, as Kafka's tests reach into their coordinator."""
        key, slot = self.slot_of(group)
        decisions = change(slot, slot.bucket(group_bucket(group)))
        self.states[key] = encode_machine(slot)
        self.offset += 1
        self.carry_out(decisions)

    def image_from_machine(self, group: str) -> None:
        """Build the image of a group anew."""
        scratch = image_of(self.slot_of(group)[1])
        self.image.groups.pop(group, None)
        if group in scratch.groups:
            self.image.groups[group] = scratch.groups[group]
