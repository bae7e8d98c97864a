"""Events that drive one transition of a state machine directly, past the log."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from checkpoints.machine_format import encode_machine
from state.cluster.brokers import Brokers
from state.decisions import Decision
from state.matrix import NONE, Int32s, pad_rows
from state.merge import merge
from state.partitions import election
from state.partitions.changes import Changes
from state.partitions.election import Strategy
from state.partitions.machine import move_partitions, move_replicas
from state.partitions.slot import Slot
from state.partitions.starting import start_rows
from streaming.zk.znodes import partition_state_path
from tests.conformance import names
from tests.conformance.mocks import count_calls
from tests.conformance.sink import apply, settle
from tests.conformance.verdict import NotUnderstoodError, SkippedError, only
from tests.conformance.world import World
from tests.fixtures.fake_zookeeper import UnreachableError

Move = Callable[[Slot, Changes], None]


def partition_transition(world: World, event: dict[str, Any]) -> None:
    """Move partitions to a state, with an election strategy when it is Online."""
    only(event, {"event", "partitions", "to", "strategy", "allow_unclean"}, "partition_transition")
    target = names.partition_state(event["to"])
    strategy = _strategy(event.get("strategy", "offline"))
    if strategy is Strategy.OFFLINE and event.get("allow_unclean", False):
        strategy = Strategy.UNCLEAN

    def move(slot: Slot, changes: Changes) -> None:
        rows = _rows(slot, [names.topic_partition(name) for name in event["partitions"]])
        move_partitions(slot, changes, rows, target, strategy)

    _drive(world, move)


def _strategy(name: str) -> Strategy:
    try:
        return Strategy[name.upper()]
    except KeyError:
        raise NotUnderstoodError(f"election strategy {name!r}") from None


def replica_transition(world: World, event: dict[str, Any]) -> None:
    """Move replicas to a state."""
    only(event, {"event", "replicas", "to"}, "replica_transition")
    target = names.replica_state(event["to"])

    def move(slot: Slot, changes: Changes) -> None:
        mask = np.zeros(slot.table.rows.replicas.shape, dtype=bool)
        for topic, partition, broker in event["replicas"]:
            for row in _rows(slot, [(topic, partition)]):
                mask[row] |= slot.table.rows.replicas[row] == broker
        move_replicas(slot, changes, mask, target)

    _drive(world, move)


def replica_sm_startup(world: World, event: dict[str, Any]) -> None:
    """Give every replica its first state and act on it."""
    only(event, {"event"}, "replica_sm_startup")
    _drive(world, lambda slot, changes: start_rows(slot, changes, np.arange(len(slot.table.rows))))


def live_set_change(world: World, event: dict[str, Any]) -> None:
    """Change which brokers are live and nothing else: no rule is told."""
    only(event, {"event", "live_brokers"}, "live_set_change")
    live = set(event["live_brokers"])
    world.brokers = {id_: world.brokers.get(id_, (1, None)) for id_ in sorted(live)}
    world.told = sorted(live)

    def move(slot: Slot, changes: Changes) -> None:
        known = slot.brokers.by_id
        slot.brokers = Brokers(
            [known[id_] for id_ in sorted(live & known.keys())], slot.brokers.shutting_down & live
        )
        new = live - known.keys()
        if new:
            raise NotUnderstoodError(f"brokers {sorted(new)} become live without registration")

    _drive(world, move, count=False)


def _rows(slot: Slot, partitions: list[tuple[str, int]]) -> np.ndarray:
    found = [
        int(slot.table.find(topic, np.array([partition], dtype=np.int32))[0])
        for topic, partition in partitions
    ]
    return np.array([row for row in found if row >= 0], dtype=np.intp)


def _drive(world: World, move: Move, *, count: bool = True) -> None:
    """Make a move in every slot and apply what is decided; state is kept as Spark would keep it.

    A store that cannot be reached ends the batch before its state is committed.
    """
    offset = world.next_offset()
    moved: dict[int, bytes] = {}
    found: list[Decision] = []
    for key, slot in world.slots():
        changes = Changes.about_cluster(slot.table, offset)
        move(slot, changes)
        found.extend(changes.finish(slot.authority, slot.brokers))
        moved[key] = encode_machine(slot)
    merged = merge(found)
    if count:
        count_calls(world, merged)
    try:
        _meet_errors(world)
        apply(world, merged)
    except UnreachableError:
        return
    world.machines |= moved
    settle(world)


def _meet_errors(world: World) -> None:
    """Let errors that a real store would not give, or only for another reason, be known."""
    if world.store.failing.get("create") == "NODEEXISTS":
        raise SkippedError(
            "the store says a state znode exists and does not say what is in it; "
            "here its content would come back as a conflict and be adopted"
        )
    if world.store.failing.get("get") is not None:
        raise UnreachableError(world.store.failing["get"])


def zk_error(world: World, event: dict[str, Any]) -> None:
    """Let the store fail from now on.

    Nothing reads the store while deciding. A missing znode is therefore observed before; any other
    error of a read means that the batch cannot be finished.
    """
    only(event, {"event", "op", "code"}, "zk_error")
    operation = event["op"].split("_")[0]
    if operation not in {"get", "create", "update", "set"}:
        raise NotUnderstoodError(f"zk_error of {event['op']!r}")
    code = event["code"].replace("_", "")
    if operation == "get" and code == "NONODE":
        _lose_states(world)
    else:
        world.store.failing["update" if operation == "set" else operation] = code


def _lose_states(world: World) -> None:
    for _, slot in world.slots():
        rows = slot.table.rows
        for topic in slot.table.topics:
            partitions = rows.partition[slot.table.rows_of(topic.name)].tolist()
            for partition in partitions:
                world.store.remove(partition_state_path(topic.name, partition))
            world.happen(
                "partition_states_observed",
                topic.name,
                topic=topic.name,
                cause="read",
                partitions=partitions,
                states=[None] * len(partitions),
            )
    settle(world)


def elect(world: World, event: dict[str, Any]) -> None:
    """Choose a leader with one of the pure election functions."""
    fields = {"event", "strategy", "assignment", "isr", "live_replicas", "unclean", "shutting_down"}
    only(event, fields, "elect")
    assignment, isr = pad_rows([event["assignment"]]), pad_rows([event["isr"]])
    live = np.isin(assignment, event["live_replicas"])
    leader, unclean = _choose(event, assignment, isr, live)
    world.answer = {
        "leader": None if leader < 0 else leader,
        "unclean_election_count": int(unclean),
    }


def _choose(
    event: dict[str, Any], assignment: Int32s, isr: Int32s, live: np.ndarray
) -> tuple[int, bool]:
    last = np.zeros(assignment.shape, dtype=bool)  # Kafka's controller deprioritizes nobody
    nobody = np.full(1, NONE, dtype=np.int32)
    match _strategy(event["strategy"]):
        case Strategy.OFFLINE:
            allowed = np.array([bool(event.get("unclean", False))])
            leader, unclean = election.offline_leader(
                assignment, isr, live, last, unclean_allowed=allowed, longest=nobody
            )
            return int(leader[0]), bool(unclean[0])
        case Strategy.REASSIGN:
            target = np.ones(assignment.shape, dtype=bool)
            return int(election.reassigned_leader(assignment, isr, live, last, target)[0]), False
        case Strategy.PREFERRED:
            return int(election.preferred_leader(assignment, isr, live, last, nobody)[0]), False
        case Strategy.CONTROLLED_SHUTDOWN:
            leaving = np.isin(assignment, event.get("shutting_down", []))
            chosen = election.controlled_shutdown_leader(assignment, isr, last, live, leaving)
            return int(chosen[0]), False
    raise NotUnderstoodError(f"election strategy {event['strategy']!r}")
