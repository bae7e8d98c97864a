"""What is known of a cluster, by a KRaft quorum or in ZooKeeper, and where the two differ.

Names are those that ZooKeeper has, so that both say the same of the same.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple


class Matter(Enum):
    """What is compared."""

    TOPIC = "topic"
    PARTITION = "partition"
    CONFIG = "config"
    ACL = "acl"
    DELEGATION_TOKEN = "delegation_token"
    PRODUCER_IDS = "producer_ids"


class Subject(NamedTuple):
    """What a difference is about: a topic, t-0, users/alice."""

    matter: Matter
    name: str


def partition_subject(topic: str, number: int) -> Subject:
    """Return what a partition is called."""
    return Subject(Matter.PARTITION, f"{topic}-{number}")


@dataclass(frozen=True, slots=True)
class Secret:
    """What is compared and not shown."""

    value: object = field(repr=False)

    def __str__(self) -> str:
        return "(secret)"


Fact = str | int | float | tuple[int, ...] | tuple[str, ...] | Secret
Shown = str | float | list[object] | None
HIDDEN = Secret(None)
"""A password of a configuration: each broker encodes it in its own way, so that only whether there
is one can be compared.
"""


def shown(fact: Fact | None) -> Shown:
    """Return a fact as it is printed, also as JSON."""
    match fact:
        case Secret():
            return str(fact)
        case tuple():
            return list(fact)
        case _:
            return fact


class Partition(NamedTuple):
    """A partition: brokers of the ISR, and those that come and go, in ascending order."""

    leader: int
    leader_epoch: int
    isr: tuple[int, ...]
    replicas: tuple[int, ...]
    adding: tuple[int, ...]
    removing: tuple[int, ...]


@dataclass(slots=True)
class Topic:
    """A topic; a partition is None that never had a leader."""

    topic_id: str | None
    partitions: dict[int, Partition | None] = field(default_factory=dict)


@dataclass(slots=True)
class Known:
    """What is known: topics, and facts of all else, by what they say."""

    topics: dict[str, Topic] = field(default_factory=dict)
    facts: defaultdict[Subject, dict[str, Fact]] = field(default_factory=lambda: defaultdict(dict))

    @property
    def partitions(self) -> int:
        """How many there are."""
        return sum(len(topic.partitions) for topic in self.topics.values())

    @property
    def others(self) -> int:
        """Of how much else something is known."""
        return sum(map(bool, self.facts.values()))


@dataclass(frozen=True, slots=True)
class Difference:
    """What ZooKeeper has otherwise than the quorum; None: it is not there."""

    subject: Subject
    what: str
    zookeeper: Fact | None
    quorum: Fact | None


@dataclass(frozen=True, slots=True)
class LeftOut:
    """What is not compared: all of some matters, and some subjects. A topic has its partitions."""

    matters: set[Matter] = field(default_factory=set)
    subjects: set[Subject] = field(default_factory=set)

    def __contains__(self, subject: Subject) -> bool:
        return subject.matter in self.matters or subject in self.subjects


def differences(
    zookeeper: Known, quorum: Known, left_out: LeftOut | None = None
) -> Iterator[Difference]:
    """Yield where the two differ, but for what is left out."""
    without = left_out or LeftOut()
    for name in sorted(zookeeper.topics.keys() | quorum.topics.keys()):
        if Subject(Matter.TOPIC, name) not in without:
            found = _of_topic(name, zookeeper.topics.get(name), quorum.topics.get(name))
            yield from (one for one in found if one.subject not in without)
    subjects = zookeeper.facts.keys() | quorum.facts.keys()
    for subject in sorted(subjects, key=lambda one: (one.matter.value, one.name)):
        ours, theirs = zookeeper.facts.get(subject, {}), quorum.facts.get(subject, {})
        if ours != theirs and subject not in without:
            yield from _unequal(ours.keys() | theirs.keys(), subject, ours.get, theirs.get)


def _of_topic(name: str, ours: Topic | None, theirs: Topic | None) -> Iterator[Difference]:
    about = Subject(Matter.TOPIC, name)
    if ours is None or theirs is None:
        yield Difference(about, "partitions", _count(ours), _count(theirs))
        return
    if ours.topic_id != theirs.topic_id:
        yield Difference(about, "topic_id", ours.topic_id, theirs.topic_id)
    for number in sorted(ours.partitions.keys() | theirs.partitions.keys()):
        ones, others = ours.partitions.get(number), theirs.partitions.get(number)
        if ones != others:
            yield from _of_partition(partition_subject(name, number), ones, others)


def _count(topic: Topic | None) -> int | None:
    return None if topic is None else len(topic.partitions)


def _of_partition(
    about: Subject, ours: Partition | None, theirs: Partition | None
) -> Iterator[Difference]:
    if ours is None or theirs is None:
        yield Difference(about, "leader", ours and ours.leader, theirs and theirs.leader)
        return
    yield from _unequal(
        Partition._fields,
        about,
        lambda what: getattr(ours, what),
        lambda what: getattr(theirs, what),
    )


def _unequal(
    names: Iterable[str],
    about: Subject,
    ours: Callable[[str], Fact | None],
    theirs: Callable[[str], Fact | None],
) -> Iterator[Difference]:
    for what in sorted(names):
        if ours(what) != theirs(what):
            yield Difference(about, what, ours(what), theirs(what))
