"""Random event logs that mean something.

Hypothesis draws a list of intents: small tuples of numbers. `Author` turns them into events while
it folds them, so that requests can carry the epochs that are right at that moment, or wrong ones on
purpose.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import orjson
from hypothesis import strategies as st

from checkpoints.machine_format import decode_machine
from checkpoints.replay import States, fold_batch
from state.blocks import decode_block
from state.decisions import DecisionKind
from state.events import Event
from state.matrix import unpad
from state.partitions.slot import Slot
from state.topic_ids import topic_id_to_text
from streaming.sinks.reports import Block
from tests.property.admin_intents import ADMIN_WEIGHTS
from tests.property.log_parts import (
    BROKERS,
    OURSELVES,
    POISON,
    TOPICS,
    chosen,
    deleting,
    lists_of,
    state_of,
    written_by_another,
)

Intent = tuple[str, int, int, int, int]


class Author:
    """Writes a log: each method appends the events of one intent, told by up to four numbers."""

    def __init__(self, *, plausible: bool = False) -> None:
        """With plausible, what others write to the store is what Kafka could write."""
        self.plausible = plausible
        self.events: list[Event] = []
        self.states: States = {}
        self.registered: dict[int, int] = {}
        self.epoch = 0
        self.clock = 0
        self.reported: Block | None = None
        self.proposals: Block | None = None
        self.checked: dict[str, Any] | None = None
        self.at_risk: Block | None = None

    def write(self, kind: str, key: str = "", **body: Any) -> None:
        """Append an event and fold it."""
        self.append(kind, key, orjson.dumps(body))

    def append(self, kind: str, key: str, payload: bytes) -> None:
        """Append an event with any payload and fold it."""
        offset = len(self.events)
        event = Event(offset, 1_000 + offset * 7, kind, key, payload)
        self.events.append(event)
        for decision in fold_batch(self.states, [event], 1):
            if decision.kind is DecisionKind.PROPOSE_ELECTIONS:
                self.proposals = decode_block(decision.body)
            elif decision.kind is DecisionKind.REPORT_IMBALANCE:
                self.reported = decode_block(decision.body)
            elif decision.kind is DecisionKind.CHECK_SHUTDOWN:
                self.checked = orjson.loads(decision.body)
            elif decision.kind is DecisionKind.REPORT_AT_RISK:
                self.at_risk = decode_block(decision.body)

    def slot(self) -> Slot:
        """Return the machine that has all topics in this author's fold."""
        machine = decode_machine(self.states[0]) if 0 in self.states else Slot()
        assert isinstance(machine, Slot)
        return machine

    def broker(self, number: int) -> dict[str, Any]:
        """Return a broker's registration with a new epoch."""
        self.clock += 1
        self.registered[number] = 100 + self.clock
        return {"id": number, "epoch": self.registered[number], "rack": None, "endpoints": []}

    def elect(self, a: int, b: int, c: int, d: int) -> None:
        """A new claim, and a load of what the store holds: all that was decided so far."""
        slot = self.slot()
        self.epoch += 1
        config = {
            "unclean.leader.election.enable": bool(a % 2),
            "leader.recovery.supported": bool(b % 4),
            "leader.imbalance.per.broker.percentage": c % 20,
            "leader.rebalance.partitions.max": 1 + d % 3,
            "controlled.shutdown.safety.check.enable": d % 3 == 0,
            "min.insync.replicas": 1 + a % 2,
        }
        self.write(
            "controller_elected",
            controller_id=OURSELVES,
            epoch=self.epoch,
            epoch_zk_version=self.epoch + 3,
            endpoints=[],
            config=config,
        )
        brokers = [self.broker(number) for number in sorted(self.registered)]
        self.write("broker_registrations_changed", registered=brokers)
        for topic in slot.table.topics:
            self.load(slot, topic.name)
        for name in sorted(slot.table.deletions):
            self.write("topic_deletion_requested", name, topic=name)
        if d % 8:
            self.write("resync_completed", topics=len(slot.table.topics))

    def load(self, slot: Slot, topic: str) -> None:
        """Observe a topic as the fold knows it."""
        rows, at = slot.table.rows, slot.table.rows_of(topic)
        self.write(
            "topic_observed",
            topic,
            topic=topic,
            partitions=rows.partition[at].tolist(),
            replicas=[unpad(row) for row in rows.replicas[at]],
            adding=lists_of(rows.replicas[at], rows.adding[at]),
            removing=lists_of(rows.replicas[at], rows.removing[at]),
            states=[state_of(slot, row) for row in at.tolist()],
        )

    def change_brokers(self, a: int, b: int, c: int, d: int) -> None:
        """Some brokers come, some go, some bounce, some only change."""
        gone = [number for number in chosen(a) if number in self.registered]
        new = [number for number in chosen(b) if number not in self.registered]
        stayed = [number for number in self.registered if number not in gone]
        bounced = [number for number in chosen(c) if number in stayed][:2]
        updated = [number for number in chosen(d) if number in stayed and number not in bounced][:1]
        for number in gone:
            del self.registered[number]
        epochs = {number: self.registered[number] for number in updated}
        self.write(
            "broker_registrations_changed",
            registered=[self.broker(number) for number in new],
            unregistered=gone,
            bounced=[self.broker(number) for number in bounced],
            updated=[self.broker(number) | {"epoch": epochs[number]} for number in updated],
        )
        self.registered |= epochs

    def observe_topic(self, a: int, b: int, c: int, d: int) -> None:
        """A topic appears, or gets more partitions; sometimes with states, or with us in a list."""
        topic = TOPICS[a % len(TOPICS)]
        slot = self.slot()
        known = slot.table.rows_of(topic)
        rows = slot.table.rows
        replicas = [unpad(row) for row in rows.replicas[known]]
        if replicas and b % 7 == 0:  # seen again before our repair of it was written
            replicas[0] = [OURSELVES, *replicas[0][1:]]
        states = [state_of(slot, row) for row in known.tolist()]
        for number in range(len(replicas), min(len(replicas) + 1 + b % 3, 6)):
            ids = [BROKERS[(c + number + step) % 6] for step in range(1 + d % 3)]
            replicas.append([OURSELVES, *ids[1:]] if (c + d) % 5 == 0 else ids)
            fresh = [ids[0], 0, ids, 0, 0, 0]
            states.append(fresh if (b + c) % 4 == 0 and OURSELVES not in replicas[-1] else None)
        self.write(
            "topic_observed",
            topic,
            topic=topic,
            topic_id=None,
            new_topic_id=topic_id_to_text(bytes([c + 1] * 16)) if d % 2 else None,
            unclean=(None, None, True, False)[d % 4],
            min_insync_replicas=(None, 1, 2)[b % 3],
            partitions=list(range(len(replicas))),
            replicas=replicas,
            states=states,
            zk_version=len(replicas),
        )

    def remove_topic(self, a: int, b: int, c: int, d: int) -> None:
        """A topic's znode is gone."""
        topic = TOPICS[a % len(TOPICS)]
        self.write("topic_removed", topic, topic=topic)

    def mark_topic(self, a: int, b: int, c: int, d: int) -> None:
        """A topic is to be deleted: somebody asks us, or writes it to the store."""
        topic = TOPICS[a % len(TOPICS)]
        if b % 2:
            self.write("topic_deletion_requested", topic, topic=topic)
        else:
            request = f"r{len(self.events)}"
            self.write("delete_topic_requested", topic, request_id=request, topic=topic)

    def answer_deletions(self, a: int, b: int, c: int, d: int) -> None:
        """A broker answers for replicas that it deletes, or says that it could not."""
        number = BROKERS[a % 6]
        epoch = self.registered.get(number, 1) - (d % 16 == 0)
        for topic, partitions in deleting(self.slot(), number).items():
            errors = [56 if b >> partition & 1 and c % 4 == 0 else 0 for partition in partitions]
            self.write(
                "stop_replica_answered",
                topic,
                broker_id=number,
                broker_epoch=epoch,
                topic=topic,
                partitions=partitions,
                errors=errors,
            )

    def create_topic(self, a: int, b: int, c: int, d: int) -> None:
        """A client asks for a topic."""
        topic = TOPICS[a % len(TOPICS)]
        listed = {"0": chosen(c)[:3], "1": chosen(d)[:3]} if b % 3 == 0 else None
        self.write(
            "create_topic_requested",
            topic,
            request_id=f"r{len(self.events)}",
            topic=topic,
            partitions=b % 5,
            replication_factor=c % 5,
            assignment=listed,
            configs={"unclean.leader.election.enable": "true"} if d % 5 == 0 else {},
            validate_only=d % 7 == 0,
            start_index=c,
            shift=d,
        )

    def alter_partition(self, a: int, b: int, c: int, d: int) -> None:
        """A leader changes its ISR, with the right epochs or with wrong ones."""
        slot = self.slot()
        if not len(slot.table.rows):
            return
        rows = slot.table.rows
        row = a % len(rows)
        topic = slot.table.topics[int(rows.topic[row])].name
        leader = int(rows.leader[row])
        assigned = unpad(rows.replicas[row])
        members = [member for member in assigned if b >> assigned.index(member) & 1]
        wrong = c % 8
        sender = leader if wrong != 1 else BROKERS[c % 6]
        self.write(
            "alter_partition_requested",
            topic,
            request_id=f"r{len(self.events)}",
            broker_id=sender,
            broker_epoch=self.registered.get(sender, 1) - (wrong == 2),
            version=d % 4,
            topic=topic,
            topic_id=None,
            partitions=[
                {
                    "partition": int(rows.partition[row]) + 50 * (wrong == 3),
                    "leader_epoch": int(rows.leader_epoch[row]) + (wrong == 4) - (wrong == 5),
                    "partition_epoch": int(rows.zk_version[row]) + (wrong == 6) - (wrong == 7),
                    "recovery": d % 5 % 3 if d % 4 == 0 else 0,
                    "isr": [leader, *[m for m in members if m != leader]] if c % 3 else members,
                }
            ],
        )

    def lose_disk(self, a: int, b: int, c: int, d: int) -> None:
        """A broker announces a failed disk, and answers for some partitions of a topic."""
        number, topic = BROKERS[a % 6], TOPICS[b % len(TOPICS)]
        self.write("log_dir_failure_notified", broker_ids=[number])
        self.write(
            "leader_and_isr_answered",
            topic,
            broker_id=number,
            broker_epoch=self.registered.get(number, 1),
            topic=topic,
            partitions=[0, 1, 9],
            errors=[(56, 0, 3)[c % 3], (56, 0)[d % 2], 56],
        )

    def observe_states(self, a: int, b: int, c: int, d: int) -> None:
        """A state znode was changed by its leader, or met by a write of ours, or is gone."""
        slot = self.slot()
        if not len(slot.table.rows):
            return
        row = a % len(slot.table.rows)
        partition = int(slot.table.rows.partition[row])
        topic = slot.table.topics[int(slot.table.rows.topic[row])].name
        found = state_of(slot, row)
        if found is not None and self.plausible:
            assigned = unpad(slot.table.rows.replicas[row])
            found = written_by_another(found, assigned, b, c, d)
        elif found is not None:
            members = [member for member in found[2] if b >> found[2].index(member) & 1]
            found[2] = members or found[2]
            found[0] = found[2][c % len(found[2])] if c % 3 == 0 else found[0]
            found[1] += d % 2
            found[5] += (1, 1, 2, 0)[d % 4]
        # What is taken back after a rejected write may have a dead member in its ISR.
        causes = ("notification", "conflict", "read", "rejected")[: 3 if self.plausible else 4]
        self.write(
            "partition_states_observed",
            topic,
            topic=topic,
            cause=causes[c % len(causes)],
            partitions=[partition, 70],
            states=[None if d % 11 == 0 else found, None],
            uncreated=[partition] if d % 22 == 0 and not self.plausible else [],
        )

    def change_config(self, a: int, b: int, c: int, d: int) -> None:
        """Unclean elections are allowed or forbidden, for all topics or for one."""
        if a % 2:
            topic = TOPICS[b % len(TOPICS)]
            unclean = (True, False, None)[c % 3]
            self.write("topic_config_changed", topic, topic=topic, unclean=unclean)
        else:
            config = {"unclean.leader.election.enable": bool(c % 2), "other": 1}
            self.write("cluster_config_changed", config=config)

    def ask_producer_ids(self, a: int, b: int, c: int, d: int) -> None:
        """A broker asks for producer ids, or the block's znode is read."""
        number = BROKERS[a % 6]
        if b % 3 == 0:
            end = c * 1000 - 1
            self.write("producer_id_block_observed", block_end=end, zk_version=c - 1)
        epoch = self.registered.get(number, 1) - d % 2
        request = f"r{len(self.events)}"
        self.write(
            "producer_ids_requested", request_id=request, broker_id=number, broker_epoch=epoch
        )

    def poison(self, a: int, b: int, c: int, d: int) -> None:
        """An event that cannot be read or that makes no sense."""
        kind, key, payload = POISON[(a * 7 + b) % len(POISON)]
        self.append(kind, key, payload)


