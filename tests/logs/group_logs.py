"""Random logs of consumer groups that mean something.

`Author` turns intents (`tests.logs.group_intents`) into events while folding them, so that requests
carry the member ids and generations that clients were told, or stale ones on purpose.
"""

from __future__ import annotations

import base64
from typing import Any

import orjson

from state.decisions import DecisionKind
from state.events import Event
from state.groups.buckets import bucket_of_timer, group_bucket, timer_name
from state.groups.image import GroupImage
from state.groups.slot import GroupSlot
from state.groups.states import GroupState
from state.protocol_errors import ProtocolError
from state.routing import GROUP_KEY
from tests.logs.group_parts import (
    CONFIG,
    GROUPS,
    INSTANCES,
    LEAVE_DELAY,
    LONGEST_WAIT_MS,
    PARTITIONS,
    PROTOCOLS,
    Client,
    loaded,
)
from tests.logs.group_writes import Writes
from tests.logs.machines import Machines
from tests.unit.state.group_support import session_ends


class Author:
    """Writes a log; each method appends the event of one intent, told by up to three numbers."""

    def __init__(self) -> None:
        """Begin with a configured coordinator of all partitions."""
        self.events: list[Event] = []
        self.machines = Machines()
        self.decided: list[tuple[int, str, Any]] = []
        self.writes = Writes()
        self.clients: list[Client] = []
        self.requests: dict[str, tuple[Client, dict[str, Any]]] = {}
        self.timers: dict[int, int] = {}
        self.now_ms = 0
        self.epoch = 1
        self.holds = False
        self.write("group_coordinator_configured", config=CONFIG)
        everything = sorted(set(PARTITIONS.values()))
        self.write("group_partitions_elected", partitions=everything, epoch=1)
        self.write("group_partitions_loaded", partitions=everything, epoch=1)

    def write(self, kind: str, key: str = "", **body: Any) -> None:
        """Append an event, fold it, and take in what was decided."""
        event = Event(len(self.events), self.now_ms, kind, key, orjson.dumps(body))
        self.events.append(event)
        for one in self.machines.fold(event):
            opened = orjson.loads(one.body)
            self.decided.append((one.offset, one.kind, opened))
            if one.kind == DecisionKind.ARM_TIMER:
                bucket = bucket_of_timer(opened["timer"])
                assert bucket is not None
                self.timers[bucket] = opened["deadline_ms"]
            elif one.kind == DecisionKind.CHANGE_GROUP:
                for step in self.writes.begin(one.offset, opened):
                    self._hear(step)
        if not self.holds:
            self._end_writes(len(self.writes.held))

    def _end_writes(self, count: int) -> None:
        appended, refused = self.writes.end(count)
        for step in appended:
            self._hear(step)
        for refusal in refused:
            self.write("group_records_refused", refusal["group"], **refusal)

    def _hear(self, step: Any) -> None:
        """Let clients learn from their replies."""
        for reply in step["replies"]:
            client, _ = self.requests[reply["request_id"]]
            if reply["api"] != "join_group":
                continue
            if reply["error"] == 0:
                client.member, client.generation = reply["member"], reply["generation"]
                client.leads = reply["leader"] == reply["member"]
                client.others = tuple(member for member, _, _ in reply["members"])
            elif reply["error"] in (
                ProtocolError.UNKNOWN_MEMBER_ID,
                ProtocolError.MEMBER_ID_REQUIRED,
                ProtocolError.GROUP_MAX_SIZE_REACHED,
                ProtocolError.FENCED_INSTANCE_ID,
            ):
                client.member = (
                    reply["member"] if reply["error"] == ProtocolError.MEMBER_ID_REQUIRED else ""
                )

    def slot(self) -> GroupSlot:
        """Return the machine that has all groups in this author's fold."""
        machine = self.machines[GROUP_KEY]
        assert isinstance(machine, GroupSlot)
        return machine

    @property
    def image(self) -> GroupImage:
        """What is decided, as far as it is true."""
        return self.writes.image

    def client(self, number: int) -> Client:
        """Return one of the clients."""
        if not self.clients:
            self.clients.append(Client(GROUPS[0], None, PROTOCOLS[0]))
        recent = self.clients[-6:]
        return recent[number % len(recent)]

    def ask(self, kind: str, asker: Client, /, **body: Any) -> None:
        """Append a client's request."""
        request_id = f"r{len(self.events)}"
        fields = {
            "request_id": request_id,
            "partition": PARTITIONS[asker.group],
            "group": asker.group,
            **body,
        }
        self.requests[request_id] = (asker, fields)
        self.write(kind, asker.group, **fields)

    def _join(self, client: Client, member: str, b: int, c: int) -> None:
        self.ask(
            "join_group_requested",
            client,
            version=(3, 5, 9)[b % 3] if client.instance is None else (5, 9)[b % 2],
            member=member,
            new_member=f"{client.instance or 'm'}-{len(self.events)}",
            instance=client.instance,
            client="c",
            host="/h",
            session_timeout_ms=(2_000, 5_000)[c % 2],
            rebalance_timeout_ms=(1_000, LONGEST_WAIT_MS)[c % 2],
            protocol_type="consumer",
            protocols=client.protocols,
        )

    def start(self, a: int, b: int, c: int) -> None:
        """A new client joins; one with the instance of another takes its place."""
        group = GROUPS[a % 3]
        self.clients.append(Client(group, INSTANCES[b % len(INSTANCES)], PROTOCOLS[c % 3]))
        self._join(self.clients[-1], "", a, c)

    def rejoin(self, a: int, b: int, c: int) -> None:
        """A client joins again, sometimes with other metadata or without its id."""
        client = self.client(a)
        if b % 4 == 0:
            client.protocols = PROTOCOLS[c % 3]
        self._join(client, "" if b % 7 == 0 else client.member, b, c)

    def sync(self, a: int, b: int, c: int) -> None:
        """A client asks for its assignment; a leader brings those of all."""
        client = self.client(a)
        given = [[member, base64.b64encode(member.encode()).decode()] for member in client.others]
        if client.leads and c % 3 and self._assign(client, given, b):
            return
        self.ask(
            "sync_group_requested",
            client,
            version=5,
            generation=client.generation - (b % 9 == 8),
            member=client.member,
            instance=client.instance,
            protocol_type="consumer" if c % 2 else None,
            protocol=None,
            assignments=given if client.leads else [],
        )

    def _assign(self, client: Client, given: list[list[str]], b: int) -> bool:
        """A leader's assignment is appended past the machines, if its generation waits for it in
        the image; the machines hear of it, sometimes when they have gone on.
        """
        group, generation = client.group, client.generation
        if not self.writes.assign(group, client.member, generation, dict(given), self.now_ms):
            return False
        if b % 4 == 3:
            self._join(client, "", b, 0)
        self._tell_assigned(group, generation, given)
        return True

    def _tell_assigned(self, group: str, generation: int, given: list[list[str]]) -> None:
        body = {"partition": PARTITIONS[group], "group": group, "generation": generation}
        self.write("assignment_appended", group, **body, assignments=given)

    def settle(self, a: int, b: int, c: int) -> None:
        """The clients of a group do what clients do: join, wait, and sync; one may be late."""
        mine = [one for one in self.clients[-6:] if one.group == GROUPS[a % 3]]
        for one in mine:
            self._join(one, one.member, b, c)
            if not one.member or c % 5 == 0:
                self._join(one, one.member, b, c)
        self.now_ms += 700
        self.tick()
        mine.sort(key=lambda one: one.leads, reverse=bool(b % 2))
        for one in mine[: len(mine) - (b % 7 == 6)]:
            self.sync(self.clients[-6:].index(one), 0, c)
        if mine and b % 5 == 4:
            self.sync(self.clients[-6:].index(mine[0]), 8, c)

    def heartbeat(self, a: int, b: int, c: int) -> None:
        """Some clients of a group send heartbeats."""
        group = GROUPS[a % 3]
        beats = [
            [one.group, one.member, one.instance, one.generation]
            for at, one in enumerate(self.clients)
            if one.group == group and (at + b) % 3 and one.member
        ]
        self.write("heartbeats_received", str(group_bucket(group)), heartbeats=beats)

    def idle(self, a: int, b: int, c: int) -> None:
        """Time passes, all along which some members of each group are heard from; these are
        reported before anything else, then that other sessions are over. What leaders assigned
        whose SyncGroups came is appended at last, if their generations still wait for it.
        """
        passed_ms = (300, 1_900, 2_100, 5_200, 40_000)[b % 5]
        synced = {name: self._synced(name, b, c) for name in self.image.groups}
        self.now_ms += passed_ms
        for name, view in sorted(self.image.groups.items()):
            beats = [
                [name, member, held.instance, view.generation - (c % 8 == 7), passed_ms * at // 20]
                for at, (member, held) in enumerate(view.members.items())
                if (at + a) % 3
            ]
            told = {"heartbeats": beats, "synced": synced[name]}
            self.write("heartbeats_received", str(group_bucket(name)), **told)
        self.tick()
        for name, generation, came in (row for rows in synced.values() for row in rows):
            view = self.image.groups[name]
            given = [[one, base64.b64encode(one.encode()).decode()] for one in view.members]
            late = (name, view.leader or "", generation, dict(given), self.now_ms)
            if view.leader in came and self.writes.assign(*late):
                self._tell_assigned(name, generation, given)

    def _synced(self, name: str, b: int, c: int) -> list[Any]:
        """Return some members of a group that are still waited for, as those whose SyncGroup came
        in time, perhaps of another generation. A leader's comes so if what it assigns may be
        appended, and is an event otherwise.
        """
        group = self.slot().bucket(group_bucket(name)).get(name)
        if group is None or (group.sync_deadline_ms or 0) <= self.now_ms:
            return []
        numbered = enumerate(group.members)
        early = group.state is GroupState.COMPLETING and not self.writes.may_assign(
            name, group.leader, group.generation
        )
        came = [
            one for at, one in numbered if (at + b) % 4 == 0 and not (early and one == group.leader)
        ]
        return [[name, group.generation - (c % 8 == 6), came]]

    def leave(self, a: int, b: int, c: int) -> None:
        """A client leaves, or an administrator removes a static member."""
        client = self.client(a)
        by_instance = client.instance is not None and b % 3 == 0
        one = {"member": "" if by_instance else client.member, "instance": client.instance}
        self.ask("leave_group_requested", client, version=(2, 4)[b % 2], members=[one])

    def commit(self, a: int, b: int, c: int) -> None:
        """A client commits, or somebody who is no member."""
        client = self.client(a) if a % 5 else Client(GROUPS[3], None, [])
        topic = "ab"[b % 2]
        offsets = [
            [topic, number, len(self.events), -1, "m" * (b % 20 if number else 0)]
            for number in range(1 + c % 3)
        ]
        body: dict[str, Any] = {
            "version": 8,
            "member": client.member,
            "instance": client.instance,
            "generation": client.generation - (b % 9 == 8),
            "offsets": offsets,
        }
        if c % 3 == 2:
            self.ask(
                "txn_offset_commit_requested",
                client,
                producer_id=c % 2,
                producer_epoch=0,
                **body,
            )
        else:
            self.ask("offset_commit_requested", client, **body)

    def append(self, a: int, b: int, c: int) -> None:
        """Offsets were committed past the machines, of a group that may be gone by now."""
        group = GROUPS[a % len(GROUPS)]
        rows = [["ab"[b % 2], c % 3, len(self.events), -1, "m" * (b % 3), self.now_ms - c]]
        body = {"group": group, "partition": PARTITIONS[group], "offsets": rows}
        self.write("offsets_appended", group, **body)

    def marker(self, a: int, b: int, c: int) -> None:
        """A transaction ends, behind what was on its way in it."""
        self.release_all()
        of: Any = {"producer_id": a % 2, "committed": b % 3 > 0, "partitions": [0, 1, 2]}
        self.write("transaction_completed", **of)

    def remove(self, a: int, b: int, c: int) -> None:
        """Offsets, a group, or topics are deleted."""
        group = GROUPS[a % len(GROUPS)]
        client = Client(group, None, [])
        if b % 3 == 2:
            body = {"group": group, "partition": PARTITIONS[group], "topics": ["ab"[c % 2], "c"]}
            self.write("committed_topics_deleted", group, **body)
        elif b % 2:
            self.ask("delete_group_requested", client, version=2)
        else:
            rows = [["a", c % 3], ["b", 0]]
            self.ask("offset_delete_requested", client, version=0, partitions=rows)

    def expire(self, a: int, b: int, c: int) -> None:
        """Somebody looks for expired offsets."""
        self.write("offsets_expiration_due", str(group_bucket(GROUPS[a % len(GROUPS)])))

    def wait(self, a: int, b: int, c: int) -> None:
        """Time passes; the clock's events come, or are late."""
        self.now_ms += (1, 250, 700, 2_500, 9_000, 40_000)[a % 6]
        if b % 3:
            self.tick()

    def tick(self) -> None:
        """The events come for every timer that is due, and for every session that is over."""
        ends = session_ends(self.slot())
        over = {timer: at for timer, at in ends.items() if at <= self.now_ms}
        due = sorted((at, bucket) for bucket, at in self.timers.items() if at <= self.now_ms)
        for deadline_ms, bucket in due:
            if self.timers.get(bucket) == deadline_ms:
                del self.timers[bucket]
                over.pop(timer_name(bucket), None)
                self._tick(bucket, deadline_ms)
        for timer, deadline_ms in over.items():
            bucket = bucket_of_timer(timer)
            assert bucket is not None
            self._tick(bucket, deadline_ms)

    def _tick(self, bucket: int, deadline_ms: int) -> None:
        body = {"timer": timer_name(bucket), "deadline_ms": deadline_ms}
        self.write("group_timer_due", str(bucket), **body)

    def refuse(self, a: int, b: int, c: int) -> None:
        """The next writes cannot be appended."""
        self.writes.refuses = 1 + a % 2

    def hold(self, a: int, b: int, c: int) -> None:
        """Writes do not end any more."""
        self.holds = True

    def release(self, a: int, b: int, c: int) -> None:
        """Some writes end, or all, and those that come."""
        self.holds = bool(a % 2)
        self._end_writes(1 + b % 3 if self.holds else len(self.writes.held))

    def release_all(self) -> None:
        """All writes end, and those that come."""
        self.release(0, 0, 0)

    def repeat(self, a: int, b: int, c: int) -> None:
        """A request comes again under another id, as after a reconnect."""
        asked = [event for event in self.events[-8:] if b"request_id" in event.payload]
        asked = [event for event in asked if event.kind.endswith("_requested")]
        if asked:
            event = asked[a % len(asked)]
            body = orjson.loads(event.payload)
            client, _ = self.requests[body["request_id"]]
            del body["request_id"], body["partition"], body["group"]
            if "new_member" in body:
                body["new_member"] = f"m-{len(self.events)}"
            self.ask(event.kind, client, **body)

    def reload(self, a: int, b: int, c: int) -> None:
        """Another broker coordinates a partition for a while, and we load what it left."""
        self.release_all()
        partition = a % 3
        self.epoch += 1
        self.write("group_partitions_resigned", partitions=[partition], epoch=None)
        if b % 5:
            self.now_ms += 500
            self.write("group_partitions_elected", partitions=[partition], epoch=self.epoch)
            self._observe(partition, c)
            self.write("group_partitions_loaded", partitions=[partition], epoch=self.epoch)

    def configure(self, a: int, b: int, c: int) -> None:
        """Rebalances begin later than a member leaves from now on, or at once."""
        self.write("group_coordinator_configured", config={LEAVE_DELAY: 900 * (a % 2)})

    def _observe(self, partition: int, c: int) -> None:
        for name in GROUPS:
            if PARTITIONS[name] == partition:
                member = f"loaded-{self.epoch}" if c % 2 else None
                stored = loaded(name, member, self.epoch, self.now_ms)
                self.write("group_observed", name, **stored)
