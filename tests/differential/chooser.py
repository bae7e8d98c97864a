"""Chooses the next step: the same seed and the same cluster give the same step.

Only what can happen to a real cluster is chosen; a leader's wishes come from leaders that live.
What Kafka's controller cannot survive, or what a comparison can say nothing about, is left out;
docs/differences.md lists it.
"""

from __future__ import annotations

import base64
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random

from tests.differential.model import Model, Partition
from tests.differential.steps import (
    PREFERRED_ELECTION_PATH,
    REASSIGNMENT_PATH,
    UNCLEAN,
    Step,
)

BROKERS = (1, 2, 3, 4, 5, 6)
_MOST_TOPICS = 5
_MOST_PARTITIONS = 4
_FEWEST_LIVE = 2
NO_LEADER = -1


@dataclass(slots=True)
class Chooser:
    """live: registered brokers; leaving: one that has asked to shut down and has to go next;
    failed: (broker, partitions) of the one broker with a failed disk.
    """

    random: Random
    live: set[int] = field(default_factory=lambda: set(BROKERS))
    leaving: int | None = None
    failed: tuple[int, set[Partition]] | None = None
    created: int = 0

    def next(self, model: Model) -> Step:
        """Choose a step that is possible now, and remember what it does to brokers."""
        if self.leaving is not None:
            return self._noted(Step("change_brokers", {"killed": [self.leaving]}))
        while True:
            if not model.topics and (step := self.create(model)) is not None:
                return step
            (kind,) = self.random.choices(list(_WEIGHTS), list(_WEIGHTS.values()))
            step = kind(self, model)
            if step is not None:
                return self._noted(step)

    def _noted(self, step: Step) -> Step:
        killed = set(step.of.get("killed", ()))
        match step.name:
            case "change_brokers":
                self.live = (self.live | set(step.of.get("started", ()))) - killed
                self.leaving = None
            case "shut_down_broker":
                self.leaving = step.of["broker"]
            case "fail_disk":
                self.failed = (step.of["broker"], set(step.of["partitions"]))
        if self.failed is not None and self.failed[0] in killed | set(step.of.get("bounced", ())):
            self.failed = None
        return step

    def _some(self, ids: set[int], most: int) -> list[int]:
        count = min(self.random.choice([1, 1, 2, 3][: most + 1]), len(ids), most)
        return sorted(self.random.sample(sorted(ids), count))

    def _replicas(self, among: set[int], factor: int) -> list[int]:
        return self.random.sample(sorted(among), min(factor, len(among)))

    def _assignment(self, among: set[int], most: int) -> list[list[int]]:
        factor = min(self.random.choice([1, 2, 2, 3, 3]), len(among))
        return [self._replicas(among, factor) for _ in range(self.random.randint(1, most))]

    def start(self, model: Model) -> Step | None:
        down = set(BROKERS) - self.live
        return Step("change_brokers", {"started": self._some(down, 3)}) if down else None

    def kill(self, model: Model) -> Step | None:
        spare = len(self.live) - _FEWEST_LIVE
        if spare <= 0:
            return None
        return Step("change_brokers", {"killed": self._some(self.live, min(spare, 2))})

    def bounce(self, model: Model) -> Step | None:
        return Step("change_brokers", {"bounced": self._some(self.live, 2)})

    def change_all(self, model: Model) -> Step | None:
        """Some start, some die, some bounce, in one transaction."""
        down = set(BROKERS) - self.live
        if not down or len(self.live) <= _FEWEST_LIVE:
            return None
        killed = self._some(self.live, 1)
        bounced = self._some(self.live - set(killed), 1)
        started = self._some(down, 2)
        return Step("change_brokers", {"started": started, "killed": killed, "bounced": bounced})

    def shut_down(self, model: Model) -> Step | None:
        if len(self.live) <= _FEWEST_LIVE:
            return None
        return Step("shut_down_broker", {"broker": self.random.choice(sorted(self.live))})

    def create(self, model: Model) -> Step | None:
        if len(model.topics) >= _MOST_TOPICS:
            return None
        name = self._new_name(model)
        if self.random.random() < 0.4:
            assignment = self._assignment(self.live, 3)
            return Step("request_topic", {"topic": name, "assignment": assignment})
        among = self.live if self.random.random() < 0.7 else set(BROKERS)
        return Step(
            "create_topic",
            {
                "topic": name,
                "assignment": self._assignment(among, 3),
                "topic_id": self.random.choice([None, *[self._topic_id()] * 5]),
                "unclean": self.random.choice([None, None, None, "true", "false"]),
            },
        )

    def _new_name(self, model: Model) -> str:
        gone = sorted({f"t{number + 1}" for number in range(self.created)} - model.topics.keys())
        if gone and self.random.random() < 0.3:
            return self.random.choice(gone)
        self.created += 1
        return f"t{self.created}"

    def _topic_id(self) -> str:
        return base64.urlsafe_b64encode(self.random.randbytes(16)).rstrip(b"=").decode()

    def grow(self, model: Model) -> Step | None:
        names = sorted(model.topics.keys() - model.moving_topics() - model.deleting)
        names = [name for name in names if len(model.topics[name].replicas) < _MOST_PARTITIONS]
        if not names:
            return None
        name = self.random.choice(names)
        present = model.topics[name].replicas
        factor = len(present[0])
        by_request = self.random.random() < 0.5
        among = self.live if by_request else set(BROKERS)
        if len(among) < factor:
            return None
        added = [self._replicas(among, factor)]
        if by_request:
            count = len(present) + len(added)
            of = {"topic": name, "count": count, "assignment": added}
            return Step("request_partitions", of)
        return Step("add_partitions", {"topic": name, "assignment": added})

    def delete(self, model: Model) -> Step | None:
        # A topic in motion: Kafka deletes it and blocks all later reassignments.
        names = sorted(model.topics.keys() - model.moving_topics() - model.deleting)
        if len(names) < 2:
            return None
        name = self.random.choice(names)
        # One that never had a leader is in no broker's metadata: Kafka says that it does not exist.
        known = any(partition[0] == name for partition in model.states)
        kind = self.random.choice(["delete_topic", "request_deletion" if known else "delete_topic"])
        return Step(kind, {"topic": name})

    def alter_isr(self, model: Model) -> Step | None:
        able = {one: ids for one in model.partitions() if len(ids := self._isr_of(model, one)) > 1}
        if not able:
            return None
        moving = [one for one in able if model.moving(one)]
        behind = [one for one in able if set(model.states[one]["isr"]) != set(able[one])]
        chosen = self.random.choice([*able, *moving * 4, *behind])
        candidates = able[chosen]
        leader = model.states[chosen]["leader"]
        if self.random.random() < 0.65:
            isr = candidates
        else:
            others = [id_ for id_ in candidates if id_ != leader]
            count = self.random.randint(0, len(others))
            isr = [leader, *self.random.sample(others, count)]
        now = model.states[chosen]["isr"]
        isr = [id_ for id_ in now if id_ in isr] + [id_ for id_ in isr if id_ not in now]
        if isr == now:
            return None
        of = {"topic": chosen[0], "partition": chosen[1], "isr": isr}
        if self.random.random() < 0.2:
            return Step("write_isr", of)
        return Step("alter_isr", {**of, "wrong": self._wrong()})

    def _wrong(self) -> dict[str, int]:
        """Return what a leader that is late, or ahead, is wrong about; mostly nothing."""
        if self.random.random() < 0.8:
            return {}
        what = self.random.choice(["leader_epoch", "partition_epoch", "broker_epoch"])
        return {what: self.random.choice([-1, 1])}

    def _isr_of(self, model: Model, partition: Partition) -> list[int]:
        """Return who may be in sync: all that live, if the leader does."""
        state = model.states.get(partition)
        if state is None or not self._healthy(state["leader"], partition):
            return []
        replicas = model.topics[partition[0]].replicas[partition[1]]
        return [id_ for id_ in replicas if self._healthy(id_, partition)]

    def _healthy(self, broker: int, partition: Partition) -> bool:
        if broker not in self.live or broker == self.leaving:
            return False
        return self.failed is None or broker != self.failed[0] or partition not in self.failed[1]

    def reassign(self, model: Model) -> Step | None:
        able = [one for one in model.partitions() if one in model.states]
        if not able:
            return None
        if self.random.random() < 0.5:
            chosen = self.random.choice(able)
            target = self._target(model, chosen, self.live)
            return self._requested(model, chosen, target)
        if REASSIGNMENT_PATH in model.admin:
            return None
        some = sorted(self.random.sample(able, min(self.random.choice([1, 1, 2]), len(able))))
        targets = {one: self._target(model, one, set(BROKERS)) for one in some}
        if not all(self._keeps_a_leader(model, *one) for one in targets.items()):
            return None
        return Step("reassign", {"targets": targets})

    def _requested(self, model: Model, chosen: Partition, target: list[int] | None) -> Step | None:
        wanted = model.origin(chosen) if target is None else target
        if not self._keeps_a_leader(model, chosen, wanted):
            return None
        of = {"topic": chosen[0], "partition": chosen[1], "target": target}
        return Step("request_reassignment", of)

    def _keeps_a_leader(self, model: Model, chosen: Partition, target: list[int]) -> bool:
        """Return whether the leader stays, or the motion ends at once and another replica in sync
        can lead: Kafka's controller goes on without one, and the partition is lost to its clients.
        """
        state = model.states[chosen]
        origin = model.origin(chosen)
        able = {id_ for id_ in state["isr"] if self._healthy(id_, chosen)}
        replaced = set(target) == set(origin) and not able.isdisjoint(origin)
        return replaced or state["leader"] in {NO_LEADER, *target, *origin}

    def _target(self, model: Model, partition: Partition, among: set[int]) -> list[int]:
        present = model.topics[partition[0]].replicas[partition[1]]
        if self.random.random() < 0.2:
            return self.random.sample(present, len(present))
        return self._replicas(among, self.random.choice([1, 2, 2, 3]))

    def cancel(self, model: Model) -> Step | None:
        moving = [one for one in model.partitions() if model.moving(one)]
        if not moving:
            return None
        return self._requested(model, self.random.choice(moving), None)

    def elect(self, model: Model) -> Step | None:
        # One that never had a leader: Kafka's event dies, for good when it came through ZooKeeper.
        able = [one for one in model.partitions() if one in model.states]
        if not able:
            return None
        some = sorted(self.random.sample(able, self.random.randint(1, len(able))))
        kind = self.random.choice(["preferred", "preferred", "znode", "unclean", "unclean"])
        if kind == "znode":
            if PREFERRED_ELECTION_PATH in model.admin:
                return None
            return Step("elect_preferred", {"partitions": some})
        number = 0 if kind == "preferred" else 1
        of = {"election_type": number, "partitions": some}
        if len(able) == len(model.partitions()) and self.random.random() < 0.2:
            of["partitions"] = None
        return Step("request_election", of)

    def mistake(self, model: Model) -> Step | None:
        """A request that is refused."""
        topics = sorted(model.topics)
        known = self.random.choice(topics) if topics else "t0"
        down = sorted(set(BROKERS) - self.live)
        nobody = down[0] if down else 9
        assign, topic, target = "assignment", "topic", "target"
        mistakes = [
            Step("request_topic", {topic: known, assign: [[self.random.choice(BROKERS)]]}),
            Step("request_topic", {topic: "mistaken", assign: [[nobody]]}),
            Step("request_topic", {topic: "mistaken", assign: [[1, 1]]}),
            Step("request_partitions", {topic: "none", "count": 2, assign: [[1]]}),
            Step("request_partitions", {topic: known, "count": 1, assign: []}),
            Step("request_deletion", {topic: "none"}),
            Step("delete_topic", {topic: "none"}),
            Step("request_election", {"election_type": 0, "partitions": [("none", 0)]}),
            Step("request_reassignment", {topic: "none", "partition": 0, target: [1]}),
            Step("request_reassignment", {topic: known, "partition": 9, target: None}),
            Step("request_reassignment", {topic: known, "partition": 0, target: []}),
            Step("request_reassignment", {topic: known, "partition": 0, target: [2, 2]}),
            Step("request_reassignment", {topic: known, "partition": 0, target: [-2]}),
        ]
        if down:
            of = {topic: known, "partition": 0, target: [nobody]}
            mistakes.append(Step("request_reassignment", of))
        return self.random.choice(mistakes)

    def grow_deleted(self, model: Model) -> Step | None:
        """Somebody adds a partition to a topic that is being deleted."""
        names = sorted(model.topics.keys() & model.deleting)
        if not names:
            return None
        name = self.random.choice(names)
        factor = len(model.topics[name].replicas[0])
        added = self._replicas(set(BROKERS), factor)
        return Step("add_partitions", {"topic": name, "assignment": [added]})

    def fail_disk(self, model: Model) -> Step | None:
        if self.failed is not None:
            return None
        hosted = [
            (broker, one)
            for one in model.partitions()
            if one in model.states
            for broker in model.topics[one[0]].replicas[one[1]]
            if broker in self.live
        ]
        if not hosted:
            return None
        broker, _ = self.random.choice(hosted)
        able = [one for id_, one in hosted if id_ == broker]
        some = sorted(self.random.sample(able, self.random.randint(1, len(able))))
        return Step("fail_disk", {"broker": broker, "partitions": some})

    def configure(self, model: Model) -> Step | None:
        value = self.random.choice(
            [{}, {UNCLEAN: "true"}, {UNCLEAN: "false"}, {"retention.ms": "9"}]
        )
        if self.random.random() < 0.25:
            return Step(
                "configure_brokers", {"config": {k: v for k, v in value.items() if k == UNCLEAN}}
            )
        names = sorted(model.topics.keys() - model.deleting)
        if not names:
            return None
        return Step("configure_topic", {"topic": self.random.choice(names), "config": value})

    def change_controller(self, model: Model) -> Step | None:
        # Whether a request that is open is found or resumed first depends on time.
        return None if model.admin else Step("change_controller")


_WEIGHTS: dict[Callable[[Chooser, Model], Step | None], int] = {
    Chooser.start: 14,
    Chooser.kill: 10,
    Chooser.bounce: 5,
    Chooser.change_all: 4,
    Chooser.shut_down: 4,
    Chooser.create: 14,
    Chooser.grow: 5,
    Chooser.delete: 6,
    Chooser.grow_deleted: 3,
    Chooser.mistake: 6,
    Chooser.alter_isr: 18,
    Chooser.reassign: 10,
    Chooser.cancel: 4,
    Chooser.elect: 8,
    Chooser.fail_disk: 4,
    Chooser.configure: 6,
    Chooser.change_controller: 2,
}
