"""One partition beside a live controller: what we decided, what it did, and which agrees.

Inputs that ZooKeeper shows (brokers, topics, marks, configurations) are in the log before the
states that follow from them are looked at. Requests that only the live controller hears
(AlterPartition, controlled shutdown, elections) show in their results alone: they are guessed from
the result and asked of our machine too, whose answer is then compared like any other decision.

The rules rest on what leader epochs mean: a controller's change raises the epoch, a leader's change
of its own ISR does not. So a state of our epoch and leader with another ISR was altered by the
leader, one of a lower epoch came before our decision, and one of a higher epoch is a decision that
we did not make.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from state.topic_partition import TopicPartition
from streaming.shadow.guesses import Ask, AskKind, Standing, Surroundings, guesses
from streaming.shadow.leadership import Leadership
from streaming.shadow.verdicts import DIVERGENCES, Difference, Status, Verdict


@dataclass(frozen=True, slots=True)
class AwaitedChange:
    """A change of ours that waits to be seen; offset: of the event it follows."""

    offset: int
    kind: str
    state: Leadership


@dataclass(frozen=True, slots=True)
class Ruling:
    """What a look at a book leads to; settled: nothing is open any more."""

    verdicts: tuple[Verdict, ...] = ()
    ask: Ask | None = None
    settled: bool = False


WAIT = Ruling()


@dataclass(slots=True)
class PartitionBook:
    """held: the live state that ours rests on. mine: as our machine has it. live: as ZooKeeper has
    it. None: there is none. changed_ms: when mine or live changed last.
    """

    subject: TopicPartition
    held: Leadership | None = None
    mine: Leadership | None = None
    live: Leadership | None = None
    open: list[AwaitedChange] = field(default_factory=list)
    changed_ms: int = 0
    refusal: str = ""
    _tried: set[str] = field(default_factory=set)
    _said: tuple[Leadership | None, Leadership | None] | None = None
    """(mine, live) of the difference that was said last."""

    def decided(self, decided: AwaitedChange | None, state: Leadership, now_ms: int) -> None:
        """Take a row of our machine; decided: None when it only says what it knows."""
        if state != self.mine:
            self.mine, self.changed_ms = state, now_ms
        if decided is not None:
            self.open.append(decided)

    def saw(self, live: Leadership | None, now_ms: int) -> None:
        """Take a state of ZooKeeper."""
        if live != self.live:
            self.live, self.changed_ms = live, now_ms
            self._tried.clear()
            self.refusal = ""

    def begin(self, held: Leadership | None) -> None:
        """Start afresh from a load."""
        self.held, self.mine = held, held
        self.open.clear()
        self._tried.clear()

    def replace(self, around: Surroundings, now_ms: int) -> tuple[Verdict, ...]:
        """Go on from the live state, as the topic does; return what is said of what waited."""
        said: tuple[Verdict, ...] = ()
        if self.open and self.mine != self.live:
            if now_ms - self.changed_ms >= around.window_ms:
                said = self._diverge(Status.MISSED, over=True).verdicts
            else:
                said = self.passed_over("the topic differed, and was read again")
        self.begin(self.live)
        return said

    def rule(self, around: Surroundings, now_ms: int) -> Ruling:
        """Compare, and say what follows."""
        mine, live = self.mine, self.live
        if mine == live:
            return self._agree(adopt=False)
        if around.deleting(self.subject[0]):
            return WAIT  # the deletion's end is compared, not the way there
        over = now_ms - self.changed_ms >= around.window_ms
        if mine is None or live is None:
            return self._diverge(Status.MISSED if live is None else Status.EXTRA, over)
        if (
            mine.agrees_with(live)
            and live.leader_epoch >= mine.leader_epoch
            and live.version >= mine.version
        ):
            return self._same_outcome(around, mine, live, over)
        if self.held is not None and live.version <= self.held.version:
            return self._unmoved(over)
        return self._moved(around, mine, live, now_ms)

    def _unmoved(self, over: bool) -> Ruling:
        """The live controller has done nothing since the state we decided on."""
        if self.open:
            return self._diverge(Status.MISSED, over)
        return self._diverge(Status.EXTRA, True) if self.refusal else self._adopt()

    def _moved(
        self, around: Surroundings, mine: Leadership, live: Leadership, now_ms: int
    ) -> Ruling:
        if live.leader_epoch < mine.leader_epoch:
            return self._behind(around, live, now_ms)
        waited_ms = now_ms - self.changed_ms
        in_term = (live.leader_epoch, live.leader) == (mine.leader_epoch, mine.leader)
        if in_term or not self.open or waited_ms >= around.grace_ms:
            standing = Standing(self.subject, self.held, mine, live, bool(self.open))
            for name, ask in guesses(around, standing):
                if name not in self._tried:
                    self._tried.add(name)
                    return self._guessed(ask)
        status = Status.DIFFERED if self.open else Status.EXTRA
        return self._diverge(status, waited_ms >= around.window_ms)

    def _behind(self, around: Surroundings, live: Leadership, now_ms: int) -> Ruling:
        """The live state is of an earlier term than ours: of one we decided too, or of the leader
        before our decision.
        """
        for place, decided in enumerate(self.open):
            same_term = decided.state.leader_epoch == live.leader_epoch
            if same_term and decided.state.agrees_with(live):
                self.held = live
                verdicts = self._agreements(self.open[: place + 1])
                del self.open[: place + 1]
                return Ruling(verdicts)
        if self.held is not None and live.leader_epoch == self.held.leader_epoch:
            return self._overtaken(live)
        if self._unseen_isr_changes(live) and self.mine is not None and self.mine.agrees_with(live):
            return self._agree(adopt=True)  # with another ISR before it, it took fewer terms
        return self._diverge(Status.DIFFERED, now_ms - self.changed_ms >= around.window_ms)

    def _unseen_isr_changes(self, live: Leadership) -> bool:
        """Return whether leaders changed the ISR since the state we decided on: then there are more
        versions than terms.
        """
        held = self.held
        return held is not None and (
            live.version - held.version > live.leader_epoch - held.leader_epoch
        )

    def _guessed(self, ask: Ask) -> Ruling:
        if ask.state == self.live:
            self.held = self.live  # what our machine makes of it rests on this state
        return Ruling(ask=ask)

    def _same_outcome(
        self, around: Surroundings, mine: Leadership, live: Leadership, over: bool
    ) -> Ruling:
        same_term = live.leader_epoch == mine.leader_epoch
        if self.open or same_term or self._unseen_isr_changes(live):
            return self._agree(adopt=True)
        if around.reassigning(self.subject):
            verdict = self._verdict(Status.EXPLAINED, "leader_epoch_bumped")
            return Ruling((_explained(verdict, Difference.SEVERAL_CHANGES),), self._adoption())
        replicas = around.motion(self.subject).replicas
        if replicas and "replicas it has" not in self._tried:
            # Who is asked to move a partition to where it is raises the epoch and nothing else.
            self._tried.add("replicas it has")
            return Ruling(ask=Ask(AskKind.REASSIGN, self.subject, basis=mine, replicas=replicas))
        return self._diverge(Status.EXTRA, over)

    def _agree(self, *, adopt: bool) -> Ruling:
        assert self.mine is not None or not self.open
        verdicts = self._agreements(self.open)
        if verdicts and self._more_steps():
            verdicts = (*verdicts[:-1], _explained(verdicts[-1], Difference.SEVERAL_CHANGES))
        ask = self._adoption() if adopt else None
        self.open.clear()
        self.held = self.live
        return Ruling(verdicts, ask, settled=ask is None)

    def _more_steps(self) -> bool:
        """Return whether the live controller took more terms than we."""
        mine, live = self.mine, self.live
        return mine is not None and live is not None and live.leader_epoch > mine.leader_epoch

    def _agreements(self, decided: list[AwaitedChange]) -> tuple[Verdict, ...]:
        """Return that the last of some decisions was seen, and those before it were not."""
        return tuple(
            self._verdict(
                Status.AGREED if one is decided[-1] else Status.PASSED_OVER, one.kind, one
            )
            for one in decided
        )

    def _adopt(self) -> Ruling:
        ask = self._adoption()
        self.held = self.live
        if self.live is None:
            self.mine = None  # our machine says nothing about a state that it drops
        return Ruling(ask=ask)

    def _adoption(self) -> Ask:
        return Ask(AskKind.ADOPT, self.subject, state=self.live, basis=self.mine)

    def _overtaken(self, live: Leadership) -> Ruling:
        """Our decision rested on a state that was changed before it: decide again."""
        self.held = live
        verdicts = self.passed_over("decided again on what came before it")
        self.open.clear()
        return Ruling(verdicts, Ask(AskKind.OVERTAKEN, self.subject, state=live, basis=self.mine))

    def passed_over(self, why: str) -> tuple[Verdict, ...]:
        """Return that it cannot be seen any more whether what waits was done."""
        return tuple(self._verdict(Status.PASSED_OVER, one.kind, one, why) for one in self.open)

    def _diverge(self, status: Status, over: bool) -> Ruling:
        """Wait for the window's end, then say so and go on from the live state."""
        if not over:
            return WAIT
        if self._said_already():
            return self._decided_once_more()
        first = self.open[0] if self.open else None
        kind = self.open[-1].kind if self.open else "nothing_decided"
        verdict = self._verdict(status, kind, first, self.refusal)
        self.open.clear()
        self._said = (self.mine, self.live)
        return Ruling((verdict,), self._adopt().ask)

    def _decided_once_more(self) -> Ruling:
        """Our machine decided the same again when it was told how it is: the live controller may
        come to it late. Where only epochs differ there is nothing to come.
        """
        if self.mine is not None and self.live is not None and self.mine.agrees_with(self.live):
            self.open.clear()
            return self._adopt()
        return Ruling(settled=True)

    def _said_already(self) -> bool:
        if self._said is None or self._said[1] != self.live:
            return False
        before, mine = self._said[0], self.mine
        return before == mine or (
            before is not None and mine is not None and mine.agrees_with(before)
        )

    def _decided_value(
        self, status: Status, decided: AwaitedChange | None
    ) -> dict[str, Any] | None:
        if decided is None:
            return None
        value = self.mine if status in DIVERGENCES else None
        return (value or decided.state).as_json()

    def _verdict(
        self, status: Status, kind: str, decided: AwaitedChange | None = None, why: str = ""
    ) -> Verdict:
        return Verdict(
            status,
            kind,
            *self.subject,
            None if decided is None else decided.offset,
            self._decided_value(status, decided),
            None if self.live is None else self.live.as_json(),
            why,
        )


def _explained(verdict: Verdict, difference: Difference) -> Verdict:
    return Verdict(
        Status.EXPLAINED,
        verdict.kind,
        verdict.topic,
        verdict.partition,
        verdict.offset,
        verdict.decided,
        verdict.live,
        difference,
    )
