"""One topic beside a live controller: its assignment, and its deletion.

Reassignments that clients ask for reach the live controller alone; they show as replicas that come
and go in the topic's znode, and are asked of our machine too. A deletion ends for us when brokers
answer, which only the live controller hears: that the topic is gone says that they did.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from state.bodies import RewriteAssignment, by_number
from state.decisions import DecisionKind
from state.partitions.reassignment import Motion
from streaming.shadow.leadership import Assignment, assignment_of
from streaming.shadow.verdicts import Difference, Status, Verdict

Targets = Mapping[int, tuple[int, ...] | None]
"""Replicas to end with by partition; None: a reassignment is taken back."""


@dataclass(frozen=True, slots=True)
class TopicRuling:
    """What a look at a book leads to. reassign: to be asked of our machine. mark, answers: it
    is to hear that the topic was marked, and that brokers deleted these (broker, partition)s.
    replace: it is to take the topic as it is. forget: the book is closed, nobody has the topic any
    more. settled: nothing is open any more.
    """

    verdicts: tuple[Verdict, ...] = ()
    reassign: Targets = field(default_factory=dict)
    mark: bool = False
    answers: frozenset[tuple[int, int]] = frozenset()
    replace: bool = False
    forget: bool = False
    settled: bool = False


WAIT = TopicRuling()


@dataclass(slots=True)
class TopicBook:
    """mine: the assignment as our machine has it. live: as ZooKeeper has it; None: it is gone.
    held: the live one that both agreed on last.

    open: (offset, kind) of our rewrites that wait to be seen. stopped: the (broker, partition)s
    that our machine had deleted and that were not answered since. ended: offset of the event that
    our machine deleted the topic after, before the live controller did; None: it has it.
    changed_ms: when mine or live changed last.
    """

    name: str
    topic_id: str | None
    mine: Assignment
    live: Assignment | None
    held: Assignment
    marked: bool = False
    stopped: set[tuple[int, int]] = field(default_factory=set)
    open: list[tuple[int, str]] = field(default_factory=list)
    ended: int | None = None
    changed_ms: int = 0
    refusal: str = ""
    _said: tuple[Assignment, Assignment | None] | None = None
    """(mine, live) of the difference that was said last."""
    _asked: Targets | None = None
    _mark_asked: bool = False

    def saw(self, live: Assignment | None, now_ms: int) -> None:
        """Take the topic's znode."""
        if live != self.live:
            self.live, self.changed_ms = live, now_ms
            self._asked, self._mark_asked, self.refusal = None, False, ""
            self._said = None

    def decided(self, offset: int, kind: str, body: RewriteAssignment, now_ms: int) -> None:
        """Take a rewrite of ours."""
        lists = (body["assignment"], body["adding"], body["removing"])
        self.mine = assignment_of(*map(by_number, lists))
        self.open.append((offset, kind))
        self.changed_ms = now_ms

    def passed_over(self, why: str) -> tuple[Verdict, ...]:
        """Return that it cannot be seen any more whether what waits was done."""
        status = Status.PASSED_OVER
        waiting = [self._verdict(status, kind, offset, why) for offset, kind in self.open]
        if self.ended is not None:
            waiting.append(self._deletion(status, "there", why))
        return tuple(waiting)

    def deleted(self, offset: int, now_ms: int) -> TopicRuling:
        """Take that our machine deleted the topic, and rule about that."""
        self.ended, self.changed_ms = offset, now_ms
        return self._deleted_by_us(over=False)

    def replace(self, live: Assignment) -> None:
        """Go on from the topic as ZooKeeper has it."""
        self.mine = self.held = live

    def rule(self, window_ms: int, now_ms: int) -> TopicRuling:
        """Compare, and say what follows."""
        over = now_ms - self.changed_ms >= window_ms
        if self.ended is not None:
            return self._deleted_by_us(over=over)
        if self.live is None:
            return self._gone(over)
        if self.live == self.mine:
            verdicts = tuple(
                self._verdict(Status.AGREED, kind, offset) for offset, kind in self.open
            )
            self.open.clear()
            self.held = self.live
            return TopicRuling(verdicts, settled=True)
        targets = {} if self.live == self.held else self._targets(self.live)
        if targets and targets != self._asked:
            self._asked = targets
            return TopicRuling(reassign=targets)
        if (self.mine, self.live) == self._said:
            # Decided once more after our machine was told how it is: it may come late.
            return TopicRuling(settled=True)
        return self._differs() if over else WAIT

    def _deleted_by_us(self, *, over: bool) -> TopicRuling:
        if self.live is None:
            return TopicRuling((self.gone_for_them(),), forget=True)
        if not over:
            return WAIT
        missed = self._deletion(Status.MISSED, "there")
        self.ended, self.marked = None, False
        return TopicRuling((missed,), replace=True)

    def _gone(self, over: bool) -> TopicRuling:
        if not self.marked and not self._mark_asked:
            self.marked = self._mark_asked = True
            return TopicRuling(mark=True)
        if self.stopped:
            # Our machine may have taken a replica for unreachable, and asks again when others are
            # gone.
            answers = frozenset(self.stopped)
            self.stopped.clear()
            return TopicRuling(answers=answers)
        if not over:
            return WAIT
        return TopicRuling((self.gone_for_them(),), replace=True)

    def gone_for_them(self) -> Verdict:
        """Return that the topic is gone, and whether our machine still waits for replicas of it."""
        if self.ended is not None:
            return self._deletion(Status.AGREED, "gone")
        if any(one.in_progress for one in self.mine.values()):
            why = Difference.DELETION_DURING_REASSIGNMENT
            return self._deletion(Status.EXPLAINED, "gone", why)
        return self._deletion(Status.EXTRA, "gone", self._why_there())

    def _deletion(self, status: Status, live: str, why: str = "") -> Verdict:
        decided = None if self.ended is None else "gone"
        kind = DecisionKind.DELETE_TOPIC
        return Verdict(status, kind, self.name, None, self.ended, decided, live, why)

    def _why_there(self) -> str:
        return "we wait for replicas" if self.marked else "we may not delete topics"

    def _targets(self, live: Assignment) -> dict[int, tuple[int, ...] | None]:
        """Return what must have been asked for where the live assignment is not ours; nothing
        where ours gets there by itself.
        """
        found: dict[int, tuple[int, ...] | None] = {}
        for number, there in live.items():
            here = self.mine.get(number)
            if here is None or here == there:
                continue
            if here.in_progress and not there.in_progress and there.replicas == here.target:
                continue  # it ends when all replicas are in sync
            if here.in_progress and not there.in_progress and there.replicas == here.origin:
                found[number] = None
            elif here.target != there.target:
                found[number] = there.target
        return found

    def _differs(self) -> TopicRuling:
        offset, kind = self.open[0] if self.open else (None, "nothing_decided")
        status = Status.DIFFERED if self.open else Status.EXTRA
        if self.live == self.held:
            status = Status.MISSED
        verdict = self._verdict(status, kind, offset)
        self.open.clear()
        self._said = (self.mine, self.live)
        return TopicRuling((verdict,), replace=True)

    def _verdict(self, status: Status, kind: str, offset: int | None, why: str = "") -> Verdict:
        return Verdict(
            status,
            kind,
            self.name,
            None,
            offset,
            _as_json(self.mine),
            None if self.live is None else _as_json(self.live),
            why or self.refusal,
        )


def _as_json(assignment: Assignment) -> dict[str, Any]:
    return {str(number): _motion_as_json(one) for number, one in sorted(assignment.items())}


def _motion_as_json(motion: Motion) -> dict[str, list[int]]:
    return {
        "replicas": list(motion.replicas),
        "adding": sorted(motion.adding),
        "removing": sorted(motion.removing),
    }
