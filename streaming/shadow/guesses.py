"""What may have been asked of a live controller, guessed from what it did.

A guess needs room: each change takes a version of the znode, and each election a term.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from state.partitions.reassignment import Motion
from state.topic_partition import TopicPartition
from streaming.shadow.leadership import Leadership


class AskKind(StrEnum):
    """What our machine is asked or told because of something that the live controller did."""

    ALTER_ISR = "alter_isr"
    WRITE_ISR = "write_isr"
    ELECT_PREFERRED = "elect_preferred"
    ELECT_UNCLEAN = "elect_unclean"
    SHUT_DOWN = "shut_down"
    FAIL_LOG_DIR = "fail_log_dir"
    REASSIGN = "reassign"
    OVERTAKEN = "overtaken"
    ADOPT = "adopt"


@dataclass(frozen=True, slots=True)
class Ask:
    """One guess about one partition; state: the one asked for, or (WRITE_ISR, OVERTAKEN, ADOPT) the
    one that our machine is to take. basis: our state, which it is asked on. replicas: (REASSIGN)
    where to.
    """

    kind: AskKind
    subject: TopicPartition
    broker: int = -1
    state: Leadership | None = None
    basis: Leadership | None = None
    replicas: tuple[int, ...] = ()


class Surroundings(Protocol):
    """What a ruling needs to know beside the partition."""

    window_ms: int
    """How long a decision may wait for its match."""
    grace_ms: int
    """How long a state that contradicts our decision may be a step on the way to it."""
    leaders_ask: bool
    """Whether leaders have their ISRs changed by the controller; else they write them."""

    @property
    def brokers(self) -> Mapping[int, int]:
        """Epochs of the registered brokers by id."""

    @property
    def failed_log_dirs(self) -> Set[int]:
        """Brokers that announced a failed log directory."""

    def keeps_nothing(self, broker: int) -> bool:
        """Return whether a broker has left all ISRs that it can leave."""

    def deleting(self, topic: str) -> bool:
        """Return whether a topic is being deleted."""

    def reassigning(self, subject: TopicPartition) -> bool:
        """Return whether a partition is, or was a moment ago, being reassigned."""

    def motion(self, subject: TopicPartition) -> Motion:
        """Return how a partition is placed by our machine; nowhere when it is not known."""


@dataclass(frozen=True, slots=True)
class Standing:
    """What is to be explained. held: the live state that ours rests on. mine, live: ours, and
    ZooKeeper's. waiting: a decision of ours waits for its match.
    """

    subject: TopicPartition
    held: Leadership | None
    mine: Leadership
    live: Leadership
    waiting: bool

    @property
    def gained(self) -> list[int]:
        """Who is in the live ISR and not in ours."""
        return [id_ for id_ in self.live.isr if id_ not in self.mine.isr]

    @property
    def lost(self) -> list[int]:
        """Who is in our ISR and not in the live one."""
        return [id_ for id_ in self.mine.isr if id_ not in self.live.isr]

    def ask(self, kind: AskKind, broker: int = -1, state: Leadership | None = None) -> Ask:
        """Return a guess about it."""
        return Ask(kind, self.subject, broker, state, self.mine)


def guesses(around: Surroundings, it: Standing) -> Iterator[tuple[str, Ask]]:
    """Yield what may have led from our state to the live one, likeliest first, each with a name."""
    if (it.live.leader_epoch, it.live.leader) == (it.mine.leader_epoch, it.mine.leader):
        yield from _isr_changes(around, it)
        return
    held, mine, live = it.held, it.mine, it.live
    if it.waiting and held is not None and live.version > held.version + 1:
        yield "unseen", it.ask(AskKind.OVERTAKEN, state=_unseen(held, live))
    if mine.leader in around.brokers:
        yield from _isr_changes_before(around, it)
    if live.leader_epoch > mine.leader_epoch:
        yield from _elections(around, it)


def _isr_changes(around: Surroundings, it: Standing) -> Iterator[tuple[str, Ask]]:
    if it.waiting and it.live.version <= it.mine.version:
        return
    replicas = around.motion(it.subject).replicas
    if any(id_ in replicas and id_ not in around.brokers for id_ in it.gained):
        # They came in before they died, which we have heard of already; or they fetch on after
        # their sessions, and a leader that asks nobody takes them in: if that was before, they
        # leave with the next term.
        kind = AskKind.OVERTAKEN if around.leaders_ask else AskKind.ADOPT
        yield "isr before", it.ask(kind, state=it.live)
    elif it.mine.leader in around.brokers:
        yield "isr", _by_leader(around, it, it.live)


def _isr_changes_before(around: Surroundings, it: Standing) -> Iterator[tuple[str, Ask]]:
    """Yield what the leader may have changed before it was followed by another, or a term."""
    mine, live = it.mine, it.live
    moving, versions = around.reassigning(it.subject), live.version - mine.version
    if it.gained and versions > (0 if moving else 1):
        yield "grown", _by_leader(around, it, _with(it, (*mine.isr, *it.gained)))
    kept = tuple(id_ for id_ in mine.isr if id_ in live.isr or id_ == mine.leader)
    terms = live.leader_epoch - mine.leader_epoch
    if kept != mine.isr and not moving and versions > max(terms, 1):
        yield "shrunk", _by_leader(around, it, _with(it, kept))


def _by_leader(around: Surroundings, it: Standing, state: Leadership) -> Ask:
    """Return that our leader changed the ISR."""
    kind = AskKind.ALTER_ISR if around.leaders_ask else AskKind.WRITE_ISR
    return it.ask(kind, it.mine.leader, state)


def _with(it: Standing, isr: tuple[int, ...]) -> Leadership:
    """Return what our state becomes when its leader changes the ISR."""
    mine = it.mine
    return Leadership(mine.leader, mine.leader_epoch, isr, it.live.recovery, mine.version + 1)


def _elections(around: Surroundings, it: Standing) -> Iterator[tuple[str, Ask]]:
    mine, live, motion = it.mine, it.live, around.motion(it.subject)
    if mine.leader < 0 <= live.leader and live.leader not in mine.isr:
        yield "unclean", it.ask(AskKind.ELECT_UNCLEAN)
    if not around.leaders_ask and any(id_ not in around.brokers for id_ in it.lost):
        yield "isr before, left", it.ask(AskKind.OVERTAKEN, state=mine)
    if live.leader != mine.leader and not it.lost and live.leader in motion.replicas[:1]:
        yield "preferred", it.ask(AskKind.ELECT_PREFERRED)
    for broker in (id_ for id_ in it.lost if id_ not in motion.removing):
        if broker in around.failed_log_dirs:
            yield f"log dir {broker}", it.ask(AskKind.FAIL_LOG_DIR, broker)
        elif broker in around.brokers and around.keeps_nothing(broker):
            yield f"shutdown {broker}", it.ask(AskKind.SHUT_DOWN, broker)


def _unseen(held: Leadership, live: Leadership) -> Leadership:
    """Return the ISR change that went unseen between the state we decided on and the live one: the
    leader's, who may have taken members in or left some out.
    """
    gained = tuple(id_ for id_ in live.isr if id_ not in held.isr)
    kept = tuple(id_ for id_ in held.isr if id_ in live.isr or id_ == held.leader)
    isr = (*held.isr, *gained) if gained else kept
    return Leadership(held.leader, held.leader_epoch, isr, held.recovery, live.version - 1)
