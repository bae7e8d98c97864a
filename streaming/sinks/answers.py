"""Answers of brokers on their way back: storage errors become events, then the broker counts as
told.
"""

from __future__ import annotations

import logging
import queue
import threading
import time
from collections.abc import Callable
from contextlib import suppress

from state.protocol_errors import ProtocolError, error_text
from streaming.log.api import NewRecord
from streaming.process.wall_clock import wall_clock_ms
from streaming.sinks.answer_events import answer_events, refused_replicas
from streaming.sinks.appender import JobStopping
from streaming.sinks.channel import Answer
from streaming.sinks.decided_so_far import DecidedSoFar
from streaming.sinks.delivery_report import DeliveryReport
from streaming.sinks.unconfirmed_brokers import UnconfirmedBrokers
from streaming.wire.apis import APIS

logger = logging.getLogger(__name__)

_PASS_ON_EVERY_S = 0.2


class AnswerSink:
    """Takes answers on the brokers' thread and works on them on one of its own.

    A broker counts as confirmed only after what it answered is in the event log. An answer that
    cannot be taken is logged, and holds up nothing.
    """

    def __init__(
        self,
        *,
        append: Callable[[list[NewRecord]], int],
        report: DeliveryReport,
        unconfirmed: UnconfirmedBrokers,
        decided: DecidedSoFar,
    ) -> None:
        """Take where events and confirmations go; start the thread."""
        self._append = append
        self._report = report
        self._unconfirmed = unconfirmed
        self._decided = decided
        self._work: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._pass_on_at_s: float | None = None
        self._is_kept = True
        self._thread = threading.Thread(target=self._run, name="answers", daemon=True)
        self._thread.start()

    def answered(self, answer: Answer) -> None:
        """Take one answer."""
        self._work.put(lambda: self._take(answer))

    def confirmed(self, broker_id: int, end_offset: int) -> None:
        """Take word that a broker has answered everything queued up to an event offset."""
        at_ms = wall_clock_ms()
        self._work.put(lambda: self._confirm(broker_id, end_offset, at_ms))

    def close(self) -> None:
        """Finish what was taken and stop."""
        self._work.put(None)
        self._thread.join(timeout=5)
        if self._pass_on_at_s is not None:
            self._pass_on()

    def _next(self) -> Callable[[], None] | None:
        """Return the next piece of work; meanwhile, now and then, pass on what was confirmed: each
        time that is work for every broker.
        """
        if self._pass_on_at_s is not None:
            with suppress(queue.Empty):
                return self._work.get(timeout=max(0.0, self._pass_on_at_s - time.monotonic()))
            self._pass_on()
        return self._work.get()

    def _pass_on(self) -> None:
        self._pass_on_at_s = None
        self._keep()
        self._report.tell()

    def _keep(self) -> None:
        """Keep what was confirmed; a disk that refuses it costs a repetition after a restart."""
        try:
            self._unconfirmed.save()
            self._is_kept = True
        except OSError as error:
            if self._is_kept:
                logger.warning("what brokers confirmed is not kept for a restart: %s", error)
            self._is_kept = False

    def _run(self) -> None:
        while True:
            try:
                work = self._next()
                if work is None:
                    return
                work()
            except JobStopping as error:
                # What is not taken or confirmed now is asked for again by the next job.
                logger.info("answers of brokers are dropped: %s", error)
                return
            except Exception:
                logger.exception("an answer of a broker could not be taken")

    def _take(self, answer: Answer) -> None:
        error = answer.body["error_code"]
        if error == ProtocolError.STALE_CONTROLLER_EPOCH:
            logger.warning("broker %s knows a newer controller", answer.broker_id)
        elif error == ProtocolError.STALE_BROKER_EPOCH:
            logger.info("broker %s has registered again", answer.broker_id)
        elif error:
            api = APIS[answer.request.api].name
            logger.error(
                "broker %s answers %s with error %s", answer.broker_id, api, error_text(error)
            )
        for topic, errors in refused_replicas(answer).items():
            logger.warning(
                "broker %s refuses replicas of topic %s, by partition: %s",
                answer.broker_id,
                topic,
                ", ".join(f"{number}: {error_text(code)}" for number, code in errors.items()),
            )
            self._report.refused(answer.broker_id, topic, errors)
        with self._decided.lock:
            events = answer_events(answer, self._decided.image)
        if events:
            self._append(events)

    def _confirm(self, broker_id: int, end_offset: int, at_ms: int) -> None:
        self._unconfirmed.confirm(broker_id, end_offset)
        self._report.confirmed(broker_id, end_offset, at_ms)
        if self._pass_on_at_s is None:
            self._pass_on_at_s = time.monotonic() + _PASS_ON_EVERY_S
