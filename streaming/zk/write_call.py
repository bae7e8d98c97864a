"""One call of a fenced writer: large multis, several in flight, until every write is settled."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterable

from streaming.zk.chain import Chain
from streaming.zk.client import ZkSession
from streaming.zk.errors import ConnectionLost, SessionLost, ZooKeeperUnreachable
from streaming.zk.multis import Batch, next_batch
from streaming.zk.ops import Check, OpResult, WriteOp, first_failure
from streaming.zk.outcomes import OpOutcome
from streaming.zk.pending import Pending
from streaming.zk.settling import Settling
from streaming.zk.write_limits import WriteLimits
from streaming.zk.write_source import WriteSource


class WriteCall:
    """One call of FencedWriter.write: what waits, and what is in flight."""

    def __init__(
        self,
        session: ZkSession,
        check: Check,
        ops: Iterable[WriteOp],
        limits: WriteLimits,
    ) -> None:
        self._session = session
        self._check = check
        self._limits = limits
        self._chroot_bytes = len(session.chroot)
        self._source = WriteSource(ops, limits, self._chroot_bytes)
        self._timeout_s = session.session_timeout_ms / 1000
        self._settling = Settling(session, self._source, limits)
        self._waiting: deque[Chain] = deque()
        self._again: list[Chain] = []  # to be sent when nothing is under way
        self._in_flight: deque[tuple[Batch, Pending[list[OpResult]]]] = deque()
        self._deadline = 0.0

    def run(self) -> list[OpOutcome]:
        """Make the writes, as FencedWriter.write says."""
        if self._source.is_empty:
            return []
        self._progressed()
        self._wait_for_connection()
        session_id = self._session.session_id
        try:
            self._write(session_id)
            self._settling.read_rejected()
        except ZooKeeperUnreachable as error:
            raise SessionLost(str(error)) from error
        return self._settling.outcomes()

    def _write(self, session_id: int | None) -> None:
        fenced = self._send_straight(session_id)
        while self._fill(fenced=fenced):
            batch, pending = self._in_flight.popleft()
            try:
                fenced = self._finish(batch, pending.result(self._timeout_s)) or fenced
            except ConnectionLost:
                fenced = self._recover(batch, session_id) or fenced

    def _send_straight(self, session_id: int | None) -> bool:
        """Send writes, to a znode each, as they come; True when a multi was fenced.

        Chains are made only of what failed, was not answered or not sent: where nothing goes
        wrong, they would take most of the time.
        """
        in_flight: deque[tuple[range, Pending[list[OpResult]]]] = deque()
        failures: list[tuple[Batch, int, int]] = []
        unknown: Batch = []
        fenced = False
        while self._fill_straight(in_flight, fenced=fenced):
            part, pending = in_flight.popleft()
            try:
                results = pending.result(self._timeout_s)
            except ConnectionLost:
                unknown = self._batch(part)
                self._in_flight.extend((self._batch(one), later) for one, later in in_flight)
                break
            failed = first_failure(results)
            if failed is None:
                self._settling.settle_straight(part, results)
                self._progressed()
            elif failed == 0:
                fenced = True
            else:
                failures.append((self._batch(part), failed, results[failed][0]))
        # Behind the chains of what failed: another write to such a znode goes behind the first.
        self._waiting.extend(self._settling.chained(self._source.rest()))
        if unknown:
            fenced = self._recover(unknown, session_id) or fenced
        for batch, failed, code in failures:
            self._settling.blame(batch, failed, code)
            self._judge(batch)
        return fenced

    def _fill_straight(
        self, in_flight: deque[tuple[range, Pending[list[OpResult]]]], *, fenced: bool
    ) -> bool:
        """Send what may be under way at once, unless fenced; returns whether anything is."""
        while not fenced and len(in_flight) < self._limits.max_in_flight:
            part = self._source.next_multi()
            if part is None:
                break
            ops = [self._check, *self._source.ops[part.start : part.stop]]
            in_flight.append((part, self._session.multi_async(ops)))
        return bool(in_flight)

    def _batch(self, places: range) -> Batch:
        return [(chain, 1) for chain in self._settling.chained(places)]

    def _fill(self, *, fenced: bool) -> bool:
        """Send what may be under way at once, unless fenced; returns whether anything is.

        What is to be sent again waits until nothing is, and goes in order before all else: what
        comes later in the call may need its znodes.
        """
        if not self._in_flight:
            self._waiting.extendleft(sorted(self._again, key=lambda one: one.place, reverse=True))
            self._again.clear()
        while not (fenced or self._again) and len(self._in_flight) < self._limits.max_in_flight:
            if not self._waiting:
                break
            batch, ops = next_batch(self._waiting, self._limits, self._chroot_bytes)
            self._in_flight.append((batch, self._session.multi_async([self._check, *ops])))
        return bool(self._in_flight)

    def _finish(self, batch: Batch, results: list[OpResult]) -> bool:
        """Take the results of one multi; True when it was fenced."""
        failed = first_failure(results)
        if failed is None:
            self._settling.settle(batch, results)
            self._progressed()
            self._requeue(batch)
            return False
        if failed == 0:
            return True
        self._settling.blame(batch, failed, results[failed][0])
        self._judge(batch)
        return False

    def _recover(self, batch: Batch, session_id: int | None) -> bool:
        """After a lost connection: find out which of the unanswered multis were applied.

        True when a multi that was answered before was fenced.
        """
        unknown = list(batch)
        fenced = False
        while self._in_flight:
            later, pending = self._in_flight.popleft()
            try:
                fenced = self._finish(later, pending.result(self._timeout_s)) or fenced
            except ConnectionLost:
                unknown += later
        self._wait_for_connection()
        try:
            self._session.sync()
            if self._session.session_id != session_id:  # only now it is known which one this is
                raise SessionLost("the session expired while writes were in flight")
            self._judge(unknown)
        except ZooKeeperUnreachable as error:
            raise SessionLost(str(error)) from error
        return fenced

    def _judge(self, batch: Batch) -> None:
        """Settle by what the znodes are now, and let the rest be tried again."""
        self._settling.judge(batch)
        self._progressed()
        self._requeue(batch)

    def _requeue(self, batch: Batch) -> None:
        self._again += (chain for chain, _ in batch if not chain.finished)

    def _progressed(self) -> None:
        self._deadline = time.monotonic() + self._timeout_s

    def _wait_for_connection(self) -> None:
        try:
            self._session.wait_until_held(self._deadline - time.monotonic())
        except ZooKeeperUnreachable as error:
            raise SessionLost(
                f"no write was possible for {self._timeout_s:g} s, the session timeout: {error}"
            ) from error