WEIGHTS: Mapping[Callable[[Author, int, int, int, int], None], int] = {
    Author.change_brokers: 6,
    Author.observe_topic: 4,
    Author.alter_partition: 5,
    Author.create_topic: 2,
    Author.observe_states: 3,
    Author.lose_disk: 2,
    Author.elect: 3,
    Author.remove_topic: 1,
    Author.mark_topic: 2,
    Author.answer_deletions: 4,
    **ADMIN_WEIGHTS,
    Author.change_config: 1,
    Author.ask_producer_ids: 1,
    Author.poison: 2,
}
_BY_NAME = {function.__name__: function for function in WEIGHTS}
NAMES = [function.__name__ for function, weight in WEIGHTS.items() for _ in range(weight)]
_NUMBERS = st.integers(0, 63)
INTENTS = st.lists(
    st.tuples(st.sampled_from(NAMES), _NUMBERS, _NUMBERS, _NUMBERS, _NUMBERS),
    max_size=40,
)


def authored(intents: list[Intent], *, plausible: bool = False) -> list[Event]:
    """Return the log of some intents, after an election and a cluster of four brokers."""
    return author_of(intents, plausible=plausible).events


def author_of(intents: list[Intent], *, plausible: bool = False) -> Author:
    """Return the author of such a log, who may go on with it."""
    author = Author(plausible=plausible)
    for number in BROKERS[:4]:
        author.broker(number)
    author.elect(0, 1, 10, 1)
    for name, *numbers in intents:
        _BY_NAME[name](author, *numbers)
    return author


def long_log(seed: int, *, plausible: bool = False) -> list[Event]:
    """Return the log of sixty intents drawn with a seed: longer than Hypothesis likes to draw."""
    chance = random.Random(seed)
    intents = [(chance.choice(NAMES), *(chance.randrange(64) for _ in range(4))) for _ in range(60)]
    return authored(intents, plausible=plausible)


_SEEDS = st.integers(0, 2**32)
LOGS = INTENTS.map(authored) | _SEEDS.map(long_log)
PLAUSIBLE_LOGS = INTENTS.map(partial(authored, plausible=True)) | _SEEDS.map(
    partial(long_log, plausible=True)
)
