"""How a step is told: do something, look until what must be seen is seen, and report.

A step is data; the table of them is in `streaming.demo.steps`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from kafka.errors import KafkaError

from streaming.demo.cluster import DemoCluster, TopicNotCreated
from streaming.demo.journal import IsEvent, Mark, Report
from streaming.demo.sighting import Sighting
from streaming.embedded.process import ChildDied, NotReady
from streaming.process.polling import polls
from streaming.zk.errors import ZooKeeperError

_POLL_S = 0.25
_FLOW_LIMIT_S = 30.0
_ANSWERS_LIMIT_S = 3.0


class NotSeen(Exception):
    """What a step must show did not come; says what is missing."""


@dataclass(frozen=True, slots=True)
class Look:
    """What a check has to go by: before is from just before the step began, now from just now."""

    demo: DemoCluster
    before: Sighting
    now: Sighting
    last_end_before: int
    mark: Mark


@dataclass(frozen=True, slots=True)
class Step:
    """One step. act may raise NotSeen; check returns what is still missing, None when it is seen.

    must_show: what must be seen, in words. event: whose way through the job is timed.
    """

    name: str
    must_show: str
    act: Callable[[DemoCluster], None]
    check: Callable[[Look], str | None]
    limit_s: float
    event: IsEvent | None = None


@dataclass(slots=True)
class Told:
    """A step as it went: missing is None when all of it was seen; took_s until then."""

    step: Step
    missing: str | None = None
    took_s: float = 0.0
    longest_ack_gap_s: float | None = None
    report: Report = field(default_factory=lambda: Report({}, None, None))


class Audience(Protocol):
    """Who watches the story."""

    def begins(self, step: Step) -> None:
        """A step begins."""

    def told(self, told: Told) -> None:
        """A step is over."""


def tell(steps: Sequence[Step], demo: DemoCluster, audience: Audience) -> list[Told]:
    """Tell steps in order; the first that is not seen is the last."""
    story: list[Told] = []
    for step in steps:
        audience.begins(step)
        told = perform(step, demo)
        story.append(told)
        audience.told(told)
        if told.missing is not None:
            break
    return story


def perform(step: Step, demo: DemoCluster, patience: int = 1) -> Told:
    """Perform one step and wait, for no longer than `patience` times its limit, until it is seen.

    While the producer runs, a step is seen only when every partition acks again too.
    """
    told = Told(step)
    before, last_end, mark = demo.look(), demo.journal.last_end(), demo.journal.mark()
    if demo.producer is not None:
        demo.producer.begin_step()
    began_s = time.monotonic()
    try:
        step.act(demo)
        _wait_for(
            lambda: step.check(Look(demo, before, demo.look(), last_end, mark)),
            step.limit_s * patience,
        )
        told.took_s = time.monotonic() - began_s
        _wait_until_flowing(demo, _FLOW_LIMIT_S * patience)
    except (NotSeen, TopicNotCreated, KafkaError, ChildDied, NotReady) as error:
        told.missing = str(error) or repr(error)
        told.took_s = told.took_s or time.monotonic() - began_s
    if demo.producer is not None:
        told.longest_ack_gap_s = demo.producer.longest_gap_in_step_s()
    told.report = _report(step, demo, mark, _ANSWERS_LIMIT_S * patience)
    return told


def _wait_for(missing: Callable[[], str | None], limit_s: float) -> None:
    what: str | None = None
    for _ in polls(limit_s, _POLL_S):
        try:
            what = missing()
        except ZooKeeperError as error:
            what = f"ZooKeeper does not answer: {error}"
        if what is None:
            return
    raise NotSeen(f"after {limit_s:g} s: {what}")


def _wait_until_flowing(demo: DemoCluster, limit_s: float) -> None:
    producer = demo.producer
    if producer is None:
        return
    seen_s = time.monotonic()

    def missing() -> str | None:
        silent = producer.partitions_without_ack(sent_after_s=seen_s)
        return f"no acks from partitions {silent}: {producer.last_error!r}" if silent else None

    _wait_for(missing, limit_s)


def _report(step: Step, demo: DemoCluster, mark: Mark, limit_s: float) -> Report:
    """Wait a little for the answers of brokers that are still on their way."""
    for _ in polls(limit_s, _POLL_S):
        report = demo.journal.report(mark, step.event)
        running = {id_ for id_, broker in demo.embedded.brokers.items() if broker.running}
        answered = report.timing.answered if report.timing is not None else frozenset[int]()
        if step.event is None or answered >= running:
            break
    return report
