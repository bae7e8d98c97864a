"""A coordinator for unit tests: one slot, one partition, events in a line."""

from __future__ import annotations

import base64
import struct
from typing import Any

import orjson

from checkpoints.fold import fold_state
from checkpoints.machine_format import decode_machine
from state.decisions import DecisionKind
from state.events import Event
from state.groups.buckets import group_bucket, timer_name
from state.groups.change_kinds import ChangeKind
from state.groups.group import Group
from state.groups.image import GroupImage
from state.groups.image_changes import CHANGES, GroupView
from state.groups.member import NEVER
from state.groups.ownership import loaded_change
from state.groups.slot import GroupSlot
from state.routing import GROUP_KEY

PARTITION = 4


def metadata(*topics: str) -> str:
    """Return a consumer's subscription (base64)."""
    names = [one.encode() for one in topics]
    named = b"".join(struct.pack(">h", len(one)) + one for one in names)
    no_user_data = struct.pack(">i", -1)
    return base64.b64encode(struct.pack(">hi", 0, len(topics)) + named + no_user_data).decode()


def session_ends(slot: GroupSlot) -> dict[str, int]:
    """Return when the first session of each bucket ends, by the bucket's timer.

    The machine does not tell the clock of it: the front, which hears of members, appends the tick.
    """
    ends: dict[str, int] = {}
    for number in slot.numbers():
        bucket = slot.bucket(number)
        for name in bucket.entries:
            group = bucket.get(name)
            assert group is not None
            for member in group.members.values():
                if member.deadline_ms is not None and not member.is_new:
                    timer = timer_name(number)
                    ends[timer] = min(ends.get(timer, NEVER), member.deadline_ms)
    return ends


def image_of(slot: GroupSlot) -> GroupImage:
    """Return the image that a machine's groups should have."""
    image = GroupImage()
    for number in slot.numbers():
        bucket = slot.bucket(number)
        for name in bucket.entries:
            group = bucket.get(name)
            assert group is not None
            image.groups[name] = view = GroupView()
            CHANGES[ChangeKind.GROUP_LOADED](view, loaded_change(group))
    return image


class Coordinator:
    """Folds events into the only group slot and keeps what is decided; every append succeeds."""

    def __init__(self, **config: int) -> None:
        self.state: bytes = b""
        self.now_ms = 0
        self.offset = 0
        self.steps: list[dict[str, Any]] = []
        self.timers: dict[str, int] = {}
        self.slacks: dict[str, int] = {}
        self.replies: dict[str, dict[str, Any]] = {}
        if config:
            self.happen("group_coordinator_configured", config=config)
        for kind in ("group_partitions_elected", "group_partitions_loaded"):
            self.happen(kind, partitions=[PARTITION], epoch=1)

    def happen(self, kind: str, key: str = "", /, **body: Any) -> list[dict[str, Any]]:
        """Fold one event now; return the steps decided about groups."""
        event = Event(self.offset, self.now_ms, kind, key, orjson.dumps(body))
        self.offset += 1
        self.state, decisions = fold_state(GROUP_KEY, self.state or None, [event])
        found = []
        for one in decisions:
            opened = orjson.loads(one.body)
            if one.kind == DecisionKind.ARM_TIMER:
                self.timers[opened["timer"]] = opened["deadline_ms"]
                self.slacks[opened["timer"]] = opened["slack_ms"]
            elif one.kind == DecisionKind.CHANGE_GROUP:
                found += opened["steps"]
            else:
                raise AssertionError(opened)
        for step in found:
            self.replies |= {reply["request_id"]: reply for reply in step["replies"]}
        self.steps += found
        return found

    def ask(self, kind: str, group: str, /, **body: Any) -> str:
        """Fold a request; return its id."""
        request_id = f"r{self.offset}"
        common = {"request_id": request_id, "partition": PARTITION, "group": group, "version": 9}
        self.happen(kind, group, **{**common, **body})
        return request_id

    def answer(self, request_id: str) -> dict[str, Any]:
        """Return the reply to a request."""
        return self.replies[request_id]

    def join(self, group: str, member: str = "", **chosen: Any) -> str:
        """Fold a JoinGroup; return its id."""
        body = {
            "member": member,
            "new_member": f"member-{self.offset}",
            "instance": None,
            "client": "client",
            "host": "/host",
            "session_timeout_ms": 10_000,
            "rebalance_timeout_ms": 60_000,
            "protocol_type": "consumer",
            "protocols": [["range", metadata("a")]],
        }
        return self.ask("join_group_requested", group, **{**body, **chosen})

    def sync(
        self, group: str, member: str, generation: int, assignments: Any = (), **chosen: Any
    ) -> str:
        """Fold a SyncGroup; return its id."""
        body = {"member": member, "generation": generation, "assignments": assignments}
        return self.ask("sync_group_requested", group, **{**body, **chosen})

    def commit(
        self, group: str, offsets: Any, member: str = "", generation: int = -1, **chosen: Any
    ) -> str:
        """Fold an OffsetCommit; return its id."""
        body = {"member": member, "generation": generation, "offsets": offsets}
        return self.ask("offset_commit_requested", group, **{**body, **chosen})

    def txn_commit(self, group: str, producer: int, offsets: Any) -> str:
        """Fold a TxnOffsetCommit; return its id."""
        body = {"member": "", "generation": -1, "producer_id": producer, "producer_epoch": 0}
        return self.ask("txn_offset_commit_requested", group, **body, offsets=offsets)

    def tick(self, to_ms: int) -> None:
        """Move the clock; timers and ends of sessions on the way are told at their deadlines."""
        while due := sorted((at_ms, timer) for timer, at_ms in self._due() if at_ms <= to_ms):
            deadline_ms, timer = due[0]
            if self.timers.get(timer) == deadline_ms:
                del self.timers[timer]
            self.now_ms = max(self.now_ms, deadline_ms)
            bucket = timer.removeprefix("groups/")
            self.happen("group_timer_due", bucket, timer=timer, deadline_ms=deadline_ms)
        self.now_ms = max(self.now_ms, to_ms)

    def _due(self) -> list[tuple[str, int]]:
        return [*self.timers.items(), *session_ends(self.slot).items()]

    @property
    def slot(self) -> GroupSlot:
        """The slot, decoded from its bytes."""
        slot = decode_machine(self.state)
        assert isinstance(slot, GroupSlot)
        return slot

    def group(self, name: str) -> Group | None:
        """Return a group as the machine has it."""
        return self.slot.bucket(group_bucket(name)).get(name)

    def expire(self) -> list[dict[str, Any]]:
        """Look for expired offsets everywhere; return the steps."""
        return [
            step
            for bucket in self.slot.numbers()
            for step in self.happen("offsets_expiration_due", str(bucket))
        ]


class Watched(Coordinator):
    """A coordinator whose decisions an image folds; writes end when they are told to."""

    def __init__(self, **config: int) -> None:
        self.image = GroupImage()
        super().__init__(**config)

    def happen(self, kind: str, key: str = "", /, **body: Any) -> list[dict[str, Any]]:
        """Fold one event, and what is decided."""
        steps = super().happen(kind, key, **body)
        if steps:
            decision = {"group": key, "partition": PARTITION, "steps": steps}
            self.image.begin(self.offset - 1, decision)
        return steps

    def end_writes(self) -> None:
        """Let everything that is on its way be appended."""
        for write in [*self.image.in_flight]:
            self.image.appended(write)
