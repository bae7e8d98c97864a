"""What must hold of a cluster: after each batch of what was written, and of everything when nothing
is left to be done.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from state.matrix import unpad
from state.partitions.slot import Slot
from streaming.zk.znodes.paths import partition_state_path
from tests.property.control_actions import change_isr, fetching, places, start, topics
from tests.property.control_brokers import Broker, Place
from tests.property.control_loop import ControlLoop, stored_state
from tests.property.test_state_invariants import Row, rows_of

BATCHES_UNTIL_SETTLED = 40


class WrittenStates:
    """Follows the states that the controller writes: what was acknowledged is not lost.

    An acknowledged record is on every broker of the ISR that is stored while its leader leads, so
    the next leader is to be one of them (unclean elections are not allowed here), and nobody joins
    but those that a leader of the stored epoch asked for.
    """

    def __init__(self, loop: ControlLoop) -> None:
        self._loop = loop
        self._seen = len(loop.store.written)

    def run_batch(self) -> None:
        """Run a batch, and look at each state that it wrote."""
        loop = self._loop
        states = {place: stored_state(loop, place) for place in places(loop)}
        loop.run_batch()
        paths = {partition_state_path(*place): place for place in states}
        for write in loop.store.written[self._seen :]:
            place = paths.get(write.path)
            if place is None:
                continue
            before = states[place]
            if before is not None and write.op == "set":
                self._check(place, before, write.value)
            states[place] = write.value
        self._seen = len(loop.store.written)

    def _check(self, place: Place, before: dict[str, Any], after: dict[str, Any]) -> None:
        asked = self._loop.asked.get((place, before["leader_epoch"]))
        in_sync = [{*before["isr"]}, *([{*asked}] if asked else [])]
        safe = any({*after["isr"]} <= one and after["leader"] in {-1, *one} for one in in_sync)
        assert safe, ("LOST: leader or ISR was not in sync", place, before, after, asked)
        assert after["leader_epoch"] >= before["leader_epoch"]


def settle(loop: ControlLoop, states: WrittenStates) -> None:
    """Let everything be noticed, folded, carried out and answered."""
    for _ in range(BATCHES_UNTIL_SETTLED):
        loop.catch_up()
        if loop.is_settled():
            return
        states.run_batch()
    raise AssertionError("decisions lead to decisions without end")


def restore(loop: ControlLoop, states: WrittenStates) -> None:
    """Have every broker there again, and all replicas in sync."""
    unaware = unaware_leaders(loop)
    for broker in loop.brokers.values():
        if not broker.alive or broker.leaving or broker in unaware:
            start(loop, broker, "bounced" if broker.alive else "registered")
    settle(loop, states)
    for _ in range(BATCHES_UNTIL_SETTLED):
        for broker in loop.live():
            for place in broker.leads():
                change_isr(loop, broker, place, [broker.id, *fetching(loop, broker, place)])
        if loop.is_settled() and not loop.unnoticed:
            return
        settle(loop, states)
    raise AssertionError("ISRs change without end")


def has_left_its_data(loop: ControlLoop) -> bool:
    """Whether nobody who is in sync is listed, or led last: such a broker is not told to lead when
    it comes back, as another controller may have had it delete its replica.
    """
    states = {place: stored_state(loop, place) for place in served_places(loop)}
    return any(
        state is not None
        and state["leader"] < 0
        and {*state["isr"]}.isdisjoint(assigned(loop, place))
        for place, state in states.items()
    )


def unaware_leaders(loop: ControlLoop) -> list[Broker]:
    """The leaders that are there, that their topic does not list and that do not know of it: they
    restarted before we knew that they lead, and are not told until the next broker comes.
    """
    found = []
    for place in served_places(loop):
        state = stored_state(loop, place) or {"leader": -1}
        broker = loop.brokers.get(state["leader"])
        if broker is not None and broker.alive and broker.id not in assigned(loop, place):
            known = broker.replicas.get(place)
            if known is None or known.epoch != state["leader_epoch"]:
                found.append(broker)
    return found


def check_agreement(loop: ControlLoop) -> None:
    """ZooKeeper, the machines, the image and the brokers that are there say the same; nobody leads
    but the leader.
    """
    rows, told = machine_rows(loop), image_rows(loop)
    for place in served_places(loop):
        state = stored_state(loop, place)
        if state is None:
            assert not may_lead(loop, assigned(loop, place)), ("no state", place)
            continue
        stored = (state["leader"], state["leader_epoch"], tuple(state["isr"]), state["version"])
        row = rows[place]
        assert (row.leader, row.leader_epoch, row.isr, row.zk_version) == stored, place
        assert told.get(place) == stored, place
        for broker in loop.live():
            check_broker(broker, place, state, assigned(loop, place))
        in_sync = {*state["isr"]} & {*assigned(loop, place)}
        assert state["leader"] >= 0 or not may_lead(loop, in_sync), ("no leader", place, state)


def may_lead(loop: ControlLoop, ids: Collection[int]) -> list[int]:
    """Those of some brokers that are there and stay."""
    return [one.id for one in loop.live() if one.id in ids and not one.leaving]


def check_broker(
    broker: Broker, place: Place, state: dict[str, Any], listed: Sequence[int]
) -> None:
    """A broker knows leader and epoch, runs what it is assigned, and leads if it is the leader."""
    known, leader = broker.replicas.get(place), (state["leader"], state["leader_epoch"])
    about = (broker, place, state, listed)
    assert broker.told.get(place) == leader, ("not told", *about)
    if broker.id == leader[0]:
        assert known is not None, ("a leader without a replica", *about)
        assert known.waits or known.version == state["version"], ("an old version", *about)
        assert not known.waits, ("a leader that waits for ever", *about)
    if known is None:
        assert broker.id not in listed or broker.leaving, ("never started", *about)
    elif broker.id in listed and not broker.leaving:
        assert (known.leader, known.epoch) == leader, ("an old leader epoch", *about)
    assert known is None or known.leader != broker.id or leader[0] == broker.id, ("leads", *about)


def check_whole(loop: ControlLoop) -> None:
    """With all brokers back nothing is in motion, and nobody runs what is not listed."""
    for place in served_places(loop):
        state, listed = stored_state(loop, place), assigned(loop, place)
        assert state is not None
        assert state["leader"] in state["isr"], ("no leader", place, state)
        assert sorted(state["isr"]) == sorted(listed), ("not all in sync", place, state, listed)
    for name, topic in topics(loop).items():
        assert not any(topic.adding.values()), ("still adding", name, topic)
        assert not any(topic.removing.values()), ("still removing", name, topic)
    check_nobody_is_left(loop)


def check_nobody_is_left(loop: ControlLoop) -> None:
    """What brokers run is assigned to them, and of a deleted topic nothing is left anywhere."""
    assert not loop.store.children("/admin/delete_topics")
    there = set(places(loop))
    for broker in loop.live():
        strays = [
            p for p in broker.replicas if p not in there or broker.id not in assigned(loop, p)
        ]
        assert not strays, ("runs what is not its own", broker.id, strays)
        assert there == broker.told.keys(), ("is told of", broker.id, there ^ broker.told.keys())
    assert there == machine_rows(loop).keys() == image_rows(loop).keys()


def served_places(loop: ControlLoop) -> list[Place]:
    """The partitions of topics that are not to be deleted."""
    going = loop.store.children("/admin/delete_topics")
    return [place for place in places(loop) if place[0] not in going]


def assigned(loop: ControlLoop, place: Place) -> Sequence[int]:
    return topics(loop)[place[0]].replicas[place[1]]


def machine_rows(loop: ControlLoop) -> dict[Place, Row]:
    slots = [one for one in loop.fold.machines() if isinstance(one, Slot)]
    return {place: row for slot in slots for place, row in rows_of(slot).items()}


def image_rows(loop: ControlLoop) -> dict[Place, tuple[int, int, tuple[int, ...], int]]:
    """Leader, leader epoch, ISR and version of each partition that requests are answered from."""
    index, names = loop.image.topic_of_rows()
    columns = loop.image.columns if len(index) else {}
    return {
        (names[topic], int(columns["partition"][at])): (
            int(columns["leader"][at]),
            int(columns["leader_epoch"][at]),
            tuple(unpad(columns["isr"][at])),
            int(columns["partition_epoch"][at]),
        )
        for at, topic in enumerate(index)
    }
