"""A shadow beside a controller that decides by the same rules finds no difference.

The live controller here is our own machine, which hears every request; the shadow's sees only what
ZooKeeper shows: inputs at once, results at once, or a look later and several as one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import orjson
from hypothesis import example, given, settings
from hypothesis import strategies as st

from checkpoints.machine_format import decode_machine
from checkpoints.replay import States, fold_batch
from state.decisions import DecisionKind
from state.events import Event
from state.opened_decisions import open_body
from state.partitions.slot import Slot
from state.payloads.partitions import StateCause
from state.routing import GROUP_SLOTS, Layout
from state.topic_partition import TopicPartition
from streaming.log.api import NewRecord
from streaming.shadow.comparison import Comparison
from streaming.shadow.leadership import Leadership, assignment_of, from_row, to_state
from streaming.shadow.looks import Load, Look, SeenTopic
from streaming.shadow.shadow import Shadow
from streaming.shadow.verdicts import DIVERGENCES
from tests.fixtures.story import OURSELVES
from tests.unit.shadow.support import GRACE_MS, WINDOW_MS, MemoryEngine, Notes, broker

BROKERS = (1, 2, 3, 4)
REPLICAS = ([1, 2, 3], [2, 3, 1], [3, 4], [4, 1, 2])
Intent = tuple[str, int, int]


class Live:
    """A controller that hears everything, and what it leaves in ZooKeeper."""

    def __init__(self, *, leaders_ask: bool = True) -> None:
        self.leaders_ask = leaders_ask
        self.machines: States = {}
        self.events: list[Event] = []
        self.registered: dict[int, int] = {}
        self.epoch = 0
        self.inputs: list[NewRecord] = []
        self.results: list[Look] = []
        self.znodes: dict[TopicPartition, Leadership] = {}
        self.clock = 100
        self.elect(Look(0))

    def hear(self, look: Look, kind: str, key: str = "", *, seen: bool, **body: Any) -> None:
        """Fold an event; seen: ZooKeeper shows it. What is written goes into the look."""
        row: Any
        payload = orjson.dumps(body)
        self.events.append(Event(len(self.events), len(self.events), kind, key, payload))
        if seen:
            look.inputs.append(NewRecord(kind, key, payload))
        for one in fold_batch(self.machines, [self.events[-1]], Layout(1, GROUP_SLOTS)):
            if one.kind is DecisionKind.CHANGE_PARTITIONS:
                for row in open_body(one.kind, one.body):
                    if "write" in row["actions"]:
                        self.znodes[row["topic"], row["partition"]] = from_row(row)
                        look.states[row["topic"], row["partition"]] = from_row(row)
            elif one.kind in {DecisionKind.REWRITE_ASSIGNMENT, DecisionKind.COMPLETE_REASSIGNMENT}:
                said = orjson.loads(one.body)
                lists = (
                    {int(number): ids for number, ids in said[name].items()}
                    for name in ("assignment", "adding", "removing")
                )
                look.topics[said["topic"]] = SeenTopic(None, assignment_of(*lists))

    def slot(self) -> Slot:
        machine = decode_machine(self.machines[0])
        assert isinstance(machine, Slot)
        return machine

    def elect(self, look: Look) -> None:
        """A controller is elected and loads what is there."""
        first = not self.epoch
        self.epoch += 1
        held = dict(self.znodes)
        topic = self._topic() if not first else _observed(list(REPLICAS), [], [], [])
        self.hear(
            look,
            "controller_elected",
            seen=True,
            controller_id=OURSELVES,
            epoch=self.epoch,
            epoch_zk_version=self.epoch,
            endpoints=[],
            config={"auto.leader.rebalance.enable": False},
        )
        if first:
            self.registered = {id_: 100 + id_ for id_ in BROKERS}
        brokers = [broker(id_, epoch) for id_, epoch in sorted(self.registered.items())]
        self.hear(look, "broker_registrations_changed", seen=True, registered=brokers)
        self.hear(look, "topic_observed", "t", seen=True, **topic)
        self.hear(look, "resync_completed", seen=True, topics=1)
        look.load = Load(self.epoch, {**dict.fromkeys(self.znodes), **held}, first=False)
        self.results.append(look)

    def _topic(self) -> dict[str, Any]:
        rows, at = self.slot().table.rows, self.slot().table.rows_of("t")
        lists = rows.replicas[at].tolist()
        replicas = [[id_ for id_ in ids if id_ >= 0] for ids in lists]
        masks = (rows.adding[at].tolist(), rows.removing[at].tolist())
        adding, removing = (
            [
                [id_ for id_, marked in zip(ids, of_row, strict=True) if marked]
                for ids, of_row in zip(lists, mask, strict=True)
            ]
            for mask in masks
        )
        states = [self.znodes.get(("t", number)) for number in range(len(replicas))]
        return _observed(replicas, adding, removing, states)

    def look(self) -> Look:
        """A look into which the next intent puts what it shows."""
        self.results.append(Look(0))
        return self.results[-1]

    def kill(self, a: int, b: int) -> None:
        """A broker dies; one always stays."""
        dead = sorted(self.registered)[a % len(self.registered)]
        if len(self.registered) > 1:
            del self.registered[dead]
            gone: dict[str, Any] = {"unregistered": [dead]}
            self.hear(self.look(), "broker_registrations_changed", seen=True, **gone)

    def start(self, a: int, b: int) -> None:
        """A broker comes back, or bounces."""
        id_, self.clock = BROKERS[a % len(BROKERS)], self.clock + 1
        how = "bounced" if id_ in self.registered else "registered"
        self.registered[id_] = 100 + self.clock
        said: dict[str, Any] = {how: [broker(id_, self.registered[id_])]}
        self.hear(self.look(), "broker_registrations_changed", seen=True, **said)

    def alter(self, a: int, b: int) -> None:
        """A leader takes members in or out."""
        number = a % len(REPLICAS)
        now = self.znodes.get(("t", number))
        if now is None or now.leader not in self.registered:
            return
        table = self.slot().table
        replicas = table.rows.replicas[int(table.rows_of("t")[number])].tolist()
        others = [id_ for id_ in replicas if id_ in self.registered and id_ != now.leader]
        chosen = [id_ for place, id_ in enumerate(others) if b >> place & 1]
        isr = [id_ for id_ in now.isr if id_ == now.leader or id_ in chosen]
        isr += [id_ for id_ in chosen if id_ not in isr]
        if self.leaders_ask:
            self._ask(number, now, isr)
        elif isr != list(now.isr):
            self._write(number, now, isr)

    def _write(self, number: int, now: Leadership, isr: Sequence[int]) -> None:
        """A leader changes its znode itself, and the controller reads it."""
        look, after = self.look(), replace(now, isr=tuple(isr), version=now.version + 1)
        self.znodes["t", number] = look.states["t", number] = after
        self.hear(
            look,
            "partition_states_observed",
            "t",
            seen=False,
            topic="t",
            cause=StateCause.NOTIFICATION,
            partitions=[number],
            states=[to_state(after, self.epoch)],
        )

    def _ask(self, number: int, now: Leadership, isr: Sequence[int]) -> None:
        self.hear(
            self.look(),
            "alter_partition_requested",
            "t",
            seen=False,
            request_id="r",
            broker_id=now.leader,
            broker_epoch=self.registered[now.leader],
            version=3,
            topic="t",
            partitions=[
                {
                    "partition": number,
                    "leader_epoch": now.leader_epoch,
                    "partition_epoch": now.version,
                    "isr": isr,
                }
            ],
        )

    def prefer(self, a: int, b: int) -> None:
        """Somebody asks for preferred leaders."""
        body = {"request_id": "r", "topic": "t", "election_type": "preferred"}
        partitions = [number for number in range(len(REPLICAS)) if a >> number & 1]
        look = self.look()
        self.hear(look, "elect_leaders_requested", "t", seen=False, **body, partitions=partitions)

    def move(self, a: int, b: int) -> None:
        """Somebody asks for a reassignment, through the API or ZooKeeper, or takes one back."""
        alive = sorted(self.registered)
        turned = alive[b % len(alive) :] + alive[: b % len(alive)]
        target = None if b % 7 == 0 else turned[: 1 + b % 3]
        by_znode = bool(a & 8) and target is not None
        self.hear(
            self.look(),
            "alter_reassignments_requested",
            "t",
            seen=by_znode,
            request_id=None if by_znode else "r",
            topic="t",
            partitions=[a % len(REPLICAS)],
            targets=[target],
        )

    def fail_over(self, a: int, b: int) -> None:
        """Another controller is elected."""
        self.elect(Look(0))


def _observed(
    replicas: Sequence[Sequence[int]],
    adding: Sequence[Sequence[int]],
    removing: Sequence[Sequence[int]],
    states: Sequence[Leadership | None],
) -> dict[str, Any]:
    return {
        "topic": "t",
        "partitions": list(range(len(replicas))),
        "replicas": replicas,
        "adding": adding or None,
        "removing": removing or None,
        "states": [
            None if one is None else [one.leader, one.leader_epoch, one.isr, 1, 0, one.version]
            for one in states
        ]
        or None,
    }


INTENTS: dict[str, Callable[[Live, int, int], None]] = {
    "kill": Live.kill,
    "start": Live.start,
    "alter": Live.alter,
    "prefer": Live.prefer,
    "move": Live.move,
    "fail_over": Live.fail_over,
}
LOGS = st.lists(
    st.tuples(
        st.sampled_from([*INTENTS, "alter", "alter", "start"]),
        st.integers(0, 15),
        st.integers(0, 15),
    ),
    max_size=25,
)

DECIDED_ONCE_MORE: list[Intent] = [
    ("kill", 2, 0),
    ("start", 2, 0),
    ("move", 0, 1),
    ("kill", 3, 0),
    ("alter", 0, 2),
    ("kill", 0, 0),
    ("start", 1, 0),
]
"""Our machine, told how a partition is, decides the same again; only the epochs differ then."""


def shadowed(live: Live, late: Sequence[bool]) -> tuple[Shadow, Notes, MemoryEngine]:
    """A shadow that has seen all of a live controller's looks; late: results come a look later."""
    engine, notes = MemoryEngine(), Notes()
    comparison = Comparison(WINDOW_MS, GRACE_MS, leaders_ask=live.leaders_ask)
    shadow = Shadow(engine, comparison, notes)
    now_ms, kept = 1_000, Look(0)
    for number, look in enumerate(live.results):
        now_ms += 1
        if late and late[number % len(late)] and look.load is None:
            shadow.observe(Look(now_ms, look.inputs, kept.states, kept.topics))
            kept = look
            continue
        states = {**kept.states, **look.states} if look.load is None else look.states
        topics = {**kept.topics, **look.topics} if look.load is None else look.topics
        shadow.observe(Look(now_ms, look.inputs, states, topics, load=look.load))
        kept = Look(0)
    shadow.observe(Look(now_ms + 1, [], kept.states, kept.topics))
    for pause_ms in (*[GRACE_MS] * 8, *[2 * WINDOW_MS] * 4):
        now_ms += pause_ms
        shadow.settle(now_ms, now_ms)
    return shadow, notes, engine


