"""What happens to a cluster between two batches: each action is a function of the loop and two
numbers, which choose among what is there.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import orjson

from streaming.zk.znodes.partition_state import partition_state_bytes
from streaming.zk.znodes.paths import partition_state_path, topic_path
from streaming.zk.znodes.topic import TopicZNode, parse_topic
from tests.fixtures.observed_topics import topics_of
from tests.property.control_brokers import Broker, Place
from tests.property.control_loop import BROKERS, ControlLoop

LEAST_LIVE = 2
MOST_PARTITIONS = 3
TARGETS = [list(one) for size in (2, 3) for one in itertools.permutations(BROKERS, size)]
GONE = "u"
"""The topic of the first ones that may be deleted. Its name is not used again, which is an open
case: what is said of the old topic is not told apart from the new one, as neither has an id.
"""
AGAIN = "v"
"""A topic with an id, whose name is used again."""


def topics(loop: ControlLoop) -> dict[str, TopicZNode]:
    """The topics in ZooKeeper, by name."""
    names = topics_of(loop.store)
    return {name: parse_topic(loop.store.nodes[topic_path(name)].data) for name in names}


def places(loop: ControlLoop) -> list[Place]:
    """The partitions that topics in ZooKeeper list."""
    return [(name, number) for name, topic in topics(loop).items() for number in topic.replicas]


def led(loop: ControlLoop) -> list[tuple[Broker, Place]]:
    """The brokers that are there, and what each believes to lead."""
    return [(broker, place) for broker in loop.live() for place in broker.leads()]


def isr_changes(loop: ControlLoop, a: int, b: int) -> None:
    """A leader changes its ISR: b says which of the followers that fetch from it are in, most."""
    if leading := led(loop):
        broker, place = leading[a % len(leading)]
        followers = fetching(loop, broker, place)
        in_sync = [one for at, one in enumerate(followers) if (b | b >> 4) >> at & 1]
        change_isr(loop, broker, place, [broker.id, *in_sync])


def race(loop: ControlLoop, a: int, b: int) -> None:
    """A leader changes its ISR, and before that is noticed the partition is moved, or its leader
    asks to be let go.
    """
    if leading := led(loop):
        broker, place = leading[a % len(leading)]
        isr_changes(loop, a, b)
        if a // len(leading) % 4:
            move_place(loop, place, b)
        else:
            let_go(loop, broker)


def cut_off(loop: ControlLoop, a: int, b: int) -> None:
    """The leader with the most followers puts them out of its ISR; one of them dies and then the
    leader, with what a broker answered in between.
    """
    leading = sorted(led(loop), key=lambda one: len(fetching(loop, *one)))
    for broker, place in leading[-1:]:
        change_isr(loop, broker, place, [broker.id])
        for one in fetching(loop, broker, place)[:1]:
            end(loop, loop.brokers[one])
        loop.take_answers(1)
        end(loop, broker)


def catch_up(loop: ControlLoop, a: int, b: int) -> None:
    """All replicas are in sync, which is noticed: moves end; half the time a partition is moved
    again at once.
    """
    for broker, place in led(loop):
        change_isr(loop, broker, place, [broker.id, *fetching(loop, broker, place)])
    while loop.unnoticed:
        loop.notice(loop.unnoticed.pop(0))
    if a % 2:
        move(loop, a // 2, b)


def fetching(loop: ControlLoop, broker: Broker, place: Place) -> list[int]:
    """The brokers that follow a leader in its epoch, of those that it knows to be assigned."""
    led = broker.replicas[place]
    found = []
    for one in loop.live():
        own = one.replicas.get(place) if one.id in led.assigned else None
        if own is not None and (own.leader, own.epoch) == (broker.id, led.epoch):
            found.append(one.id)
    return [one for one in found if one != broker.id]


def change_isr(loop: ControlLoop, broker: Broker, place: Place, isr: list[int]) -> None:
    """Partition.alterIsr: with a version that is not the stored one nothing is written."""
    replica, path = broker.replicas[place], partition_state_path(*place)
    node = loop.store.get(path)
    if replica.waits or replica.asked or node is None:
        return
    stored = orjson.loads(node.data)
    if node.version == replica.version and sorted(stored["isr"]) == sorted(isr):
        return
    if broker.id in loop.asking:
        loop.asked[place, replica.epoch] = isr
        of: dict[str, Any] = {"broker": broker.id, "broker_epoch": broker.epoch}
        of |= {"leader_epoch": replica.epoch, "partition_epoch": replica.version}
        replica.asked = f"alter-{loop.log.alter(*place, isr, **of)}"
    elif node.version == replica.version:
        epoch = stored["controller_epoch"]
        [data] = partition_state_bytes([broker.id], [replica.epoch], [isr], epoch, [0])
        loop.store.change(path, data)
        replica.version += 1
        loop.unnoticed.append(place)


def notice(loop: ControlLoop, a: int, b: int) -> None:
    """The observers come to one of the notifications of ISRs that changed."""
    if loop.unnoticed:
        loop.notice(loop.unnoticed.pop(a % len(loop.unnoticed)))


def die(loop: ControlLoop, a: int, b: int) -> None:
    """A broker dies."""
    end(loop, loop.live()[a % len(loop.live())])


def end(loop: ControlLoop, broker: Broker) -> None:
    if len(loop.live()) > LEAST_LIVE:
        broker.stop()
        loop.log.unregister(broker.id)


def come_back(loop: ControlLoop, a: int, b: int) -> None:
    """Brokers that are gone, or were about to go, start again: one or all of them."""
    gone = [one for one in loop.brokers.values() if not one.alive or one.leaving]
    for broker in gone if b % 2 else gone[:1]:
        start(loop, broker, "bounced" if broker.alive else "registered")


def bounce(loop: ControlLoop, a: int, b: int) -> None:
    """A broker is another one before its end was seen."""
    start(loop, loop.live()[a % len(loop.live())], "bounced")


def start(loop: ControlLoop, broker: Broker, how: str) -> None:
    broker.start()
    loop.log.register({broker.id: 10 + broker.id}, add=broker.epoch - broker.id, how=how)


def shut_down(loop: ControlLoop, a: int, b: int) -> None:
    """A broker asks to be let go; again, if it was not."""
    let_go(loop, loop.live()[a % len(loop.live())])


def let_go(loop: ControlLoop, broker: Broker) -> None:
    if broker.leaving or sum(not one.leaving for one in loop.live()) > LEAST_LIVE:
        broker.leaving = True
        loop.log.shut_down(broker.id, epoch=broker.epoch)


def move(loop: ControlLoop, a: int, b: int) -> None:
    """A partition is moved or, half the time, its move is cancelled."""
    move_place(loop, places(loop)[a % len(places(loop))], b)


def move_place(loop: ControlLoop, place: Place, b: int) -> None:
    topic, partition = place
    loop.log.move(topic, {partition: TARGETS[b // 2 % len(TARGETS)] if b % 2 else None})


def prefer(loop: ControlLoop, a: int, b: int) -> None:
    """The preferred leader of a partition is to be elected."""
    topic, partition = places(loop)[a % len(places(loop))]
    loop.log.elect_preferred(topic, [partition])


def grow(loop: ControlLoop, a: int, b: int) -> None:
    """A topic gets a partition."""
    topic = sorted(topics(loop))[a % len(topics(loop))]
    there = len(topics(loop)[topic].replicas)
    if there < MOST_PARTITIONS:
        assignment = [TARGETS[b % len(TARGETS)]]
        asked = {"topic": topic, "partitions": there + 1, "assignment": assignment}
        loop.log.write("create_partitions_requested", topic, request_id="grow", **asked)


def delete(loop: ControlLoop, a: int, b: int) -> None:
    """A topic is deleted: one of the first ones, or one that is created now, of one replica."""
    topic = GONE
    if b % 8:
        topic = f"short-lived-{len(loop.log.events)}"
        loop.log.create(topic, [[BROKERS[a % len(BROKERS)]]])
    asked = {"topic": topic, "topic_id": None}
    loop.log.write("delete_topic_requested", topic, request_id="delete", **asked)


def answer(loop: ControlLoop, a: int, b: int) -> None:
    """What a broker answered comes before what happens next."""
    loop.take_answers(1)


ACTIONS: dict[str, Callable[[ControlLoop, int, int], None]] = {
    one.__name__: one
    for one in (
        isr_changes,
        race,
        cut_off,
        catch_up,
        notice,
        move,
        die,
        come_back,
        bounce,
        shut_down,
        prefer,
        grow,
        delete,
        answer,
    )
}
FREQUENT = ("race", "catch_up", "come_back") * 5 + ("cut_off", "delete") * 3
