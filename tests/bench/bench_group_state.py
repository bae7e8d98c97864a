"""What consumer groups cost as state: bytes, and ms of processor time of a batch by group slots.

Many groups of five members with 20 committed partitions each are loaded; then batches are folded
whose states are read from bytes and written to bytes, as the streaming operator does. GROUPS in the
environment makes it smaller. The last rows are those of a key per group: the fold of the groups
that a batch concerns, each from its own bytes. Spark's cost per key is added as measured elsewhere.
"""

from __future__ import annotations

import base64
import os
import struct
import sys
import time
from collections.abc import Iterable

import orjson

from checkpoints.fold import fold_state
from checkpoints.machine_format import decode_machine, encode_machine
from checkpoints.replay import States
from state.events import Event
from state.groups.buckets import group_bucket
from state.groups.slot import GroupSlot
from state.routing import GROUP_SCOPE, Layout, machine_keys, scope
from tests.bench.report import emit, show

GROUPS = int(os.environ.get("GROUPS", "100000"))
MEMBERS = 5
PARTITIONS = 20
BATCH_GROUPS = 1000
SHAPES = (16, 64, 512, 4096)
SPARK_MS_PER_KEY = 0.4


def subscription() -> str:
    topic = b"orders"
    return base64.b64encode(struct.pack(">hih", 1, 1, len(topic)) + topic + bytes(12)).decode()


def names() -> list[str]:
    return [f"consumer-group-{number}" for number in range(GROUPS)]


def member_ids(group: str) -> list[str]:
    tail = "01234567-89ab-cdef-0123-456789abcdef"
    return [f"consumer-{group}-{number}-{tail}" for number in range(MEMBERS)]


def observed(group: str) -> dict[str, object]:
    """Return a group_observed payload: a stable group."""
    assignment = base64.b64encode(bytes(46)).decode()
    members = [
        {
            "member": one,
            "instance": None,
            "client": f"consumer-{number}",
            "host": "/10.0.0.1",
            "session_timeout_ms": 45_000,
            "rebalance_timeout_ms": 300_000,
            "metadata": subscription(),
            "assignment": assignment,
        }
        for number, one in enumerate(member_ids(group))
    ]
    return {
        "partition": 0,
        "epoch": 1,
        "group": group,
        "metadata": {
            "generation": 1,
            "protocol_type": "consumer",
            "protocol": "range",
            "leader": member_ids(group)[0],
            "state_since_ms": 0,
            "members": members,
        },
        "offsets": [
            ["orders", number, 123_456_789 + number, 7, "", 0, None, number - (1 << 62)]
            for number in range(PARTITIONS)
        ],
        "pending": [],
    }


class Log:
    """Makes events at one time."""

    def __init__(self) -> None:
        self.offset = 0
        self.now_ms = 1_000

    def event(self, kind: str, key: str, body: dict[str, object]) -> Event:
        self.offset += 1
        return Event(self.offset, self.now_ms, kind, key, orjson.dumps(body))

    def request(self, kind: str, group: str, **body: object) -> Event:
        common = {"request_id": f"r{self.offset}", "partition": 0, "group": group, "version": 9}
        return self.event(kind, group, {**common, **body})


def by_machine(events: Iterable[Event], slots: int) -> dict[int, list[Event]]:
    found: dict[int, list[Event]] = {}
    for event in events:
        for key in machine_keys(scope(event.kind, event.key), Layout(1, slots)):
            found.setdefault(key, []).append(event)
    return found


def fold(states: States, events: list[Event], slots: int) -> tuple[float, int, int]:
    """Fold a batch without keeping its states; return (ms, machines, bytes of their states)."""
    routed = by_machine(events, slots)
    started = time.process_time()
    written = 0
    for key, of_machine in routed.items():
        after, _ = fold_state(key, states.get(key), of_machine)
        written += len(after)
    return (time.process_time() - started) * 1000, len(routed), written


def loaded(log: Log) -> States:
    """Return the states of as many slots as there may be, with all groups."""
    start = [
        log.event("group_partitions_elected", "", {"partitions": [0], "epoch": 1}),
        *(log.event("group_observed", name, observed(name)) for name in names()),
        log.event("group_partitions_loaded", "", {"partitions": [0], "epoch": 1}),
    ]
    states: States = {}
    started = time.process_time()
    for key, events in by_machine(start, SHAPES[-1]).items():
        states[key], _ = fold_state(key, None, events)
    seconds = time.process_time() - started
    size = sum(map(len, states.values()))
    emit(
        "group_state_load",
        groups=GROUPS,
        groups_per_s=GROUPS / seconds,
        bytes_per_group=size / GROUPS,
        bytes_per_member=size / GROUPS / MEMBERS,
    )
    return states


def gathered(buckets: States, slots: int) -> States:
    """Return the same groups in fewer slots: a slot's buckets keep their bytes."""
    found: dict[int, GroupSlot] = {}
    for data in buckets.values():
        part = decode_machine(data)
        assert isinstance(part, GroupSlot)
        for bucket, stored in part.stored.items():
            [slot] = machine_keys(GROUP_SCOPE + bucket, Layout(1, slots))
            whole = found.setdefault(slot, GroupSlot(part.config, part.partitions))
            whole.stored[bucket] = stored
    return {key: encode_machine(slot) for key, slot in found.items()}