def author(log: list[Intent], *, leaders_ask: bool) -> Live:
    live = Live(leaders_ask=leaders_ask)
    for name, a, b in log:
        INTENTS[name](live, a, b)
    return live


def assert_no_drift(live: Live, shadow: Shadow, engine: MemoryEngine) -> None:
    """Our machine holds what the live one wrote, and waits for nothing."""
    assert shadow.comparison.unsettled == 0
    machine = decode_machine(engine.states[0])
    assert isinstance(machine, Slot)
    ours, theirs = machine.table.rows, live.slot().table.rows
    for name in ("leader", "leader_epoch", "zk_version"):
        assert getattr(ours, name).tolist() == getattr(theirs, name).tolist(), name


@settings(deadline=None)
@given(log=LOGS, leaders_ask=st.booleans())
def test_nothing_differs_from_a_controller_of_the_same_rules(
    log: list[Intent], leaders_ask: bool
) -> None:
    live = author(log, leaders_ask=leaders_ask)
    shadow, notes, engine = shadowed(live, [])
    assert [one for one in notes.verdicts if one.status in DIVERGENCES] == []
    assert_no_drift(live, shadow, engine)


@settings(deadline=None)
@given(log=LOGS, late=st.lists(st.booleans(), min_size=1, max_size=7), leaders_ask=st.booleans())
@example(log=DECIDED_ONCE_MORE, late=[False, True], leaders_ask=True)
def test_results_that_come_late_and_merged_never_make_us_drift(
    log: list[Intent], late: list[bool], leaders_ask: bool
) -> None:
    """What hides between two looks may count as a difference; whatever does is taken over."""
    live = author(log, leaders_ask=leaders_ask)
    shadow, _, engine = shadowed(live, late)
    assert_no_drift(live, shadow, engine)
