"""Random event logs that mean something.

Hypothesis draws a list of intents: small tuples of numbers. `Author` turns them into events while
it folds them, so that requests can carry the epochs that are right at that moment, or wrong ones on
purpose. Most of what is asked for concerns what is there: topics, partitions, live brokers.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import orjson
from hypothesis import strategies as st

from state.cluster.cluster import Cluster
from state.decisions import DecisionKind
from state.events import Event
from state.matrix import unpad
from state.merge import MergedDecision
from state.partitions.slot import Slot
from state.routing import CLUSTER_KEY
from state.topic_ids import topic_id_to_text
from streaming.sinks.batch import SinkDecision, opened
from tests.fixtures.story import OURSELVES
from tests.logs.admin_intents import ADMIN_WEIGHTS
from tests.logs.log_parts import (
    BROKERS,
    POISON,
    TOPICS,
    chosen,
    lists_of,
    some_of,
    state_of,
    written_by_another,
)
from tests.logs.machines import Machines
from tests.logs.partition_intents import PARTITION_WEIGHTS
from tests.logs.topic_intents import TOPIC_WEIGHTS

Intent = tuple[str, int, int, int, int]
Play = Callable[["Author", int, int, int, int], None]

FIRST_TOPICS: Mapping[str, list[list[int]]] = {
    "a": [[1, 2, 3], [2, 3, 4], [3, 4, 1]],
    "b": [[4, 1], [1, 2]],
    "c.d": [[3]],
}
"""Replicas of what every log begins with."""


class Author:
    """Writes a log: each method appends the events of one intent, told by up to four numbers.

    decided: all that was decided, in order.
    """

    def __init__(self, *, plausible: bool = False) -> None:
        """With plausible, what others write to the store is what Kafka could write."""
        self.plausible = plausible
        self.events: list[Event] = []
        self.decided: list[MergedDecision] = []
        self.machines = Machines()
        self.registered: dict[int, int] = {}
        self.epoch = 0
        self.clock = 0
        self.reported: SinkDecision | None = None
        self.proposals: SinkDecision | None = None
        self.checked: dict[str, Any] | None = None
        self.at_risk: SinkDecision | None = None

    def write(self, kind: str, key: str = "", **body: Any) -> None:
        """Append an event and fold it."""
        self.append(kind, key, orjson.dumps(body))

    def ask(self, kind: str, topic: str, **body: Any) -> None:
        """Append a request about a topic, which is to be answered."""
        self.write(kind, topic, request_id=self.request_id(), topic=topic, **body)

    def request_id(self) -> str:
        """Return the id of the next event, if it is a request."""
        return f"r{len(self.events)}"

    def append(self, kind: str, key: str, payload: bytes) -> None:
        """Append an event with any payload and fold it."""
        offset = len(self.events)
        event = Event(offset, 1_000 + offset * 7, kind, key, payload)
        self.events.append(event)
        decided = self.machines.fold(event)
        self.decided += decided
        for decision in decided:
            if decision.kind is DecisionKind.PROPOSE_ELECTIONS:
                (self.proposals,) = opened([decision])
            elif decision.kind is DecisionKind.REPORT_IMBALANCE:
                (self.reported,) = opened([decision])
            elif decision.kind is DecisionKind.CHECK_SHUTDOWN:
                self.checked = orjson.loads(decision.body)
            elif decision.kind is DecisionKind.REPORT_AT_RISK:
                (self.at_risk,) = opened([decision])

    def slot(self) -> Slot:
        """Return the machine that has all topics in this author's fold."""
        machine = self.machines[0]
        assert isinstance(machine, Slot)
        return machine

    def cluster(self) -> Cluster:
        """Return the cluster machine of this author's fold."""
        machine = self.machines[CLUSTER_KEY]
        assert isinstance(machine, Cluster)
        return machine

    def decides(self) -> bool:
        """Return whether we are the controller, loaded and not paused."""
        return self.slot().authority.is_active

    def a_topic(self, number: int) -> str:
        """Return a topic: seven of eight times one that is there."""
        return some_of([topic.name for topic in self.slot().table.topics], TOPICS, number)

    def a_broker(self, number: int) -> int:
        """Return a broker: seven of eight times one that is registered."""
        return some_of(sorted(self.registered), BROKERS, number)

    def epoch_of(self, broker: int) -> int:
        """Return a broker's epoch, any number for one that is not registered."""
        return self.registered.get(broker, 1)

    def broker(self, number: int) -> dict[str, Any]:
        """Return a broker's registration with a new epoch."""
        self.clock += 1
        self.registered[number] = 100 + self.clock
        return self.registration(number)

    def registration(self, number: int) -> dict[str, Any]:
        """Return a registered broker's registration as it is."""
        return {"id": number, "epoch": self.registered[number], "rack": None, "endpoints": []}

    def play(self, intents: Sequence[Intent]) -> None:
        """Let intents happen; while we do not decide, most wait until we do again."""
        for name, *numbers in intents:
            if not self.decides() and numbers[3] % 4:
                self.come_back(*numbers)
            _BY_NAME[name](self, *numbers)

    def come_back(self, a: int, b: int, c: int, d: int) -> None:
        """Be elected again, and decide."""
        if self.slot().authority.paused:
            self.write("controller_resumed", reason="test")
        self.elect(a, b, c, d)

    def elect(self, a: int, b: int, c: int, d: int) -> None:
        """A new claim, and a load of what the store holds: what was decided so far, and sometimes
        what another controller has decided since.
        """
        table = self.slot().table
        topics = [self.observation(topic.name) for topic in table.topics]
        deletions = sorted(table.deletions)
        self.epoch += 1
        config = {
            "unclean.leader.election.enable": bool(a % 2),
            "leader.recovery.supported": bool(b % 4),
            "leader.imbalance.per.broker.percentage": c % 20,
            "leader.rebalance.partitions.max": 1 + d % 3,
            "leader.rebalance.sync.wait.ms": (0, 0, 1_000, 100_000)[(b + d) % 4],
            "controlled.shutdown.safety.check.enable": d % 3 == 0,
            "min.insync.replicas": 1 + a % 2,
            "delete.topic.enable": c % 16 != 15,
            "unclean.recovery.manager.enabled": c % 3 == 0,
            "leader.deprioritized.list": ("", "", "1", "2,1")[d % 4],
        }
        self.write(
            "controller_elected",
            controller_id=OURSELVES,
            epoch=self.epoch,
            epoch_zk_version=self.epoch + 3,
            endpoints=[],
            config=config,
        )
        brokers = [self.registration(number) for number in sorted(self.registered)]
        self.write("broker_registrations_changed", registered=brokers)
        for topic in topics:
            if d % 4 == 3:
                _decide_elsewhere(topic, a, b, c, d)
            self.write("topic_observed", topic["topic"], **topic)
        for name in deletions:
            self.write("topic_deletion_requested", name, topic=name)
        if d % 8:
            self.write("resync_completed", topics=len(topics))

    def observation(self, name: str) -> dict[str, Any]:
        """Return what topic_observed says of a topic as the fold knows it."""
        slot = self.slot()
        rows, at = slot.table.rows, slot.table.rows_of(name)
        topic = slot.table.topic(name)
        assert topic is not None
        return {
            "topic": name,
            "topic_id": topic_id_to_text(topic.topic_id),
            "unclean": topic.unclean,
            "min_insync_replicas": topic.min_insync,
            "zk_version": topic.zk_version,
            "partitions": rows.partition[at].tolist(),
            "replicas": [unpad(row) for row in rows.replicas[at]],
            "adding": lists_of(rows.replicas[at], rows.adding[at]),
            "removing": lists_of(rows.replicas[at], rows.removing[at]),
            "states": [state_of(slot, row) for row in at.tolist()],
        }

    def change_brokers(self, a: int, b: int, c: int, d: int) -> None:
        """Some brokers come, some go, seldom many of them; some bounce, some only change."""
        gone = [number for number in chosen(a) if number in self.registered]
        gone = gone if a % 8 == 7 else gone[: a % 3]
        new = [number for number in chosen(b) if number not in self.registered]
        stayed = [number for number in self.registered if number not in gone]
        bounced = [number for number in chosen(c) if number in stayed][: c % 3]
        updated = [number for number in chosen(d) if number in stayed and number not in bounced][:1]
        for number in gone:
            del self.registered[number]
        self.write(
            "broker_registrations_changed",
            registered=[self.broker(number) for number in new],
            unregistered=gone,
            bounced=[self.broker(number) for number in bounced],
            updated=[self.registration(number) for number in updated],
        )

    def ask_producer_ids(self, a: int, b: int, c: int, d: int) -> None:
        """A broker asks for producer ids, the block's znode is read, or delegation tokens end."""
        number = self.a_broker(a)
        if d % 5 == 0:
            tokens = [
                {"token_id": f"t-{n}", "owner": "User:u", "expired_at_ms": n, "zk_version": c}
                for n in range(a % 3)
            ]
            self.write("delegation_tokens_expired", tokens=tokens)
        if b % 3 == 0:
            end = c * 1000 - 1
            self.write("producer_id_block_observed", block_end=end, zk_version=c - 1)
        self.write(
            "producer_ids_requested",
            request_id=self.request_id(),
            broker_id=number,
            broker_epoch=self.epoch_of(number) - (d % 4 == 0),
        )

    def poison(self, a: int, b: int, c: int, d: int) -> None:
        """An event that cannot be read or that makes no sense."""
        kind, key, payload = POISON[(a * 7 + b) % len(POISON)]
        self.append(kind, key, payload)