def heartbeats(log: Log, groups: list[str]) -> list[Event]:
    rows: dict[int, list[list[object]]] = {}
    for group in groups:
        rows.setdefault(group_bucket(group), []).extend(
            [group, member, None, 1] for member in member_ids(group)
        )
    return [
        log.event("heartbeats_received", str(bucket), {"heartbeats": of_bucket})
        for bucket, of_bucket in sorted(rows.items())
    ]


def commits(log: Log, groups: list[str]) -> list[Event]:
    offsets = [["orders", number, 987_654_321, 7, ""] for number in range(PARTITIONS)]
    return [
        log.request(
            "offset_commit_requested",
            group,
            member=member_ids(group)[0],
            generation=1,
            offsets=offsets,
        )
        for group in groups
    ]


def rejoins(log: Log, groups: list[str]) -> list[Event]:
    return [
        log.request(
            "join_group_requested",
            group,
            member=member,
            new_member="",
            client="c",
            host="/10.0.0.1",
            session_timeout_ms=45_000,
            rebalance_timeout_ms=300_000,
            protocol_type="consumer",
            protocols=[["range", subscription()]],
        )
        for group in groups
        for member in member_ids(group)
    ]


def syncs(log: Log, groups: list[str]) -> list[Event]:
    """The SyncGroups of members that have it already: answered from the state."""
    return [
        log.request("sync_group_requested", group, member=member, generation=1, assignments=[])
        for group in groups
        for member in member_ids(group)
    ]


def main() -> int:
    log = Log()
    buckets = loaded(log)
    every = names()
    some = every[:: max(1, GROUPS // BATCH_GROUPS)][:BATCH_GROUPS]
    one_bucket = [name for name in every if group_bucket(name) == group_bucket(every[0])]
    batches = {
        "heartbeats of one group": heartbeats(log, every[:1]),
        "heartbeats of one bucket": heartbeats(log, one_bucket),
        f"heartbeats of {BATCH_GROUPS} groups": heartbeats(log, some),
        f"a commit of {BATCH_GROUPS} groups": commits(log, some),
        f"{BATCH_GROUPS} groups rejoin": rejoins(log, some),
        f"{BATCH_GROUPS} groups sync": syncs(log, some),
    }
    lines = []
    for slots in SHAPES:
        states = buckets if slots == SHAPES[-1] else gathered(buckets, slots)
        for what, events in batches.items():
            runs = [fold(states, events, slots) for _ in range(3)]
            ms, machines, written = min(runs)
            lines.append(
                emit(
                    "group_state",
                    slots=slots,
                    batch=what,
                    events=len(events),
                    machines=machines,
                    fold_ms=ms,
                    written_mb=written / 1e6,
                    with_spark_ms=ms + SPARK_MS_PER_KEY * machines,
                )
            )
    lines += per_group(log, batches)
    show("State of consumer groups", lines)
    return 0


def per_group(log: Log, batches: dict[str, list[Event]]) -> list[dict[str, object]]:
    """Fold the same with a key per group; a bucket's event is one event for each group."""
    lines = []
    for what, events in batches.items():
        routed: dict[str, list[Event]] = {}
        for event in events:
            if event.kind != "heartbeats_received":
                routed.setdefault(event.key, []).append(event)
                continue
            of_bucket: dict[str, list[object]] = {}
            for row in orjson.loads(event.payload)["heartbeats"]:
                of_bucket.setdefault(row[0], []).append(row)
            for group, rows in of_bucket.items():
                one = log.event("heartbeats_received", event.key, {"heartbeats": rows})
                routed.setdefault(group, []).append(one)
        alone = {group: _alone(group) for group in routed}
        started = time.process_time()
        written = 0
        for group, of_group in routed.items():
            key = machine_keys(GROUP_SCOPE + group_bucket(group), Layout(1, 1))[0]
            after, _ = fold_state(key, alone[group], of_group)
            written += len(after)
        ms = (time.process_time() - started) * 1000
        lines.append(
            emit(
                "group_state",
                slots="a key per group",
                batch=what,
                events=len(events),
                machines=len(routed),
                fold_ms=ms,
                written_mb=written / 1e6,
                with_spark_ms=ms + SPARK_MS_PER_KEY * len(routed),
            )
        )
    return lines


def _alone(group: str) -> bytes:
    log = Log()
    elected = {"partitions": [0], "epoch": 1}
    start = [
        log.event("group_partitions_elected", "", elected),
        log.event("group_observed", group, observed(group)),
        log.event("group_partitions_loaded", "", elected),
    ]
    key = machine_keys(GROUP_SCOPE + group_bucket(group), Layout(1, 1))[0]
    return fold_state(key, None, start)[0]


if __name__ == "__main__":
    sys.exit(main())
