"""Which operations a seed stands for: nothing of what a run meets changes the list."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

BROKERS = (1, 2, 3)
MOST_DOWN = 2
MOST_TOPICS = 6
MOST_PARTITIONS = 6
MOST_MAIN_PARTITIONS = 16
LONGEST_PAUSE_S = 2.0
RECOVERIES = 0.7
JVM_HANGS = 0.5
# Each with its share of the operations; one that is not possible where it is drawn is drawn again.
SHARES = {
    "create topic": 10,
    "delete topic": 6,
    "mark topic for deletion": 3,
    "add partitions": 5,
    "reassign": 10,
    "reassign by znode": 4,
    "cancel reassignment": 5,
    "elect preferred": 5,
    "elect preferred by znode": 3,
    "elect unclean": 4,
    "set topic config": 4,
    "set cluster config": 3,
    "kill broker": 7,
    "terminate broker": 5,
    "pause broker": 5,
    "return broker": 16,
    "kill job": 4,
    "kill front": 3,
    "kill job and front": 2,
    "abandon control": 2,
    "take control back": 6,
}

SHARES_OF_ZOOKEEPER = {
    "kill ZooKeeper": 4,
    "pause ZooKeeper": 4,
    "pause decisions": 3,
    "resume decisions": 6,
}
SHARES_OF_LOG_CLUSTER = {"kill log cluster": 4, "pause log cluster": 4}
SHARES_OF_HANGING = {"pause job": 6, "pause front": 6}
SHARES_OF_DEPRIORITIZING = {"deprioritize brokers": 6}
LONGEST_OUTAGE_S = 9.0
LONGEST_HANG_S = 25.0
"""Past the lease of the controller role, and any session."""


@dataclass(frozen=True, slots=True)
class Operation:
    """One thing to do, and how long to wait after it."""

    number: int
    name: str
    of: dict[str, Any]
    pause_s: float

    def __str__(self) -> str:
        details = " ".join(f"{name}={value}" for name, value in self.of.items())
        return f"{self.number:3} {self.name} {details} (then {self.pause_s:.1f} s)"


@dataclass(slots=True)
class Plan:
    """Draws operations. main: the topic that is produced to, with its partition count; it is moved
    and grown, never deleted, and never has fewer than two replicas or an unclean election.
    moved: partition counts of further topics that are, but not grown. shares: of the operations.
    versions: of brokers that were stopped one is drawn when they return.

    topics: partition counts of the others, as they are if everything is carried out. down: brokers
    that were stopped, and how.
    """

    seed: int
    main: tuple[str, int]
    moved: dict[str, int] = field(default_factory=dict)
    shares: Mapping[str, int] = field(default_factory=SHARES.copy)
    versions: Sequence[str] = ()
    topics: dict[str, int] = field(default_factory=dict)
    down: dict[int, str] = field(default_factory=dict)
    abandoned: bool = False
    paused: bool = False
    _random: random.Random = field(init=False)

    def __post_init__(self) -> None:
        """Seed the only source of chance."""
        self._random = random.Random(self.seed)

    def draw(self, count: int) -> Iterator[Operation]:
        """Draw operations."""
        for number in range(count):
            name, of = self._draw()
            yield Operation(number, name, of, round(self._random.uniform(0, LONGEST_PAUSE_S), 1))

    def _draw(self) -> tuple[str, dict[str, Any]]:
        while True:
            (name,) = self._random.choices(list(self.shares), list(self.shares.values()))
            of = getattr(self, "_" + name.replace(" ", "_").lower())()
            if of is not None:
                return name, of

    def _create_topic(self) -> dict[str, Any] | None:
        if len(self.topics) == MOST_TOPICS:
            return None
        # A name may come again: its deletion may still be under way then.
        free = [f"side-{n}" for n in range(MOST_TOPICS + 2) if f"side-{n}" not in self.topics]
        topic = self._random.choice(free)
        self.topics[topic] = self._random.randint(1, 3)
        up = self._up()
        factor = self._random.randint(1, len(up))
        partitions = range(self.topics[topic])
        return {
            "topic": topic,
            "assignment": {p: self._random.sample(up, factor) for p in partitions},
        }

    def _delete_topic(self) -> dict[str, Any] | None:
        if not self.topics:
            return None
        topic = self._random.choice(sorted(self.topics))
        del self.topics[topic]
        return {"topic": topic}

    _mark_topic_for_deletion = _delete_topic

    def _add_partitions(self) -> dict[str, Any] | None:
        counts = {**self.topics, self.main[0]: self.main[1]}
        topic = self._random.choice(sorted(counts))
        count = counts[topic] + self._random.randint(1, 2)
        is_main = topic == self.main[0]
        if count > (MOST_MAIN_PARTITIONS if is_main else MOST_PARTITIONS):
            return None
        if is_main:
            self.main = (topic, count)
        else:
            self.topics[topic] = count
        return {"topic": topic, "count": count}

    def _reassign(self) -> dict[str, Any]:
        moves = {}
        for _ in range(self._random.randint(1, 3)):
            topic, partition = self._partition()
            moves[topic, partition] = self._target(1 if topic in self.topics else 2)
        return {"moves": moves}

    _reassign_by_znode = _reassign

    def _cancel_reassignment(self) -> dict[str, Any]:
        return {"partitions": sorted({self._partition() for _ in range(3)})}

    def _elect_preferred(self) -> dict[str, Any]:
        return {"partitions": sorted({self._partition() for _ in range(4)})}

    _elect_preferred_by_znode = _elect_preferred

    def _elect_unclean(self) -> dict[str, Any] | None:
        if not self.topics:
            return None
        topic = self._random.choice(sorted(self.topics))
        return {"partitions": [(topic, p) for p in range(self.topics[topic])]}

    def _set_topic_config(self) -> dict[str, Any] | None:
        if not self.topics:
            return None
        topic = self._random.choice(sorted(self.topics))
        return {"topic": topic, "unclean": self._random.choice([None, False, True])}

    def _set_cluster_config(self) -> dict[str, Any]:
        return {"unclean": self._random.choice([None, False, True])}

    def _deprioritize_brokers(self) -> dict[str, Any]:
        return {"brokers": sorted(self._random.sample(BROKERS, self._random.choice([0, 1, 1, 2])))}

    def _kill_broker(self) -> dict[str, Any] | None:
        return self._take_down("killed")

    def _terminate_broker(self) -> dict[str, Any] | None:
        return self._take_down("terminated")

    def _pause_broker(self) -> dict[str, Any] | None:
        return self._take_down("paused")

    def _take_down(self, how: str) -> dict[str, Any] | None:
        if len(self.down) == MOST_DOWN:
            return None
        broker = self._random.choice(self._up())
        self.down[broker] = how
        return {"broker": broker}

    def _return_broker(self) -> dict[str, Any] | None:
        if not self.down:
            return None
        broker = self._random.choice(sorted(self.down))
        of = {"broker": broker, "was": self.down.pop(broker)}
        if self.versions and of["was"] != "paused":
            of["version"] = self._random.choice(self.versions)
        return of

    def _kill_job(self) -> dict[str, Any] | None:
        return None if self.abandoned else self._recovery()

    _kill_front = _kill_job
    _kill_job_and_front = _kill_job

    def _abandon_control(self) -> dict[str, Any] | None:
        if self.abandoned:
            return None
        self.abandoned = True
        return {}

    def _take_control_back(self) -> dict[str, Any] | None:
        if not self.abandoned:
            return None
        self.abandoned = False
        return self._recovery()

    def _kill_zookeeper(self) -> dict[str, Any]:
        return {"away_s": round(self._random.uniform(0, LONGEST_OUTAGE_S), 1)}

    _pause_zookeeper = _kill_zookeeper

    def _kill_log_cluster(self) -> dict[str, Any]:
        return {"away_s": round(self._random.uniform(0, LONGEST_HANG_S), 1)}

    _pause_log_cluster = _kill_log_cluster

    def _pause_front(self) -> dict[str, Any] | None:
        return None if self.abandoned else self._kill_log_cluster()

    def _pause_job(self) -> dict[str, Any] | None:
        drawn = self._pause_front()
        return drawn and {**drawn, "jvm": self._random.random() < JVM_HANGS}

    def _pause_decisions(self) -> dict[str, Any] | None:
        if self.abandoned or self.paused:
            return None
        self.paused = True
        return {}

    def _resume_decisions(self) -> dict[str, Any] | None:
        if self.abandoned or not self.paused:
            return None
        self.paused = False
        return {}

    def _recovery(self) -> dict[str, Any]:
        """Draw whether the next operation waits until we decide again."""
        return {"recover": self._random.random() < RECOVERIES}

    def _partition(self) -> tuple[str, int]:
        counts = {**self.topics, **self.moved, self.main[0]: self.main[1]}
        topic = self._random.choice(sorted(counts))
        return topic, self._random.randrange(counts[topic])

    def _up(self) -> list[int]:
        return [id_ for id_ in BROKERS if id_ not in self.down]

    def _target(self, least: int) -> list[int]:
        """Draw replicas: as often as not among brokers that run, if there are enough."""
        up = self._up()
        ids = up if len(up) >= least and self._random.random() < 0.5 else list(BROKERS)
        return self._random.sample(ids, self._random.randint(least, len(ids)))