def _decide_elsewhere(topic: dict[str, Any], a: int, b: int, c: int, d: int) -> None:
    """Let another controller have written one state of an observed topic."""
    stored = [at for at, state in enumerate(topic["states"]) if state is not None]
    if stored:
        at = stored[a % len(stored)]
        state = written_by_another(topic["states"][at], topic["replicas"][at], b, c, 2 + d % 2)
        topic["states"][at] = state


WEIGHTS: Mapping[Play, int] = {
    Author.change_brokers: 6,
    Author.elect: 2,
    **TOPIC_WEIGHTS,
    **PARTITION_WEIGHTS,
    **ADMIN_WEIGHTS,
    Author.ask_producer_ids: 1,
    Author.poison: 2,
}
_BY_NAME = {function.__name__: function for function in WEIGHTS}
NAMES = [function.__name__ for function, weight in WEIGHTS.items() for _ in range(weight)]
_NUMBERS = st.integers(0, 63)
INTENTS = st.lists(
    st.tuples(st.sampled_from(NAMES), _NUMBERS, _NUMBERS, _NUMBERS, _NUMBERS),
    min_size=8,
    max_size=40,
)


def authored(intents: Sequence[Intent], *, plausible: bool = False) -> list[Event]:
    """Return the log of some intents, after an election, a cluster of four brokers and topics."""
    return author_of(intents, plausible=plausible).events


