"""Puts the sinks of one query together from settings."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from streaming.link.job_side import JobLink
from streaming.log.api import LogRecord
from streaming.log.embedded import EmbeddedLogReader, EmbeddedLogWriter
from streaming.paths import DataDir
from streaming.security.connector import Connector
from streaming.settings import Settings
from streaming.sinks.answers import AnswerSink
from streaming.sinks.appender import SinkAppender
from streaming.sinks.batch_events import taken_back
from streaming.sinks.brokers import BrokerSink
from streaming.sinks.channel import Timing
from streaming.sinks.decided_so_far import DecidedSoFar
from streaming.sinks.decision_log import open_decisions
from streaming.sinks.delivery_report import DeliveryReport
from streaming.sinks.doubts import Doubts, forget_doubted
from streaming.sinks.outcome_log import OutcomeLog, open_outcomes
from streaming.sinks.pipeline import Pipeline
from streaming.sinks.plan import Planner
from streaming.sinks.retention import Retention, Truncated
from streaming.sinks.slow_batches import SlowBatches
from streaming.sinks.unconfirmed_brokers import UnconfirmedBrokers
from streaming.sinks.zookeeper import ZooKeeperSink
from streaming.zk.client import ZkSession
from streaming.zk.errors import ZooKeeperError
from streaming.zk.opening import session_of
from streaming.zk.write_limits import WriteLimits


@dataclass(frozen=True, slots=True)
class Sinks:
    """The assembled sinks and what must be closed with them."""

    pipeline: Pipeline
    link: JobLink
    brokers: BrokerSink
    answers: AnswerSink
    zookeeper: ZooKeeperSink
    decisions: EmbeddedLogWriter
    outcomes: OutcomeLog
    retention: Retention
    stopped: threading.Event

    def close(self) -> None:
        """Stop everything, the way back first."""
        self.stopped.set()
        self.brokers.close()
        self.answers.close()
        self.link.stop()
        self.zookeeper.close()
        self.decisions.close()
        self.outcomes.close()
        self.retention.close()


def open_sinks(
    settings: Settings,
    folders: DataDir,
    decided: DecidedSoFar,
    *,
    folded: int,
    unfolded: Sequence[LogRecord],
    stopped: threading.Event,
) -> Sinks:
    """Open logs, ZooKeeper session and broker channels; the link still has to be started.

    decided: as of where the job begins, which is the event `folded`; unfolded: outcomes from there
    on. Once stopped is set nothing is waited for. Raises ZooKeeperUnreachable, and as
    `open_decisions` does.
    """
    decisions, decision_writer = open_decisions(folders)
    outcomes = OutcomeLog(lambda: open_outcomes(folders.outcomes))
    unconfirmed = UnconfirmedBrokers(folders.pending)

    wiring = _LateWiring(decided)
    link = JobLink(folders.link, on_connected=wiring.send_image)
    appender = SinkAppender(link, stopped.is_set, unfolded=unfolded)
    doubts = Doubts(unfolded)
    forget_doubted(decided.image, doubts, folded)
    report = wiring.report = DeliveryReport(outcomes.append, link.send, wiring.queue_lengths)
    answers = AnswerSink(
        append=appender.append, report=report, unconfirmed=unconfirmed, decided=decided
    )
    brokers = wiring.brokers = _broker_sink(settings, answers, report)
    zookeeper = _zookeeper_sink(settings, stopped)
    listener, announced_topic = settings.inter_broker_listener_name, settings.announced_topic
    written: dict[Path, Truncated] = {
        folders.decisions: decisions,
        folders.outcomes: outcomes,
    }
    retention = _retention(settings, folders, written)
    pipeline = Pipeline(
        decisions=decision_writer,
        decision_log=EmbeddedLogReader(folders.decisions),
        outcomes=outcomes,
        zookeeper=zookeeper,
        brokers=brokers,
        unconfirmed=unconfirmed,
        link=link,
        decided=decided,
        planner=Planner(decided.image, listener, announced_topic=announced_topic),
        retention=retention,
        appender=appender,
        doubts=doubts,
        slow=SlowBatches(settings.controller_performance_always_log_threshold_ms),
        taken_back=taken_back(unfolded),
    )
    logs = (decisions, outcomes, retention)
    return Sinks(pipeline, link, brokers, answers, zookeeper, *logs, stopped)


@dataclass(slots=True)
class _LateWiring:
    """Attaches report and broker sink after who asks them, since the link asks the report, the
    report the broker sink, and that in turn tells the report, which tells through the link. None of
    them asks before the link is started.
    """

    decided: DecidedSoFar
    report: DeliveryReport = field(init=False)
    brokers: BrokerSink = field(init=False)

    def send_image(self, link: JobLink) -> None:
        """Tell a front that comes everything."""
        with self.decided.lock:
            told, whole = self.decided.message(self.report.so_far())
            link.send(told.head(), whole)

    def queue_lengths(self) -> dict[int, int]:
        """Return how many requests each broker has not answered."""
        return self.brokers.queue_lengths()


def _broker_sink(settings: Settings, answers: AnswerSink, report: DeliveryReport) -> BrokerSink:
    return BrokerSink(
        settings.controller_listener,
        Connector.of(settings),
        Timing(settings.controller_socket_timeout_ms, settings.retry_backoff_ms),
        on_answer=answers.answered,
        on_sent=report.sent,
        on_confirmed=answers.confirmed,
    )


def _zookeeper_sink(settings: Settings, stopped: threading.Event) -> ZooKeeperSink:
    return ZooKeeperSink(
        lambda: open_session(settings), WriteLimits.of(settings), stopped=stopped.is_set
    )


def _retention(
    settings: Settings, folders: DataDir, writers: Mapping[Path, Truncated]
) -> Retention:
    return Retention(
        folders,
        writers,
        retention_ms=settings.log_retention_ms,
        batches_retained=settings.checkpoint_batches_retained,
    )


def open_session(settings: Settings) -> ZkSession:
    """Return a connected session for writing; raises ZooKeeperUnreachable."""
    session = session_of(settings)
    try:
        session.connect(settings.zookeeper_connection_timeout_ms)
    except ZooKeeperError:
        session.close()
        raise
    return session