def author_of(intents: Sequence[Intent], *, plausible: bool = False) -> Author:
    """Return the author of such a log, who may go on with it."""
    author = Author(plausible=plausible)
    for number in BROKERS[:4]:
        author.broker(number)
    author.elect(0, 1, 10, 1)
    for topic, replicas in FIRST_TOPICS.items():
        author.write(
            "topic_observed",
            topic,
            topic=topic,
            topic_id=None if topic == "b" else topic_id_to_text(topic[:1].encode() * 16),
            partitions=list(range(len(replicas))),
            replicas=replicas,
        )
    author.play(intents)
    return author


def random_intents(seed: int, count: int = 40) -> list[Intent]:
    """Return intents drawn with a seed: more of them than Hypothesis likes to draw."""
    chance = random.Random(seed)
    return [(chance.choice(NAMES), *(chance.randrange(64) for _ in range(4))) for _ in range(count)]


def long_log(seed: int, *, plausible: bool = False) -> list[Event]:
    """Return the log of forty intents drawn with a seed."""
    return authored(random_intents(seed), plausible=plausible)


SEEDS = st.integers(0, 2**32)
LOGS = INTENTS.map(authored) | SEEDS.map(long_log)
PLAUSIBLE_LOGS = INTENTS.map(partial(authored, plausible=True)) | SEEDS.map(
    partial(long_log, plausible=True)
)
